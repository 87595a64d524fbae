"""The second factor once more, before a person changes who may do what; and the passkeys that they then add
to their account, or remove.
"""

from dataclasses import dataclass, field
from datetime import timedelta
from typing import Final, Literal

from sqlalchemy.orm import Session

from custody.server.domain.audit import Category
from custody.server.domain.credentials import Caller
from custody.server.domain.errors import Invalid, StateConflict
from custody.server.domain.ports import Clock
from custody.server.service.audit.log import AuditLog
from custody.server.service.mail.jobs import Template, queue_mail
from custody.server.service.sign_in.passkeys import Assertion, Passkeys
from custody.server.service.sign_in.passwords import PasswordCheck, require_still
from custody.server.service.sign_in.second_factor import set_factor
from custody.server.service.sign_in.sessions import require_session
from custody.server.service.sign_in.signin import Challenges, ClientInfo
from custody.server.store import Store
from custody.server.store.models import Credential, SignInSession, User

# So long a proof counts, the code of the sign-in among them: a treasurer who changes five limits gives one.
STEP_UP_LIFETIME: Final = timedelta(minutes=10)


@dataclass(frozen=True)
class StepUpPrompt:
    """``method``: what has to be given. ``token``: which challenge a code answers; empty for a password.
    ``passkey``: what a browser may sign in the place of a code, as JSON.
    """

    method: Literal["password", "email", "totp"]
    token: str = field(default="", repr=False)
    passkey: str = ""


class StepUp:
    def __init__(
        self, store: Store, clock: Clock, audit: AuditLog, check: PasswordCheck, challenges: Challenges
    ) -> None:
        self._store = store
        self._clock = clock
        self._audit = audit
        self._check = check
        self._challenges = challenges

    def is_fresh(self, db: Session, caller: Caller) -> bool:
        """Whether this session gave its proof lately."""
        proven_at = db.get_one(SignInSession, caller.session_id).stepped_up_at
        return proven_at is not None and proven_at > self._clock() - STEP_UP_LIFETIME

    def takes_password(self, caller: Caller) -> bool:
        """An account without a second factor has nothing else to prove itself with."""
        with self._store.read() as db:
            return db.get_one(Credential, caller.user_id).second_factor == "none"

    def ask(self, caller: Caller) -> StepUpPrompt:
        """Mails a code where the account has mailed codes. An account without a second factor gives its
        password.

        Raises RateLimited, MailUnavailable, MailRefused.
        """
        with self._store.write() as db:
            require_session(db, caller)
            credential = db.get_one(Credential, caller.user_id)
            if credential.second_factor == "none":
                return StepUpPrompt("password")
            user = db.get_one(User, caller.user_id)
            awaited = self._challenges.open(
                db, user, credential, ClientInfo(None, None), session_id=caller.session_id
            )
        self._challenges.deliver(awaited)
        return StepUpPrompt(
            "totp" if awaited.method == "totp" else "email", awaited.token_2fa, awaited.passkey
        )

    def is_open(self, caller: Caller, token: str) -> bool:
        """Whether a code may still answer that challenge. Raises RateLimited."""
        with self._store.read() as db:
            return self._challenges.find(db, token, session_id=caller.session_id) is not None

    def prove_by_code(self, caller: Caller, token: str, given: str | Assertion) -> None:
        """Raises Invalid, with one text for a wrong, used, expired or foreign code, and RateLimited."""
        with self._store.write() as db:
            require_session(db, caller)
            challenge = self._challenges.find(db, token, session_id=caller.session_id)
            proof = None if challenge is None else self._challenges.judge(db, challenge, token, given)
            self._audit.record(
                db,
                caller,
                Category.SIGN_IN,
                "STEP_UP_REFUSED" if proof is None else "STEPPED_UP",
                proof or "",
            )
            if proof is not None:
                self._note(db, caller)
                return
        sentence = "The code is wrong, was used, or has expired."
        raise Invalid.at("/code", sentence)

    def prove_by_password(self, caller: Caller, password: str) -> None:
        """For an account without a second factor. Raises Invalid, RateLimited."""
        proven = self._check.require(caller, password)
        with self._store.write() as db:
            require_still(db, caller, proven)
            if db.get_one(Credential, caller.user_id).second_factor != "none":
                raise Invalid("This account has a second factor: give its code.")
            self._audit.record(db, caller, Category.SIGN_IN, "STEPPED_UP", "with the password alone")
            self._note(db, caller)

    def _note(self, db: Session, caller: Caller) -> None:
        db.get_one(SignInSession, caller.session_id).stepped_up_at = self._clock()


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
        """Raises StateConflict."""
        with self._store.write() as db:
            require_session(db, caller)
            user = db.get_one(User, caller.user_id)
            token, challenge = self._challenges.offer(db, user.id, caller.session_id)
            return PasskeyOffer(self._passkeys.creation(db, user, challenge), token)

    def add(self, caller: Caller, token: str, name: str, given: Assertion) -> None:
        """From then on a sign-in asks for a second factor. A session alone cannot add a passkey: its user
        must have proven the second factor recently. Raises Invalid, RateLimited, StateConflict.
        """
        with self._store.write() as db:
            require_session(db, caller)
            if not self._step_up.is_fresh(db, caller):
                raise StateConflict("Show first that it is you, and add the passkey then.")
            challenge = self._challenges.offered(db, token, caller.session_id)
            if challenge is None:
                raise Invalid("The request for a passkey has expired: try it again.")
            user = db.get_one(User, caller.user_id)
            self._passkeys.add(db, user, name, challenge.token_hash, given)
            challenge.closed_at = self._clock()
            credential = db.get_one(Credential, caller.user_id)
            if credential.second_factor == "none":
                set_factor(db, credential, "email", self._clock(), keep_session=caller.session_id)
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
