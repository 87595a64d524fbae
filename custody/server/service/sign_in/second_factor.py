"""The second factor: which one an account asks for, enrolling an authenticator, its codes (HMAC-SHA-1 over
30-second steps, six digits: RFC 6238, RFC 4226), and its recovery codes.
"""

from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal, cast

from sqlalchemy import delete, func, select
from sqlalchemy.orm import Session

from custody.server.domain.audit import Category
from custody.server.domain.credentials import (
    CONFIRMATIONS,
    CONFIRMATIONS_WINDOW,
    OPERATOR,
    RECOVERY_CODES,
    Caller,
    new_recovery_code,
    plain_code,
    recovery_hash,
)
from custody.server.domain.errors import Invalid, NotFound, StateConflict
from custody.server.domain.ports import Clock, RandomBytes
from custody.server.domain.totp import SECRET_BYTES, base32, enrolment_uri, find_step
from custody.server.service.audit.log import AuditLog
from custody.server.service.mail.jobs import METHODS, Template, queue_mail
from custody.server.service.requests.rates import AttemptLimit
from custody.server.service.secrets import TotpSecrets
from custody.server.service.sign_in.accounts import close_challenges, find_credential
from custody.server.service.sign_in.passwords import PasswordCheck, require_still
from custody.server.service.sign_in.sessions import end_sessions, require_session
from custody.server.store import Store
from custody.server.store.models import Credential, Passkey, RecoveryCode, User

Method = Literal["none", "email", "totp"]


@dataclass(frozen=True)
class Enrolment:
    """What the owner enters into the authenticator, as text or as a QR code."""

    secret: str = field(repr=False)
    uri: str = field(repr=False)


class Authenticators:
    def __init__(
        self,
        store: Store,
        clock: Clock,
        random: RandomBytes,
        audit: AuditLog,
        check: PasswordCheck,
        secrets: TotpSecrets,
    ) -> None:
        self._store = store
        self._clock = clock
        self._random = random
        self._audit = audit
        self._check = check
        self._secrets = secrets
        self._confirmations = AttemptLimit(
            store, clock, "totp-confirm", limit=CONFIRMATIONS, window=CONFIRMATIONS_WINDOW
        )

    def method_of(self, caller: Caller) -> Method:
        """What the caller's sign-in asks for beside the password."""
        with self._store.read() as db:
            return cast("Method", db.get_one(Credential, caller.user_id).second_factor)

    def enrol(self, caller: Caller, password: str) -> Enrolment:
        """Makes a new secret, which counts once the owner confirms a code of it. Until then the old factor
        stays.

        Raises Invalid, RateLimited, Unauthenticated.
        """
        proven = self._check.require(caller, password)
        secret = self._random(SECRET_BYTES)
        with self._store.write() as db:
            require_still(db, caller, proven)
            db.get_one(Credential, caller.user_id).totp_pending = self._secrets.seal(secret)
            self._audit.record(db, caller, Category.SIGN_IN, "AUTHENTICATOR_OFFERED", "not confirmed yet")
        return Enrolment(base32(secret), enrolment_uri(secret, caller.name))

    def confirm(self, caller: Caller, code: str) -> tuple[str, ...]:
        """Makes the authenticator the second factor. Returns its recovery codes, shown once; older ones stop
        working.

        Raises StateConflict, Invalid, RateLimited, Unauthenticated.
        """
        self._confirmations.take(str(caller.user_id))
        with self._store.write() as db:
            require_session(db, caller)
            credential = db.get_one(Credential, caller.user_id)
            step = self._confirmed_step(credential, code)
            credential.totp_secret, credential.totp_pending = credential.totp_pending, None
            credential.totp_last_step = step
            codes = self._new_recovery_codes(db, caller.user_id)
            set_factor(db, credential, "totp", self._clock(), keep_session=caller.session_id)
            self._tell(db, caller)
            self._audit.record(
                db, caller, Category.SIGN_IN, "AUTHENTICATOR_CONFIRMED", f"{len(codes)} recovery codes"
            )
        return codes

    def accepts(self, db: Session, user_id: int, code: str) -> str | None:
        """What a code proves, in words, or None. Takes a code of the authenticator or a recovery code, each
        of them once.
        """
        plain = plain_code(code)
        return (
            self._take_code(db, user_id, plain)
            if plain.isdecimal()
            else self._take_recovery(db, user_id, plain)
        )

    def _take_code(self, db: Session, user_id: int, code: str) -> str | None:
        credential = db.get_one(Credential, user_id)
        secret = self._secrets.open(credential.totp_secret or b"")
        step = find_step(secret, code, self._clock(), credential.totp_last_step) if secret else None
        if step is None:
            return None
        credential.totp_last_step = step
        return "with an authenticator's code"

    def _take_recovery(self, db: Session, user_id: int, code: str) -> str | None:
        mine = (RecoveryCode.user_id == user_id, RecoveryCode.used_at.is_(None))
        found = db.scalars(
            select(RecoveryCode).where(*mine, RecoveryCode.code_hash == recovery_hash(code))
        ).one_or_none()
        if found is None:
            return None
        found.used_at = self._clock()
        db.flush()
        left = db.scalar(select(func.count()).select_from(RecoveryCode).where(*mine))
        email = db.get_one(User, user_id).email
        queue_mail(db, Template.RECOVERY_CODE_USED, email, {"left": str(left)}, now=self._clock())
        return f"with a recovery code, {left} left"

    def _confirmed_step(self, credential: Credential, code: str) -> int:
        if credential.totp_pending is None:
            raise StateConflict("No authenticator is being enrolled: start with POST /auth/totp/enrol.")
        secret = self._secrets.open(credential.totp_pending)
        step = find_step(secret, plain_code(code), self._clock(), None) if secret else None
        if step is None:
            sentence = "The code is not the one that the authenticator shows now; check the phone's clock."
            raise Invalid.at("/code", sentence)
        return step

    def _new_recovery_codes(self, db: Session, user_id: int) -> tuple[str, ...]:
        db.execute(delete(RecoveryCode).where(RecoveryCode.user_id == user_id))
        codes = tuple(new_recovery_code(self._random) for _ in range(RECOVERY_CODES))
        db.add_all(RecoveryCode(code_hash=recovery_hash(code), user_id=user_id) for code in codes)
        return codes

    def _tell(self, db: Session, caller: Caller) -> None:
        values = {"method": METHODS["totp"]}
        queue_mail(db, Template.SECOND_FACTOR_CHANGED, caller.name, values, now=self._clock())


