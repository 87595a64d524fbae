"""The password once more, before what a session left open must not be enough for."""

from dataclasses import dataclass, field

from sqlalchemy import bindparam, select
from sqlalchemy.orm import Session

from custody.server.domain.caller import Caller
from custody.server.domain.errors import Fault, Invalid, Unauthenticated
from custody.server.service.sign_in.passwords import Passwords
from custody.server.service.sign_in.throttle import AttemptLimit
from custody.server.store import Store
from custody.server.store.models import Credential, SignInSession


@dataclass(frozen=True)
class Proven:
    """That the caller knew the password whose hash this is, a moment ago."""

    password_hash: str = field(repr=False)


class PasswordCheck:
    """Wrong ones count together with those at sign-in."""

    def __init__(self, store: Store, passwords: Passwords, failures: AttemptLimit) -> None:
        self._store = store
        self._passwords = passwords
        self._failures = failures

    def require(self, caller: Caller, password: str) -> Proven:
        """To be shown to ``require_still`` by whoever changes something. Raises Invalid, RateLimited."""
        self._failures.take(caller.name)
        with self._store.read() as db:
            stored = db.get_one(Credential, caller.user_id).password_hash
        if not self._passwords.matches(stored, password):
            sentence = "The password is wrong."
            raise Invalid(sentence, faults=(Fault("/password", sentence),))
        with self._store.write() as db:
            self._failures.forget(db, caller.name)
        return Proven(stored)


def require_still(db: Session, caller: Caller, proven: Proven) -> None:
    """In the transaction of the change: hashing takes its time, and whoever throws a thief out meanwhile must win.

    Raises Unauthenticated where the password was changed or the session was ended since.
    """
    require_session(db, caller)
    if db.get_one(Credential, caller.user_id).password_hash != proven.password_hash:
        raise Unauthenticated("The password was changed meanwhile.")


def require_session(db: Session, caller: Caller) -> None:
    """Raises Unauthenticated where the caller's session was ended since the request was let in."""
    if db.scalar(_LIVE, {"session_id": caller.session_id}) is None:
        raise Unauthenticated("The session was ended meanwhile.")


_LIVE = select(SignInSession.id).where(
    SignInSession.id == bindparam("session_id"), SignInSession.revoked_at.is_(None)
)
