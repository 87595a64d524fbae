"""Accounts: password hashes, finding and creating accounts, and the audit record of their sign-ins."""

import threading
from base64 import b64encode
from datetime import datetime

from argon2 import PasswordHasher
from argon2.exceptions import VerifyMismatchError
from argon2.low_level import ARGON2_VERSION
from sqlalchemy import select, update
from sqlalchemy.orm import Session

from custody.schemas.auth import RegisterRequest
from custody.server.domain.audit import Category
from custody.server.domain.credentials import (
    REGISTRATIONS,
    REGISTRATIONS_WINDOW,
    Caller,
    check_new_password,
    normalised,
)
from custody.server.domain.ports import Clock
from custody.server.service.audit.log import AuditLog
from custody.server.service.mail.jobs import Template, queue_mail
from custody.server.service.requests.rates import AttemptLimit
from custody.server.store import Store
from custody.server.store.models import Credential, Invitation, OtpChallenge, User

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


class Accounts:
    def __init__(
        self, store: Store, clock: Clock, audit: AuditLog, passwords: Passwords, *, may_anybody_register: bool
    ) -> None:
        self._may_anybody_register = may_anybody_register
        self._store = store
        self._clock = clock
        self._audit = audit
        self._passwords = passwords
        self._registrations = AttemptLimit(
            store, clock, "registration", limit=REGISTRATIONS, window=REGISTRATIONS_WINDOW
        )

    def register(self, request: RegisterRequest, trace_id: str, *, is_signing_in: bool = False) -> None:
        """Creates an account without an organisation. The answer does not tell whether one existed already,
        or whether the address is invited where it has to be: its owner learns that by mail (P39).
        ``is_signing_in``: the mail with the code of their first sign-in is the only one that the owner gets.

        Raises Invalid, and RateLimited, because every call sends a mail to the address.
        """
        password = request.password.get_secret_value()
        check_new_password(password, request.email)
        self._registrations.take(request.email)
        hashed = self._passwords.hash(password)
        with self._store.write() as db:
            user = find_user(db, request.email)
            outcome = self._outcome(db, user, request.email)
            if outcome is Template.WELCOME:
                user = add_account(
                    db,
                    self._clock,
                    request.email,
                    hashed,
                    first_name=request.first_name,
                    surname=request.surname,
                )
            if not (is_signing_in and outcome is Template.WELCOME):
                queue_mail(db, outcome, request.email, {}, now=self._clock())
            # Recorded for each outcome: a commit that writes takes longer than one that does not.
            record_about(self._audit, db, user, _RECORDED[outcome], trace_id)

    def _outcome(self, db: Session, user: User | None, email: str) -> Template:
        if user is not None:
            return Template.ALREADY_REGISTERED
        if self._may_anybody_register or _is_invited(db, email, self._clock()):
            return Template.WELCOME
        return Template.NOT_INVITED


_RECORDED = {
    Template.WELCOME: "ACCOUNT_REGISTERED",
    Template.ALREADY_REGISTERED: "REGISTRATION_REPEATED",
    Template.NOT_INVITED: "REGISTRATION_REFUSED",
}


def _is_invited(db: Session, email: str, now: datetime) -> bool:
    """``email`` in lower case, as invitations have it."""
    query = select(Invitation.id).where(
        Invitation.invited_email == email, Invitation.status == "pending", Invitation.expires_at > now
    )
    return db.scalars(query.limit(1)).first() is not None


def find_user(db: Session, email: str) -> User | None:
    """``email`` in lower case."""
    return db.scalars(select(User).where(User.email == email)).one_or_none()


def find_credential(db: Session, email: str) -> tuple[User, Credential] | None:
    query = (
        select(User, Credential).join(Credential, Credential.user_id == User.id).where(User.email == email)
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
) -> User:
    """An account with its password. Mailed codes are on by default."""
    now = clock()
    user = User(email=email, first_name=first_name, surname=surname, created_at=now)
    db.add(user)
    db.flush()
    factor = "email" if two_factor else "none"
    db.add(Credential(user_id=user.id, password_hash=password_hash, second_factor=factor, updated_at=now))
    return user


def close_challenges(db: Session, user_id: int, now: datetime) -> None:
    """Closes sign-ins that wait for a second factor, after the password or the factor has changed."""
    waiting = (OtpChallenge.user_id == user_id, OtpChallenge.closed_at.is_(None))
    db.execute(update(OtpChallenge).where(*waiting).values(closed_at=now))


def record_about(
    audit: AuditLog, db: Session, user: User | None, action: str, trace_id: str, description: str = ""
) -> None:
    """Records an event about an account whose owner is not signed in, also where no such account exists
    (P39).
    """
    caller = Caller(user.id if user else 0, 0, user.email if user else "", trace_id)
    audit.record(db, caller, Category.SIGN_IN, action, description)
