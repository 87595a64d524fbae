"""A new password: for who knows the old one, and for who can read the account's mail."""

from collections.abc import Mapping
from datetime import datetime

from sqlalchemy import delete, select
from sqlalchemy.orm import Session

from custody.server.domain.audit import Category
from custody.server.domain.caller import Caller
from custody.server.domain.credentials import (
    RESET_LIFETIME,
    RESETS_PER_ACCOUNT,
    RESETS_PER_ACCOUNT_WINDOW,
    check_new_password,
    new_token,
    token_hash,
)
from custody.server.domain.errors import Fault, Invalid
from custody.server.domain.ports import Clock, RandomBytes
from custody.server.service.audit.log import AuditLog
from custody.server.service.mail.jobs import queue_mail
from custody.server.service.mail.texts import Template
from custody.server.service.sign_in.accounts import close_challenges, find_user, record_about
from custody.server.service.sign_in.password_check import PasswordCheck, require_still
from custody.server.service.sign_in.passwords import Passwords
from custody.server.service.sign_in.sessions import end_sessions
from custody.server.service.sign_in.throttle import AttemptLimit
from custody.server.store import Store
from custody.server.store.models import Credential, PasswordReset, User

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
    ) -> None:
        self._store = store
        self._clock = clock
        self._random = random
        self._audit = audit
        self._passwords = passwords
        self._check = check
        self._failures = failures
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
        """The same work for an account that is not there: a worker looks, when nobody waits for the answer (P39).

        Raises RateLimited.
        """
        with self._store.write() as db:
            self._requests.take_in(db, email)
            queue_mail(db, Template.PASSWORD_RESET, email, {}, now=self._clock())
            record_about(self._audit, db, find_user(db, email), "PASSWORD_RESET_REQUESTED", trace_id)

    def make_token(self, email: str) -> Mapping[str, str] | None:
        """What the mail says, made as it is sent; an older token is dead from here on. None where there is no account."""
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

    def reset(self, token: str, new_password: str, trace_id: str) -> None:
        """Ends every session of the account; its second factor stays. Raises Invalid."""
        with self._store.read() as db:
            email = _owner(db, token, self._clock()).email
        check_new_password(new_password, email, NEW_PASSWORD)
        hashed = self._passwords.hash(new_password)
        with self._store.write() as db:
            user = _owner(db, token, self._clock())
            ended = self._set(db, user, hashed, keep_session=None)
            record_about(self._audit, db, user, "PASSWORD_RESET", trace_id, f"{ended} sessions ended")

    def _set(self, db: Session, user: User, hashed: str, *, keep_session: int | None) -> int:
        """The new password, and the end of whatever the old one opened. How many sessions ended."""
        now = self._clock()
        credential = db.get_one(Credential, user.id)
        credential.password_hash, credential.updated_at = hashed, now
        _drop_tokens(db, user.id)
        close_challenges(db, user.id, now)
        self._failures.forget(db, user.email)
        queue_mail(db, Template.PASSWORD_CHANGED, user.email, {}, now=now)
        return end_sessions(db, user.id, now, "password changed", keep=keep_session)


def _drop_tokens(db: Session, user_id: int) -> None:
    """At most one is good: the newest."""
    db.execute(delete(PasswordReset).where(PasswordReset.user_id == user_id))


def _owner(db: Session, token: str, now: datetime) -> User:
    """Whose token it is. Raises Invalid, alike for one that was used, replaced, has expired or never was."""
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
        raise Invalid(sentence, faults=(Fault("/token", sentence),))
    return found
