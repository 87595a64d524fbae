"""Signing in: the password, then the second factor of the account, a mailed code or an authenticator's."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from sqlalchemy.orm import Session

from custody.schemas.auth import LoginRequest, RegisterRequest
from custody.server.domain.credentials import CALLS_PER_ADDRESS, CALLS_PER_ADDRESS_WINDOW
from custody.server.domain.errors import OtpInvalid, SignInOver, Unauthenticated
from custody.server.domain.ports import Clock
from custody.server.service.audit.log import AuditLog
from custody.server.service.requests.rates import Throttle, caller_at
from custody.server.service.sign_in.accounts import Passwords, find_credential, record_about
from custody.server.service.sign_in.challenges import (
    Challenges,
    ClientInfo,
    CodeAwaited,
    stored_challenge,
    why_over,
)
from custody.server.service.sign_in.passkeys import Assertion
from custody.server.service.sign_in.passwords import Guesses
from custody.server.service.sign_in.registering import Registrations, stored_registration
from custody.server.service.sign_in.sessions import Sessions, Tokens
from custody.server.store import Store
from custody.server.store.models import Credential, Registration, User


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
        guesses: Guesses,
        challenges: Challenges,
        registrations: Registrations,
    ) -> None:
        self._store = store
        self._clock = clock
        self._audit = audit
        self._sessions = sessions
        self._passwords = passwords
        self._guesses = guesses
        self._challenges = challenges
        self._registrations = registrations
        self._calls = Throttle(clock, limit=CALLS_PER_ADDRESS, window=CALLS_PER_ADDRESS_WINDOW)

    def admit(self, address: str) -> None:
        """Counts a sign-in call from an address. Raises RateLimited."""
        self._calls.take(caller_at(address))

    def login(self, request: LoginRequest, address: str, trace_id: str) -> SignedIn | CodeAwaited:
        """Raises Unauthenticated, with one text for a wrong password and an unknown account; RateLimited;
        MailUnavailable.
        """
        is_guessed_at = self._guesses.take(request.email, address)
        password = request.password.get_secret_value()
        with self._store.read() as db:
            found = find_credential(db, request.email)
            asked = self._registrations.newest(db, request.email)
        client = ClientInfo(request.device, request.location)
        if not self._passwords.matches(found[1].password_hash if found else None, password) or found is None:
            # Also of an address that has an account: its answer must not tell (P39).
            if asked is not None and self._passwords.matches(asked.password_hash, password):
                return self._registering(asked, client)
            self._record_failure(found[0] if found else None, trace_id)
            raise _refused()
        with self._proven(*found, password) as (db, credential):
            self._guesses.forget(db, request.email, address, anywhere=not is_guessed_at)
            if credential.second_factor == "none" and not is_guessed_at:
                return self._finish(db, found[0].id, client, trace_id, "with the password alone")
            result = self._challenges.open(db, found[0], credential, client)
        self._challenges.deliver(result)
        return result

    def register(self, request: RegisterRequest, device: str, trace_id: str) -> CodeAwaited:
        """Registering and the first sign-in at once: one mail. Raises as ``Registrations.ask``, and
        MailUnavailable, MailRefused.
        """
        asked = self._registrations.ask(request, trace_id, is_signing_in=True)
        return self._registering(asked, ClientInfo(device, None))

    def _registering(self, asked: Registration, client: ClientInfo) -> CodeAwaited:
        with self._store.write() as db:
            registration = db.get(Registration, asked.id)
            if registration is None:
                raise _refused()
            result = self._registrations.code(db, registration, client)
        self._challenges.deliver(result)
        return result

    def another_code(self, token_2fa: str) -> CodeAwaited:
        """A code more for a sign-in whose password was right; the one before stays good for its time, but of
        a registration the newest alone is. Raises SignInOver where no such sign-in waits, RateLimited,
        MailUnavailable, MailRefused.
        """
        with self._store.write() as db:
            waiting = self._challenges.find(db, token_2fa)
            registration = self._registrations.find(db, token_2fa) if waiting is None else None
            if registration is not None:
                client = ClientInfo(registration.device, registration.location)
                result = self._registrations.code(db, registration, client)
            elif waiting is not None:
                user, credential = db.get_one(User, waiting.user_id), db.get_one(Credential, waiting.user_id)
                client = ClientInfo(waiting.device, waiting.location)
                result = self._challenges.open(db, user, credential, client)
            else:
                raise SignInOver("This sign-in is over: no other code is mailed for it.")
        self._challenges.deliver(result)
        return result

    def validate_code(self, token_2fa: str, given: str | Assertion, trace_id: str) -> SignedIn:
        """``given``: a code, or a passkey's answer. Raises OtpInvalid, with one text for one that is wrong or
        of another sign-in and for an unknown token; SignInOver by the try that ends the sign-in and after it;
        RateLimited. Each try counts (P38).
        """
        with self._store.write() as db:
            challenge = self._challenges.find(db, token_2fa)
            if challenge is not None:
                proof = self._challenges.judge(db, challenge, token_2fa, given)
                if proof is not None:
                    client = ClientInfo(challenge.device, challenge.location)
                    return self._finish(db, challenge.user_id, client, trace_id, proof, is_proven=True)
                record_about(self._audit, db, db.get_one(User, challenge.user_id), "OTP_REFUSED", trace_id)
            elif registration := self._registrations.find(db, token_2fa):
                client = ClientInfo(registration.device, registration.location)
                user = self._registrations.confirm(db, registration, token_2fa, given, trace_id)
                if user is not None:
                    return self._finish(db, user.id, client, trace_id, "with a mailed code", is_proven=True)
            refused = self._refusal(db, token_2fa)
        raise refused

    def _refusal(self, db: Session, token_2fa: str) -> OtpInvalid:
        """Why a code did not do. An unknown token reads like a wrong code."""
        waiting = stored_challenge(db, token_2fa) or stored_registration(db, token_2fa)
        if waiting is not None and (why := why_over(waiting, self._clock())):
            return SignInOver(f"This sign-in is over: {why}.")
        return OtpInvalid("The code is wrong, was used, or has expired.")

    @contextmanager
    def _proven(
        self, user: User, verified: Credential, password: str
    ) -> Iterator[tuple[Session, Credential]]:
        """The transaction of a right password. Raises Unauthenticated."""
        renewed = self._renewed_hash(verified.password_hash, password)
        with self._store.write() as db:
            credential = db.get_one(Credential, user.id)
            # Hashing takes time: a password that was changed during it is a wrong one.
            if credential.password_hash != verified.password_hash:
                raise _refused()
            credential.password_hash = renewed or credential.password_hash
            yield db, credential

    def _finish(
        self,
        db: Session,
        user_id: int,
        client: ClientInfo,
        trace_id: str,
        proof: str,
        *,
        is_proven: bool = False,
    ) -> SignedIn:
        user = db.get_one(User, user_id)
        tokens = self._sessions.open(db, user, client.device, client.location, is_proven=is_proven)
        record_about(self._audit, db, user, "SIGNED_IN", trace_id, proof)
        return SignedIn(user.id, tokens)

    def _renewed_hash(self, stored: str, password: str) -> str | None:
        return self._passwords.hash(password) if self._passwords.is_outdated(stored) else None

    def _record_failure(self, user: User | None, trace_id: str) -> None:
        """Recorded for an unknown account too, so that both take the same time, and without the text that was
        typed: it may be a password.
        """
        with self._store.write() as db:
            record_about(self._audit, db, user, "SIGN_IN_REFUSED", trace_id)


def _refused() -> Unauthenticated:
    return Unauthenticated("The e-mail address or the password is wrong.")
