"""Accounts: finding them, making them, and the record of what happens to them."""

from datetime import datetime

from sqlalchemy import select, update
from sqlalchemy.orm import Session

from custody.schemas.auth import RegisterRequest
from custody.server.domain.audit import Category
from custody.server.domain.caller import Caller
from custody.server.domain.credentials import REGISTRATIONS, REGISTRATIONS_WINDOW, check_new_password
from custody.server.domain.ports import Clock
from custody.server.service.audit.log import AuditLog
from custody.server.service.mail.jobs import queue_mail
from custody.server.service.mail.texts import Template
from custody.server.service.sign_in.passwords import Passwords
from custody.server.service.sign_in.throttle import AttemptLimit
from custody.server.store import Store
from custody.server.store.models import Credential, OtpChallenge, User


class Accounts:
    def __init__(self, store: Store, clock: Clock, audit: AuditLog, passwords: Passwords) -> None:
        self._store = store
        self._clock = clock
        self._audit = audit
        self._passwords = passwords
        self._registrations = AttemptLimit(
            store, clock, "registration", limit=REGISTRATIONS, window=REGISTRATIONS_WINDOW
        )

    def register(self, request: RegisterRequest, trace_id: str) -> None:
        """A new account without any organisation. The answer does not tell whether there was one already (P39).

        Raises Invalid, and RateLimited: every call is a mail to the address, whoever makes it.
        """
        password = request.password.get_secret_value()
        check_new_password(password, request.email)
        self._registrations.take(request.email)
        hashed = self._passwords.hash(password)
        with self._store.write() as db:
            user = find_user(db, request.email)
            is_new = user is None
            if user is None:
                user = add_account(
                    db,
                    self._clock,
                    request.email,
                    hashed,
                    first_name=request.first_name,
                    surname=request.surname,
                )
            template = Template.WELCOME if is_new else Template.ALREADY_REGISTERED
            queue_mail(db, template, request.email, {}, now=self._clock())
            # Written either way: a commit that reaches the disk takes longer than one that changed nothing.
            action = "ACCOUNT_REGISTERED" if is_new else "REGISTRATION_REPEATED"
            record_about(self._audit, db, user, action, trace_id)


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
    """An account with its password; mailed codes are on unless somebody turns them off."""
    now = clock()
    user = User(email=email, first_name=first_name, surname=surname, created_at=now)
    db.add(user)
    db.flush()
    factor = "email" if two_factor else "none"
    db.add(Credential(user_id=user.id, password_hash=password_hash, second_factor=factor, updated_at=now))
    return user


def close_challenges(db: Session, user_id: int, now: datetime) -> None:
    """Sign-ins that wait for a second factor are over where the password or the factor is not what it was."""
    waiting = (OtpChallenge.user_id == user_id, OtpChallenge.closed_at.is_(None))
    db.execute(update(OtpChallenge).where(*waiting).values(closed_at=now))


def record_about(
    audit: AuditLog, db: Session, user: User | None, action: str, trace_id: str, description: str = ""
) -> None:
    """What happened to an account whose owner is not signed in; an account that is not there leaves a row too (P39)."""
    caller = Caller(user.id if user else 0, 0, user.email if user else "", trace_id)
    audit.record(db, caller, Category.SIGN_IN, action, description)