class TwoFactor:
    def __init__(self, store: Store, clock: Clock, audit: AuditLog, check: PasswordCheck) -> None:
        self._store = store
        self._clock = clock
        self._audit = audit
        self._check = check

    def choose(self, caller: Caller, password: str, wanted: Method | Literal["on"]) -> str:
        """``on`` means the confirmed method, or mailed codes where there is none. Returns the method asked
        for from now on.

        Raises Invalid, RateLimited, Unauthenticated, and StateConflict where no authenticator was confirmed.
        """
        proven = self._check.require(caller, password)
        with self._store.write() as db:
            require_still(db, caller, proven)
            credential = db.get_one(Credential, caller.user_id)
            method = _resolved(credential, wanted)
            self._set(db, credential, caller.name, method, keep_session=caller.session_id)
            action = "TWO_FACTOR_DISABLED" if method == "none" else "TWO_FACTOR_ENABLED"
            self._audit.record(db, caller, Category.SIGN_IN, action, METHODS[method])
        return method

    def reset(self, email: str) -> None:
        """For the operator: back to mailed codes; the authenticator, its recovery codes and the passkeys are
        deleted.
        Raises NotFound.
        """
        with self._store.write() as db:
            found = find_credential(db, email)
            if found is None:
                raise NotFound(f"{email} has no account.")
            user, credential = found
            self._set(db, credential, user.email, "email", keep_session=None)
            credential.totp_secret = credential.totp_pending = credential.totp_last_step = None
            db.execute(delete(RecoveryCode).where(RecoveryCode.user_id == user.id))
            db.execute(delete(Passkey).where(Passkey.user_id == user.id))
            self._audit.record(db, OPERATOR, Category.SIGN_IN, "TWO_FACTOR_RESET", f"user {user.id}")

    def _set(
        self, db: Session, credential: Credential, email: str, method: Method, *, keep_session: int | None
    ) -> None:
        set_factor(db, credential, method, self._clock(), keep_session=keep_session)
        values = {"method": METHODS[method]}
        queue_mail(db, Template.SECOND_FACTOR_CHANGED, email, values, now=self._clock())


def set_factor(
    db: Session, credential: Credential, method: Method, now: datetime, *, keep_session: int | None
) -> None:
    """Sets what a sign-in asks for from now on. Where it asked for nothing, the other sessions end: they
    never gave a second factor, and would be renewed without one (P107).
    """
    if credential.second_factor == "none" and method != "none":
        end_sessions(db, credential.user_id, now, "second factor turned on", keep=keep_session)
    credential.second_factor, credential.updated_at = method, now
    close_challenges(db, credential.user_id, now)


def _resolved(credential: Credential, wanted: Method | Literal["on"]) -> Method:
    if wanted == "on":
        return "email" if credential.second_factor == "none" else cast("Method", credential.second_factor)
    if wanted == "totp" and credential.totp_secret is None:
        raise StateConflict("No authenticator was confirmed: start with POST /auth/totp/enrol.")
    return wanted
