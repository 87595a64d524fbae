"""Signing in: the password, then the second factor where the account has one."""

from dataclasses import dataclass

from sqlalchemy.orm import Session

from custody.schemas.auth import LoginRequest
from custody.server.domain.credentials import CALLS_PER_ADDRESS, CALLS_PER_ADDRESS_WINDOW
from custody.server.domain.errors import OtpInvalid, Unauthenticated
from custody.server.domain.ports import Clock
from custody.server.service.audit.log import AuditLog
from custody.server.service.sign_in.accounts import find_credential, record_about
from custody.server.service.sign_in.challenges import Challenges, CodeAwaited, Where
from custody.server.service.sign_in.passwords import Passwords
from custody.server.service.sign_in.sessions import Sessions, Tokens
from custody.server.service.sign_in.throttle import AttemptLimit, Throttle, caller_at
from custody.server.store import Store
from custody.server.store.models import Credential, User


@dataclass(frozen=True)
class SignedIn:
    user_id: int
    tokens: Tokens


class SignIn:
    def __init__(
        self,
        store: Store,
        clock: Clock,
        audit: AuditLog,
        sessions: Sessions,
        passwords: Passwords,
        failures: AttemptLimit,
        challenges: Challenges,
    ) -> None:
        self._store = store
        self._audit = audit
        self._sessions = sessions
        self._passwords = passwords
        self._failures = failures
        self._challenges = challenges
        self._calls = Throttle(clock, limit=CALLS_PER_ADDRESS, window=CALLS_PER_ADDRESS_WINDOW)

    def admit(self, address: str) -> None:
        """Counts a sign-in call from an address. Raises RateLimited."""
        self._calls.take(caller_at(address))

    def login(self, request: LoginRequest, trace_id: str) -> SignedIn | CodeAwaited:
        """Raises Unauthenticated, alike for a wrong password and an unknown account; RateLimited; MailUnavailable."""
        self._failures.take(request.email)
        password = request.password.get_secret_value()
        with self._store.read() as db:
            found = find_credential(db, request.email)
        if not self._passwords.matches(found[1].password_hash if found else None, password) or found is None:
            self._record_failure(found[0] if found else None, trace_id)
            raise _refused()
        result = self._go_on(*found, password, Where(request.device, request.location), trace_id)
        if isinstance(result, CodeAwaited):
            self._challenges.deliver(result)
        return result

    def validate_code(self, token_2fa: str, code: str, trace_id: str) -> SignedIn:
        """Raises OtpInvalid, alike for a wrong, used, expired or foreign code; each try counts (P38). RateLimited."""
        with self._store.write() as db:
            challenge = self._challenges.find(db, token_2fa)
            if challenge is not None:
                proof = self._challenges.judge(db, challenge, token_2fa, code)
                if proof is not None:
                    where = Where(challenge.device, challenge.location)
                    return self._finish(db, challenge.user_id, where, trace_id, proof)
                record_about(self._audit, db, db.get_one(User, challenge.user_id), "OTP_REFUSED", trace_id)
        raise OtpInvalid("The code is wrong, was used, or has expired.")

    def _go_on(
        self, user: User, verified: Credential, password: str, where: Where, trace_id: str
    ) -> SignedIn | CodeAwaited:
        renewed = self._renewed_hash(verified.password_hash, password)
        with self._store.write() as db:
            credential = db.get_one(Credential, user.id)
            # Hashing takes its time: a password that was changed meanwhile is a wrong one.
            if credential.password_hash != verified.password_hash:
                raise _refused()
            credential.password_hash = renewed or credential.password_hash
            self._failures.forget(db, user.email)
            if credential.second_factor == "none":
                return self._finish(db, user.id, where, trace_id, "with the password alone")
            return self._challenges.open(db, user, credential, where)

    def _finish(self, db: Session, user_id: int, where: Where, trace_id: str, proof: str) -> SignedIn:
        user = db.get_one(User, user_id)
        tokens = self._sessions.open(db, user, where.device, where.location)
        record_about(self._audit, db, user, "SIGNED_IN", trace_id, proof)
        return SignedIn(user.id, tokens)

    def _renewed_hash(self, stored: str, password: str) -> str | None:
        return self._passwords.hash(password) if self._passwords.is_outdated(stored) else None

    def _record_failure(self, user: User | None, trace_id: str) -> None:
        """Written for an unknown account too, for it takes time; without what was typed, which may be a password."""
        with self._store.write() as db:
            record_about(self._audit, db, user, "SIGN_IN_REFUSED", trace_id)


def _refused() -> Unauthenticated:
    return Unauthenticated("The e-mail address or the password is wrong.")
