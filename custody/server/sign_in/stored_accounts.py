"""Accounts: password hashes, finding and creating accounts, and the tokens of mails about a new password."""

import threading
from base64 import b64encode
from collections.abc import Mapping
from datetime import datetime

from argon2 import PasswordHasher
from argon2.exceptions import VerifyMismatchError
from argon2.low_level import ARGON2_VERSION
from sqlalchemy import delete, select, update
from sqlalchemy.orm import Session

from custody.server.rules.credentials import RESET_LIFETIME, new_token, normalised, token_hash
from custody.server.rules.ports import Clock, RandomBytes
from custody.server.store import Store
from custody.server.store.models import CredentialRow, OtpChallengeRow, PasswordResetRow, UserRow

# One hash takes 64 MiB (RFC 9106, second recommended option). The bound keeps a burst of sign-ins from
# exhausting memory.
MAX_PARALLEL_HASHES = 4


class Passwords:
    def __init__(self, hasher: PasswordHasher) -> None:
        self._hasher = hasher
        self._slots = threading.BoundedSemaphore(MAX_PARALLEL_HASHES)
        self._no_account = _dummy_hash(hasher)

    def hash(self, password: str) -> str:
        with self._slots:
            return self._hasher.hash(normalised(password))

    def matches(self, stored: str | None, password: str) -> bool:
        """Takes the same time whether or not there is a ``stored`` hash to compare with."""
        with self._slots:
            try:
                self._hasher.verify(stored or self._no_account, normalised(password))
            except VerifyMismatchError:
                return False
        return stored is not None

    def is_outdated(self, stored: str) -> bool:
        """True where the hash was made with other parameters than today's."""
        return self._hasher.check_needs_rehash(stored)


def _dummy_hash(hasher: PasswordHasher) -> str:
    """What an unknown account's password is compared with: the same work, and never a match (P39). Written
    and not computed, which would add a fifth of a second to each command that opens the platform.
    """
    sizes = hasher.salt_len, hasher.hash_len
    salt, digest = (b64encode(bytes(size)).decode().rstrip("=") for size in sizes)
    work = f"m={hasher.memory_cost},t={hasher.time_cost},p={hasher.parallelism}"
    return f"$argon2{hasher.type.name.lower()}$v={ARGON2_VERSION}${work}${salt}${digest}"


def find_user(db: Session, email: str) -> UserRow | None:
    """``email`` in lower case."""
    return db.scalars(select(UserRow).where(UserRow.email == email)).one_or_none()


def find_credential(db: Session, email: str) -> tuple[UserRow, CredentialRow] | None:
    query = (
        select(UserRow, CredentialRow)
        .join(CredentialRow, CredentialRow.user_id == UserRow.id)
        .where(UserRow.email == email)
    )
    row = db.execute(query).one_or_none()
    return None if row is None else (row[0], row[1])


def add_account(
    db: Session,
    clock: Clock,
    email: str,
    password_hash: str,
    *,
    first_name: str | None = None,
    surname: str | None = None,
    two_factor: bool = True,
) -> UserRow:
    """An account with its password. Mailed codes are on by default."""
    now = clock()
    user = UserRow(email=email, first_name=first_name, surname=surname, created_at=now)
    db.add(user)
    db.flush()
    factor = "email" if two_factor else "none"
    db.add(CredentialRow(user_id=user.id, password_hash=password_hash, second_factor=factor, updated_at=now))
    return user


def close_challenges(db: Session, user_id: int, now: datetime) -> None:
    """Closes sign-ins that wait for a second factor, after the password or the factor has changed."""
    waiting = (OtpChallengeRow.user_id == user_id, OtpChallengeRow.closed_at.is_(None))
    db.execute(update(OtpChallengeRow).where(*waiting).values(closed_at=now))


def drop_reset_tokens(db: Session, user_id: int) -> None:
    """At most one token works: the newest."""
    db.execute(delete(PasswordResetRow).where(PasswordResetRow.user_id == user_id))


def new_reset_token(store: Store, clock: Clock, random: RandomBytes, email: str) -> Mapping[str, str] | None:
    """The values of the mail, made when it is sent. An older token stops working. None where there is no such
    account.
    """
    token, now = new_token(random), clock()
    with store.write() as db:
        user = find_user(db, email)
        if user is None:
            return None
        drop_reset_tokens(db, user.id)
        db.add(
            PasswordResetRow(
                token_hash=token_hash(token),
                user_id=user.id,
                created_at=now,
                expires_at=now + RESET_LIFETIME,
            )
        )
    return {"token": token, "minutes": str(int(RESET_LIFETIME.total_seconds() // 60))}
