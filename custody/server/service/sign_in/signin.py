"""Signing in: the password, then the second factor of the account, a mailed code or an authenticator's."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from hmac import compare_digest
from typing import Final

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from custody.schemas.auth import LoginRequest
from custody.server.domain.credentials import (
    CALLS_PER_ADDRESS,
    CALLS_PER_ADDRESS_WINDOW,
    OTP_CHALLENGES_PER_WINDOW,
    OTP_LIFETIME,
    OTP_TRIES,
    OTP_TRIES_PER_WINDOW,
    OTP_WINDOW,
    new_otp,
    new_token,
    otp_hash,
    plain_code,
    token_hash,
)
from custody.server.domain.errors import (
    MailRefused,
    MailUnavailable,
    OtpInvalid,
    RateLimited,
    SignInOver,
    Unauthenticated,
)
from custody.server.domain.ports import Clock, RandomBytes
from custody.server.service.audit.log import AuditLog
from custody.server.service.mail.jobs import TEXTS, Template, queue_mail
from custody.server.service.mail.mailer import Mail, Mailer
from custody.server.service.requests.rates import Throttle, caller_at
from custody.server.service.sign_in.accounts import Passwords, find_credential, record_about
from custody.server.service.sign_in.passkeys import Assertion, Passkeys
from custody.server.service.sign_in.passwords import Guesses
from custody.server.service.sign_in.second_factor import Authenticators
from custody.server.service.sign_in.sessions import Sessions, Tokens
from custody.server.store import Store
from custody.server.store.models import Credential, OtpChallenge, SignInSession, User

# The code hash of a challenge that makes a passkey.
NO_CODE: Final = b""


@dataclass(frozen=True)
class ClientInfo:
    """What a client says about itself at sign-in."""

    device: str | None
    location: str | None


@dataclass(frozen=True)
class CodeAwaited:
    """The password was right, and a code must follow with ``token_2fa``. ``method``: email or totp.

    ``passkey``: what a browser may sign instead of a code, as JSON; empty without a passkey.
    """

    token_2fa: str = field(repr=False)
    method: str
    challenge_id: int
    mail: Mail | None = field(repr=False)
    passkey: str


class Challenges:
    def __init__(
        self,
        store: Store,
        clock: Clock,
        random: RandomBytes,
        mailer: Mailer,
        authenticators: Authenticators,
        passkeys: Passkeys,
    ) -> None:
        self._store = store
        self._clock = clock
        self._random = random
        self._mailer = mailer
        self._authenticators = authenticators
        self._passkeys = passkeys

    def open(
        self,
        db: Session,
        user: User,
        credential: Credential,
        client: ClientInfo,
        session_id: int | None = None,
    ) -> CodeAwaited:
        """Adds a challenge in the caller's transaction; call ``deliver`` after it. Raises RateLimited.

        ``session_id``: the session that proves its second factor once more; None for a sign-in.
        """
        self._check_budget(db, user.id, session_id)
        token, now = new_token(self._random), self._clock()
        # An account without a second factor that is being guessed at gets a mailed code.
        method = "totp" if credential.second_factor == "totp" else "email"
        code = new_otp(self._random) if method == "email" else None
        challenge = OtpChallenge(
            user_id=user.id,
            token_hash=token_hash(token),
            code_hash=None if code is None else otp_hash(code, token),
            tries=0,
            device=client.device,
            location=client.location,
            created_at=now,
            expires_at=now + OTP_LIFETIME,
            session_id=session_id,
        )
        db.add(challenge)
        db.flush()
        template = Template.CODE if session_id is None else Template.CONFIRMATION_CODE
        mail = None if code is None else _code_mail(template, user.email, code)
        passkey = self._passkeys.request(db, user.id, challenge.token_hash)
        return CodeAwaited(token, method, challenge.id, mail, passkey)

    def offer(self, db: Session, user_id: int, session_id: int) -> tuple[str, bytes]:
        """A token, and the challenge with which a browser makes a passkey. No code answers it, so it counts
        for no budget of codes.
        """
        token, now = new_token(self._random), self._clock()
        challenge = OtpChallenge(
            user_id=user_id,
            token_hash=token_hash(token),
            code_hash=NO_CODE,
            tries=0,
            created_at=now,
            expires_at=now + OTP_LIFETIME,
            session_id=session_id,
        )
        db.add(challenge)
        return token, challenge.token_hash

    def offered(self, db: Session, token: str, session_id: int) -> OtpChallenge | None:
        """The open challenge of `offer`."""
        challenge = _stored(db, token, session_id)
        is_open = challenge is not None and challenge.code_hash == NO_CODE and not self._why_over(challenge)
        return challenge if is_open else None

    def deliver(self, awaited: CodeAwaited) -> None:
        """Mails the code while the caller waits. It is stored nowhere, so it cannot wait in the outbox.

        Raises MailUnavailable or MailRefused; such a challenge does not count against its account.
        """
        if awaited.mail is None:
            return
        try:
            self._mailer.send(awaited.mail)
        except (MailUnavailable, MailRefused):
            with self._store.write() as db:
                db.delete(db.get_one(OtpChallenge, awaited.challenge_id))
            raise

    def find(self, db: Session, token_2fa: str, session_id: int | None = None) -> OtpChallenge | None:
        """The open challenge of a token: only of a sign-in, or only of that session.

        Raises RateLimited where its account has no tries left (P38).
        """
        challenge = _stored(db, token_2fa, session_id)
        if challenge is None or challenge.code_hash == NO_CODE or self._why_over(challenge):
            return None
        # Challenges that a thief collected before the first try give no further tries.
        if self._recent(db, challenge.user_id, session_id)[1] >= OTP_TRIES_PER_WINDOW:
            raise _too_many()
        return challenge

    def refusal(self, db: Session, token_2fa: str) -> OtpInvalid:
        """Why a code was refused. An unknown token reads like a wrong code."""
        challenge = _stored(db, token_2fa, None)
        if challenge is not None and (why := self._why_over(challenge)):
            return SignInOver(f"This sign-in is over: {why}.")
        return OtpInvalid("The code is wrong, was used, or has expired.")

    def _why_over(self, challenge: OtpChallenge) -> str:
        """Empty while it is open."""
        if challenge.closed_at is not None:
            if challenge.tries >= OTP_TRIES:
                return "too many wrong codes were given"
            return "it was used, or the password or the second factor has changed since"
        return "" if challenge.expires_at > self._clock() else "its time has passed"

    def judge(
        self, db: Session, challenge: OtpChallenge, token_2fa: str, given: str | Assertion
    ) -> str | None:
        """Counts a try. Returns what a right code, or a passkey's answer, proves, in words. That or the last
        try closes the challenge.
        """
        challenge.tries += 1
        proof = self._proof(db, challenge, token_2fa, given)
        if proof is not None or challenge.tries >= OTP_TRIES:
            challenge.closed_at = self._clock()
        if proof is None and challenge.closed_at is not None:
            email = db.get_one(User, challenge.user_id).email
            queue_mail(db, Template.SECOND_FACTOR_FAILED, email, {}, now=self._clock())
        return proof

    def _proof(
        self, db: Session, challenge: OtpChallenge, token_2fa: str, given: str | Assertion
    ) -> str | None:
        if isinstance(given, Assertion):
            # The hash of a token is as hard to foresee as the token, and is stored.
            return self._passkeys.accepts(db, challenge.user_id, challenge.token_hash, given)
        if challenge.code_hash is None:
            return self._authenticators.accepts(db, challenge.user_id, given)
        is_right = compare_digest(challenge.code_hash, otp_hash(plain_code(given), token_2fa))
        return "with a mailed code" if is_right else None

    def _check_budget(self, db: Session, user_id: int, session_id: int | None) -> None:
        challenges, tries = self._recent(db, user_id, session_id)
        if challenges >= OTP_CHALLENGES_PER_WINDOW or tries >= OTP_TRIES_PER_WINDOW:
            raise _too_many()

    def _recent(self, db: Session, user_id: int, session_id: int | None) -> tuple[int, int]:
        """How many challenges an account had in the window, and how many tries were made on them. Those of
        the sessions that one organisation's identity provider opened count apart: a hostile provider keeps no
        owner from signing in (P77).
        """
        bound_to = None if session_id is None else db.get_one(SignInSession, session_id).bound_to
        query = (
            select(func.count(), func.coalesce(func.sum(OtpChallenge.tries), 0))
            .outerjoin(SignInSession, SignInSession.id == OtpChallenge.session_id)
            .where(
                OtpChallenge.user_id == user_id,
                OtpChallenge.created_at > self._clock() - OTP_WINDOW,
                OtpChallenge.code_hash.is_distinct_from(NO_CODE),
                SignInSession.bound_to.is_not_distinct_from(bound_to),
            )
        )
        challenges, tries = db.execute(query).one()
        return int(challenges), int(tries)


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
    ) -> None:
        self._store = store
        self._audit = audit
        self._sessions = sessions
        self._passwords = passwords
        self._guesses = guesses
        self._challenges = challenges
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
        if not self._passwords.matches(found[1].password_hash if found else None, password) or found is None:
            self._record_failure(found[0] if found else None, trace_id)
            raise _refused()
        client = ClientInfo(request.device, request.location)
        with self._proven(*found, password) as (db, credential):
            self._guesses.forget(db, request.email, address, anywhere=not is_guessed_at)
            if credential.second_factor == "none" and not is_guessed_at:
                return self._finish(db, found[0].id, client, trace_id, "with the password alone")
            result = self._challenges.open(db, found[0], credential, client)
        self._challenges.deliver(result)
        return result

    def another_code(self, token_2fa: str) -> CodeAwaited:
        """Another code for a sign-in whose password was right; the one before stays valid for its time.
        Raises SignInOver where no such sign-in waits, RateLimited, MailUnavailable, MailRefused.
        """
        with self._store.write() as db:
            waiting = self._challenges.find(db, token_2fa)
            if waiting is None:
                raise SignInOver("This sign-in is over: no other code is mailed for it.")
            user, credential = db.get_one(User, waiting.user_id), db.get_one(Credential, waiting.user_id)
            client = ClientInfo(waiting.device, waiting.location)
            result = self._challenges.open(db, user, credential, client)
        self._challenges.deliver(result)
        return result

    def validate_code(self, token_2fa: str, given: str | Assertion, trace_id: str) -> SignedIn:
        """``given``: a code, or a passkey's answer. Raises OtpInvalid, with one text for a wrong code, one of
        another sign-in and an unknown token; SignInOver from the try on that ends the sign-in; RateLimited.
        Each try counts (P38).
        """
        with self._store.write() as db:
            challenge = self._challenges.find(db, token_2fa)
            if challenge is not None:
                proof = self._challenges.judge(db, challenge, token_2fa, given)
                if proof is not None:
                    client = ClientInfo(challenge.device, challenge.location)
                    return self._finish(db, challenge.user_id, client, trace_id, proof, is_proven=True)
                record_about(self._audit, db, db.get_one(User, challenge.user_id), "OTP_REFUSED", trace_id)
            refused = self._challenges.refusal(db, token_2fa)
        raise refused

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


def _stored(db: Session, token_2fa: str, session_id: int | None) -> OtpChallenge | None:
    query = select(OtpChallenge).where(
        OtpChallenge.token_hash == token_hash(token_2fa),
        OtpChallenge.session_id.is_not_distinct_from(session_id),
    )
    return db.scalars(query).one_or_none()


def _refused() -> Unauthenticated:
    return Unauthenticated("The e-mail address or the password is wrong.")


def _too_many() -> RateLimited:
    return RateLimited("Too many codes were asked for or tried.", retry_after=int(OTP_WINDOW.total_seconds()))


def _code_mail(template: Template, email: str, code: str) -> Mail:
    minutes = int(OTP_LIFETIME.total_seconds() // 60)
    return TEXTS[template].fill(email, {"code": code, "minutes": str(minutes)}, public_url=None)
