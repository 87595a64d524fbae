"""A sign-in that waits for its second factor: the mailed code, or the authenticator's."""

from dataclasses import dataclass, field
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
from custody.server.service.mail.jobs import queue_mail
from custody.server.service.mail.mailer import Mail, Mailer
from custody.server.service.mail.texts import TEXTS, Template
from custody.server.service.sign_in.totp import Authenticators
from custody.server.store import Store
from custody.server.store.models import Credential, OtpChallenge, User


@dataclass(frozen=True)
class Where:
    """What a client says of itself at sign-in."""

    device: str | None
    location: str | None


@dataclass(frozen=True)
class CodeAwaited:
    """The password was right; a code must follow, with ``token_2fa``. ``method``: email or totp."""

    token_2fa: str = field(repr=False)
    method: str
    challenge_id: int
    mail: Mail | None = field(repr=False)


class Challenges:
    def __init__(
        self, store: Store, clock: Clock, random: RandomBytes, mailer: Mailer, authenticators: Authenticators
    ) -> None:
        self._store = store
        self._clock = clock
        self._random = random
        self._mailer = mailer
        self._authenticators = authenticators

    def open(self, db: Session, user: User, credential: Credential, where: Where) -> CodeAwaited:
        """A new challenge in the caller's transaction; ``deliver`` comes after it. Raises RateLimited."""
        self._check_budget(db, user.id)
        token, now = new_token(self._random), self._clock()
        code = new_otp(self._random) if credential.second_factor == "email" else None
        challenge = OtpChallenge(
            user_id=user.id,
            token_hash=token_hash(token),
            code_hash=None if code is None else otp_hash(code, token),
            tries=0,
            device=where.device,
            location=where.location,
            created_at=now,
            expires_at=now + OTP_LIFETIME,
        )
        db.add(challenge)
        db.flush()
        mail = None if code is None else _code_mail(user.email, code)
        return CodeAwaited(token, credential.second_factor, challenge.id, mail)

    def deliver(self, awaited: CodeAwaited) -> None:
        """Mails the code while its reader waits: it is stored nowhere, and so cannot wait in the outbox.

        Raises MailUnavailable or MailRefused, and then the challenge does not count against its account.
        """
        if awaited.mail is None:
            return
        try:
            self._mailer.send(awaited.mail)
        except (MailUnavailable, MailRefused):
            with self._store.write() as db:
                db.delete(db.get_one(OtpChallenge, awaited.challenge_id))
            raise

    def find(self, db: Session, token_2fa: str) -> OtpChallenge | None:
        """The open challenge of a token. Raises RateLimited where its account's tries are used up (P38)."""
        challenge = db.scalars(
            select(OtpChallenge).where(
                OtpChallenge.token_hash == token_hash(token_2fa),
                OtpChallenge.closed_at.is_(None),
                OtpChallenge.expires_at > self._clock(),
            )
        ).one_or_none()
        # Challenges gathered before the first try must not bring tries of their own.
        if challenge is not None and self._recent(db, challenge.user_id)[1] >= OTP_TRIES_PER_WINDOW:
            raise _too_many()
        return challenge

    def judge(self, db: Session, challenge: OtpChallenge, token_2fa: str, code: str) -> str | None:
        """Counts a try; what was proven, in words, where the code is right. Right or the last try closes."""
        challenge.tries += 1
        proof = self._proof(db, challenge, token_2fa, code)
        if proof is not None or challenge.tries >= OTP_TRIES:
            challenge.closed_at = self._clock()
        if proof is None and challenge.closed_at is not None:
            email = db.get_one(User, challenge.user_id).email
            queue_mail(db, Template.SECOND_FACTOR_FAILED, email, {}, now=self._clock())
        return proof

    def _proof(self, db: Session, challenge: OtpChallenge, token_2fa: str, code: str) -> str | None:
        if challenge.code_hash is None:
            return self._authenticators.accepts(db, challenge.user_id, code)
        is_right = compare_digest(challenge.code_hash, otp_hash(plain_code(code), token_2fa))
        return "with a mailed code" if is_right else None

    def _check_budget(self, db: Session, user_id: int) -> None:
        challenges, tries = self._recent(db, user_id)
        if challenges >= OTP_CHALLENGES_PER_WINDOW or tries >= OTP_TRIES_PER_WINDOW:
            raise _too_many()

    def _recent(self, db: Session, user_id: int) -> tuple[int, int]:
        """How many codes an account was asked for in the window, and how many tries they took."""
        query = select(func.count(), func.coalesce(func.sum(OtpChallenge.tries), 0)).where(
            OtpChallenge.user_id == user_id, OtpChallenge.created_at > self._clock() - OTP_WINDOW
        )
        challenges, tries = db.execute(query).one()
        return int(challenges), int(tries)


def _too_many() -> RateLimited:
    return RateLimited("Too many codes were asked for or tried.", retry_after=int(OTP_WINDOW.total_seconds()))


def _code_mail(email: str, code: str) -> Mail:
    minutes = int(OTP_LIFETIME.total_seconds() // 60)
    return TEXTS[Template.CODE].fill(email, {"code": code, "minutes": str(minutes)}, public_url=None)
