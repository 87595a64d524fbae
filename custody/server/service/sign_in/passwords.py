"""Passwords: the check before a sensitive change, a change by the owner, and a reset by mail."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

from sqlalchemy import delete, select
from sqlalchemy.orm import Session

from custody.server.domain.audit import Category
from custody.server.domain.credentials import (
    LOGIN_FAILURES,
    LOGIN_FAILURES_ANYWHERE,
    LOGIN_FAILURES_WINDOW,
    RESET_LIFETIME,
    RESETS_PER_ACCOUNT,
    RESETS_PER_ACCOUNT_WINDOW,
    Caller,
    check_new_password,
    new_token,
    token_hash,
)
from custody.server.domain.errors import Invalid, RateLimited, Unauthenticated
from custody.server.domain.ports import Clock, RandomBytes
from custody.server.service.audit.log import AuditLog
from custody.server.service.mail.jobs import Template, queue_mail
from custody.server.service.requests.rates import AttemptLimit, caller_at
from custody.server.service.sign_in.accounts import Passwords, close_challenges, find_user, record_about
from custody.server.service.sign_in.sessions import end_sessions, require_session
from custody.server.store import Store
from custody.server.store.models import Credential, PasswordReset, User


@dataclass(frozen=True)
class Proven:
    """The caller has just proven to know the password with this hash."""

    password_hash: str = field(repr=False)


class Guesses:
    """Limits on wrong passwords at sign-in. They are counted for each account and client address, so that a
    stranger cannot lock the owner out; the count of all addresses decides whether the password alone is
    enough.
    """

    def __init__(self, store: Store, clock: Clock) -> None:
        self._store = store
        window = LOGIN_FAILURES_WINDOW
        self._here = AttemptLimit(store, clock, "sign-in", limit=LOGIN_FAILURES, window=window)
        self._anywhere = AttemptLimit(
            store, clock, "sign-in-anywhere", limit=LOGIN_FAILURES_ANYWHERE, window=window
        )

    def take(self, email: str, address: str) -> bool:
        """Counts a try before its outcome is known. Returns whether the account is being guessed at. Raises
        RateLimited.
        """
        with self._store.write() as db:
            self._here.take_in(db, _from(email, address))
            try:
                self._anywhere.take_in(db, email)
            except RateLimited:
                return True
        return False

    def forget(self, db: Session, email: str, address: str, *, anywhere: bool) -> None:
        """Called after a right password. ``anywhere``: also the count of all addresses."""
        self._here.forget(db, _from(email, address))
        if anywhere:
            self._anywhere.forget(db, email)


def _from(email: str, address: str) -> str:
    # No address of a mailbox or of a machine has a space.
    return f"{caller_at(address)} {email}"


class PasswordCheck:
    """Wrong passwords in a session have a limit of their own, which a stranger cannot use up. So have those
    in sessions that an organisation's identity provider opened.
    """

    def __init__(self, store: Store, passwords: Passwords, failures: AttemptLimit) -> None:
        self._store = store
        self._passwords = passwords
        self._failures = failures

    def require(self, caller: Caller, password: str) -> Proven:
        """Returns a proof for ``require_still``, which the change's transaction calls. Raises Invalid,
        RateLimited.
        """
        subject = caller.name if caller.bound_to is None else f"{caller.bound_to} {caller.name}"
        self._failures.take(subject)
        with self._store.read() as db:
            stored = db.get_one(Credential, caller.user_id).password_hash
        if not self._passwords.matches(stored, password):
            sentence = "The password is wrong."
            raise Invalid.at("/password", sentence)
        with self._store.write() as db:
            self._failures.forget(db, subject)
        return Proven(stored)


def require_still(db: Session, caller: Caller, proven: Proven) -> None:
    """Call it in the transaction of the change. Hashing takes time: an owner who ends a thief's session
    during it must win.

    Raises Unauthenticated where the password was changed or the session was ended since then.
    """
    require_session(db, caller)
    if db.get_one(Credential, caller.user_id).password_hash != proven.password_hash:
        raise Unauthenticated("The password was changed meanwhile.")


NEW_PASSWORD = "new_password"  # noqa: S105 - the field's name


class PasswordChanges:
    def __init__(
        self,
        store: Store,
        clock: Clock,
        random: RandomBytes,
        audit: AuditLog,
        passwords: Passwords,
        check: PasswordCheck,
        failures: AttemptLimit,
        guesses: Guesses,
    ) -> None:
        self._store = store
        self._clock = clock
        self._random = random
        self._audit = audit
        self._passwords = passwords
        self._check = check
        self._failures = failures
        self._guesses = guesses
        self._requests = AttemptLimit(
            store, clock, "password-reset", limit=RESETS_PER_ACCOUNT, window=RESETS_PER_ACCOUNT_WINDOW
        )

    def change(self, caller: Caller, password: str, new_password: str) -> None:
        """Ends every other session of the account. Raises Invalid, RateLimited, Unauthenticated."""
        check_new_password(new_password, caller.name, NEW_PASSWORD)
        proven = self._check.require(caller, password)
        hashed = self._passwords.hash(new_password)
        with self._store.write() as db:
            require_still(db, caller, proven)
            ended = self._set(db, db.get_one(User, caller.user_id), hashed, keep_session=caller.session_id)
            self._audit.record(
                db, caller, Category.SIGN_IN, "PASSWORD_CHANGED", f"{ended} other sessions ended"
            )

    def request_reset(self, email: str, trace_id: str) -> None:
        """Does the same work for an account that does not exist: a worker looks it up later, out of the
        caller's sight (P39).

        Raises RateLimited.
        """
        with self._store.write() as db:
            self._requests.take_in(db, email)
            queue_mail(db, Template.PASSWORD_RESET, email, {}, now=self._clock())
            record_about(self._audit, db, find_user(db, email), "PASSWORD_RESET_REQUESTED", trace_id)

    def make_token(self, email: str) -> Mapping[str, str] | None:
        """The values of the mail, made when it is sent. An older token stops working. None where there is no
        such account.
        """
        token, now = new_token(self._random), self._clock()
        with self._store.write() as db:
            user = find_user(db, email)
            if user is None:
                return None
            _drop_tokens(db, user.id)
            db.add(
                PasswordReset(
                    token_hash=token_hash(token),
                    user_id=user.id,
                    created_at=now,
                    expires_at=now + RESET_LIFETIME,
                )
            )
        return {"token": token, "minutes": str(int(RESET_LIFETIME.total_seconds() // 60))}

    def reset(self, token: str, new_password: str, trace_id: str, address: str) -> None:
        """Ends every session of the account; its second factor stays. The caller may sign in at once from
        this address. Raises Invalid.
        """
        with self._store.read() as db:
            email = _owner(db, token, self._clock()).email
        check_new_password(new_password, email, NEW_PASSWORD)
        hashed = self._passwords.hash(new_password)
        with self._store.write() as db:
            user = _owner(db, token, self._clock())
            ended = self._set(db, user, hashed, keep_session=None)
            self._guesses.forget(db, user.email, address, anywhere=False)
            record_about(self._audit, db, user, "PASSWORD_RESET", trace_id, f"{ended} sessions ended")

    def _set(self, db: Session, user: User, hashed: str, *, keep_session: int | None) -> int:
        """Stores the new password, and ends what the old one opened. Returns how many sessions ended."""
        now = self._clock()
        credential = db.get_one(Credential, user.id)
        credential.password_hash, credential.updated_at = hashed, now
        _drop_tokens(db, user.id)
        close_challenges(db, user.id, now)
        self._failures.forget(db, user.email)
        queue_mail(db, Template.PASSWORD_CHANGED, user.email, {}, now=now)
        return end_sessions(db, user.id, now, "password changed", keep=keep_session)


def _drop_tokens(db: Session, user_id: int) -> None:
    """At most one token works: the newest."""
    db.execute(delete(PasswordReset).where(PasswordReset.user_id == user_id))


def _owner(db: Session, token: str, now: datetime) -> User:
    """The user of a token. Raises Invalid, with one text for a token that was used, replaced, expired or
    never made.
    """
    found = db.scalars(
        select(User)
        .join(PasswordReset, PasswordReset.user_id == User.id)
        .where(
            PasswordReset.token_hash == token_hash(token),
            PasswordReset.used_at.is_(None),
            PasswordReset.expires_at > now,
        )
    ).one_or_none()
    if found is None:
        sentence = "This token was used, was replaced by a newer one, or has expired; ask for another."
        raise Invalid.at("/token", sentence)
    return found
