"""The password once more, before what a session left open must not be enough for."""

from custody.server.domain.caller import Caller
from custody.server.domain.errors import Fault, Invalid
from custody.server.service.passwords import Passwords
from custody.server.service.throttle import AttemptLimit
from custody.server.store import Store
from custody.server.store.models import Credential


class PasswordCheck:
    """Wrong ones count together with those at sign-in."""

    def __init__(self, store: Store, passwords: Passwords, failures: AttemptLimit) -> None:
        self._store = store
        self._passwords = passwords
        self._failures = failures

    def require(self, caller: Caller, password: str) -> None:
        """Raises Invalid, RateLimited."""
        self._failures.take(caller.name)
        with self._store.read() as db:
            stored = db.get_one(Credential, caller.user_id).password_hash
        if not self._passwords.matches(stored, password):
            sentence = "The password is wrong."
            raise Invalid(sentence, faults=(Fault("/password", sentence),))
        with self._store.write() as db:
            self._failures.forget(db, caller.name)
