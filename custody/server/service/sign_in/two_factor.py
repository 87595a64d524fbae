"""Which second factor an account asks for."""

from typing import Literal

from sqlalchemy import delete
from sqlalchemy.orm import Session

from custody.server.domain.audit import Category
from custody.server.domain.caller import Caller
from custody.server.domain.errors import NotFound, StateConflict
from custody.server.domain.ports import Clock
from custody.server.service.audit.log import AuditLog
from custody.server.service.mail.jobs import queue_mail
from custody.server.service.mail.texts import METHODS, Template
from custody.server.service.sign_in.accounts import close_challenges, find_credential
from custody.server.service.sign_in.password_check import PasswordCheck, require_still
from custody.server.service.system import OPERATOR
from custody.server.store import Store
from custody.server.store.models import Credential, RecoveryCode

Method = Literal["none", "email", "totp"]


class TwoFactor:
    def __init__(self, store: Store, clock: Clock, audit: AuditLog, check: PasswordCheck) -> None:
        self._store = store
        self._clock = clock
        self._audit = audit
        self._check = check

    def choose(self, caller: Caller, password: str, wanted: Method | Literal["on"]) -> str:
        """``on``: whatever the account has, or mailed codes where it has none. The method that is asked for from now on.

        Raises Invalid, RateLimited, Unauthenticated, and StateConflict where no authenticator was confirmed.
        """
        proven = self._check.require(caller, password)
        with self._store.write() as db:
            require_still(db, caller, proven)
            credential = db.get_one(Credential, caller.user_id)
            method = _resolved(credential, wanted)
            self._set(db, credential, caller.name, method)
            action = "TWO_FACTOR_DISABLED" if method == "none" else "TWO_FACTOR_ENABLED"
            self._audit.record(db, caller, Category.SIGN_IN, action, METHODS[method])
        return method

    def reset(self, email: str) -> None:
        """The operator's: back to mailed codes, the authenticator and its recovery codes forgotten. Raises NotFound."""
        with self._store.write() as db:
            found = find_credential(db, email)
            if found is None:
                raise NotFound(f"{email} has no account.")
            user, credential = found
            self._set(db, credential, user.email, "email")
            credential.totp_secret = credential.totp_pending = credential.totp_last_step = None
            db.execute(delete(RecoveryCode).where(RecoveryCode.user_id == user.id))
            self._audit.record(db, OPERATOR, Category.SIGN_IN, "TWO_FACTOR_RESET", f"user {user.id}")

    def _set(self, db: Session, credential: Credential, email: str, method: str) -> None:
        credential.second_factor = method
        credential.updated_at = self._clock()
        close_challenges(db, credential.user_id, self._clock())
        values = {"method": METHODS[method]}
        queue_mail(db, Template.SECOND_FACTOR_CHANGED, email, values, now=self._clock())


def _resolved(credential: Credential, wanted: Method | Literal["on"]) -> str:
    if wanted == "on":
        return "email" if credential.second_factor == "none" else credential.second_factor
    if wanted == "totp" and credential.totp_secret is None:
        raise StateConflict("No authenticator was confirmed: start with POST /auth/totp/enrol.")
    return wanted
