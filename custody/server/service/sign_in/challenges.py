"""The second factor's challenge: a code that is mailed or an authenticator's, and its tries."""

from dataclasses import dataclass, field
from datetime import datetime
from hmac import compare_digest

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from custody.server.domain.credentials import (
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
from custody.server.domain.errors import MailRefused, MailUnavailable, RateLimited
from custody.server.domain.ports import Clock, RandomBytes
from custody.server.service.mail.jobs import TEXTS, Template, queue_mail
from custody.server.service.mail.mailer import Mail, Mailer
from custody.server.service.sign_in.passkeys import Assertion, Passkeys
from custody.server.service.sign_in.second_factor import Authenticators
from custody.server.store import Store
from custody.server.store.models import Credential, OtpChallenge, Registration, SignInSession, User


@dataclass(frozen=True)
class ClientInfo:
    """What a client says about itself at sign-in."""

    device: str | None
    location: str | None


@dataclass(frozen=True)
class CodeAwaited:
    """The password was right, and a code must follow with ``token_2fa``. ``method``: email or totp.

    ``challenge_id``: None of a registration. ``passkey``: what a browser may sign in the place of a code, as
    JSON; empty without a passkey.
    """

    token_2fa: str = field(repr=False)
    method: str
    challenge_id: int | None
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

        ``session_id``: the session that is to prove the second factor once more, where no sign-in is meant.
        """
        self._check_budget(db, user.id, session_id)
        token, now = new_token(self._random), self._clock()
        # Of an account without a second factor that is being guessed at, a mailed one.
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
        mail = None if code is None else code_mail(template, user.email, code)
        passkey = self._passkeys.request(db, user.id, challenge.token_hash)
        return CodeAwaited(token, method, challenge.id, mail, passkey)

    def deliver(self, awaited: CodeAwaited) -> None:
        """Mails the code while the caller waits. It is stored nowhere, so it cannot wait in the outbox.

        Raises MailUnavailable or MailRefused; such a challenge does not count against its account.
        """
        if awaited.mail is None:
            return
        try:
            self._mailer.send(awaited.mail)
        except (MailUnavailable, MailRefused):
            if awaited.challenge_id is not None:
                with self._store.write() as db:
                    db.delete(db.get_one(OtpChallenge, awaited.challenge_id))
            raise

    def find(self, db: Session, token_2fa: str, session_id: int | None = None) -> OtpChallenge | None:
        """The open challenge of a token: of a sign-in, or of that session. Neither does for the other.

        Raises RateLimited where its account has no tries left (P38).
        """
        challenge = stored_challenge(db, token_2fa, session_id)
        if challenge is None or why_over(challenge, self._clock()):
            return None
        # Challenges that a thief collected before the first try bring no tries of their own.
        if self._recent(db, challenge.user_id, session_id)[1] >= OTP_TRIES_PER_WINDOW:
            raise _too_many()
        return challenge

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
        the sessions that one organisation's identity provider opened count apart: who holds the provider
        keeps no owner from signing in (P77).
        """
        bound_to = None if session_id is None else db.get_one(SignInSession, session_id).bound_to
        query = (
            select(func.count(), func.coalesce(func.sum(OtpChallenge.tries), 0))
            .outerjoin(SignInSession, SignInSession.id == OtpChallenge.session_id)
            .where(
                OtpChallenge.user_id == user_id,
                OtpChallenge.created_at > self._clock() - OTP_WINDOW,
                SignInSession.bound_to.is_not_distinct_from(bound_to),
            )
        )
        challenges, tries = db.execute(query).one()
        return int(challenges), int(tries)


def stored_challenge(db: Session, token_2fa: str, session_id: int | None = None) -> OtpChallenge | None:
    query = select(OtpChallenge).where(
        OtpChallenge.token_hash == token_hash(token_2fa),
        OtpChallenge.session_id.is_not_distinct_from(session_id),
    )
    return db.scalars(query).one_or_none()


def why_over(challenge: OtpChallenge | Registration, now: datetime) -> str:
    """Why no code does any more; empty while it is open."""
    if challenge.closed_at is not None:
        if challenge.tries >= OTP_TRIES:
            return "too many wrong codes were given"
        return "it was used, or the password or the second factor has changed since"
    return "" if challenge.expires_at > now else "its time has passed"


def _too_many() -> RateLimited:
    return RateLimited("Too many codes were asked for or tried.", retry_after=int(OTP_WINDOW.total_seconds()))


def code_mail(template: Template, email: str, code: str) -> Mail:
    minutes = int(OTP_LIFETIME.total_seconds() // 60)
    return TEXTS[template].fill(email, {"code": code, "minutes": str(minutes)}, public_url=None)
