"""A user adds a passkey to their account, or removes one."""

from dataclasses import dataclass, field

from sqlalchemy.orm import Session

from custody.server.domain.audit import Category
from custody.server.domain.credentials import Caller
from custody.server.domain.errors import Invalid, StateConflict
from custody.server.domain.ports import Clock
from custody.server.service.audit.log import AuditLog
from custody.server.service.mail.jobs import Template, queue_mail
from custody.server.service.sign_in.passkeys import Assertion, Passkeys
from custody.server.service.sign_in.sessions import require_session
from custody.server.service.sign_in.signin import Challenges, ClientInfo
from custody.server.service.sign_in.step_up import StepUp
from custody.server.store import Store
from custody.server.store.models import Credential, User


@dataclass(frozen=True)
class PasskeyOffer:
    """``options``: for the browser, as JSON. ``token``: identifies the challenge."""

    options: str
    token: str = field(repr=False)


class PasskeyEnrolment:
    def __init__(
        self,
        store: Store,
        clock: Clock,
        audit: AuditLog,
        passkeys: Passkeys,
        challenges: Challenges,
        step_up: StepUp,
    ) -> None:
        self._store = store
        self._clock = clock
        self._audit = audit
        self._passkeys = passkeys
        self._challenges = challenges
        self._step_up = step_up

    def offer(self, caller: Caller) -> PasskeyOffer:
        """Raises RateLimited, StateConflict."""
        with self._store.write() as db:
            require_session(db, caller)
            user = db.get_one(User, caller.user_id)
            credential = db.get_one(Credential, caller.user_id)
            client = ClientInfo(None, None)
            # Only the challenge is used: its code, if it has one, is not mailed.
            awaited = self._challenges.open(db, user, credential, client, session_id=caller.session_id)
            challenge = self._challenges.find(db, awaited.token_2fa, session_id=caller.session_id)
            assert challenge is not None, "opened above"
            return PasskeyOffer(self._passkeys.creation(db, user, challenge.token_hash), awaited.token_2fa)

    def add(self, caller: Caller, token: str, name: str, given: Assertion) -> None:
        """From then on a sign-in asks for a second factor. A session alone cannot add a passkey: its user
        must have proven the second factor recently. Raises Invalid, RateLimited, StateConflict.
        """
        with self._store.write() as db:
            require_session(db, caller)
            if not self._step_up.is_fresh(db, caller):
                raise StateConflict("Show first that it is you, and add the passkey then.")
            challenge = self._challenges.find(db, token, session_id=caller.session_id)
            if challenge is None:
                raise Invalid("The request for a passkey has expired: try it again.")
            user = db.get_one(User, caller.user_id)
            self._passkeys.add(db, user, name, challenge.token_hash, given)
            challenge.closed_at = self._clock()
            credential = db.get_one(Credential, caller.user_id)
            if credential.second_factor == "none":
                credential.second_factor = "email"
            self._tell(caller, db, "PASSKEY_ADDED", name, "a passkey, or what it asked for before")

    def remove(self, caller: Caller, passkey_id: int) -> None:
        """Raises NotFound."""
        with self._store.write() as db:
            require_session(db, caller)
            name = self._passkeys.remove(db, caller.user_id, passkey_id)
            self._tell(caller, db, "PASSKEY_REMOVED", name, "what it asked for before, without one passkey")

    def _tell(self, caller: Caller, db: Session, action: str, name: str, method: str) -> None:
        self._audit.record(db, caller, Category.SIGN_IN, action, name)
        queue_mail(db, Template.SECOND_FACTOR_CHANGED, caller.name, {"method": method}, now=self._clock())
