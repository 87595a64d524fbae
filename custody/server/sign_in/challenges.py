"""Challenges: what a code answers, mailed or of an authenticator, or a passkey; at a sign-in, or when a
session proves its second factor once more.
"""

from contextlib import suppress
from dataclasses import dataclass, field
from hmac import compare_digest
from typing import Final

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from custody.schemas.auth import SecondFactor
from custody.server.calls import Ctx, In, Steps
from custody.server.errors import MailRefused, MailUnavailable, OtpInvalid, RateLimited, SignInOver
from custody.server.mail.jobs import Template, queue_mail
from custody.server.requests.rates import AttemptLimit
from custody.server.rules.credentials import (
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
from custody.server.sign_in.passkeys import Assertion
from custody.server.sign_in.second_factor import code_proof
from custody.server.store.models import CredentialRow, OtpChallengeRow, SignInSessionRow, UserRow

# The code hash of a challenge that makes a passkey.
NO_CODE: Final = b""
_WRONG_UNTOLD: Final = AttemptLimit("wrong-code", OTP_TRIES - 1, OTP_WINDOW)
_MAILS: Final = AttemptLimit("wrong-codes-mail", 1, OTP_WINDOW)


@dataclass(frozen=True)
class CodeAwaited:
    """A code must follow with ``token_2fa``. ``method``: email or totp."""

    token_2fa: str = field(repr=False)
    method: SecondFactor


def ask_for_code(
    ctx: Ctx,
    user_id: int,
    device: str | None = None,
    location: str | None = None,
    *,
    session_id: int | None = None,
) -> Steps[CodeAwaited]:
    """Adds a challenge in the transaction that is open, ends that, and mails the code while the caller waits.
    The code is stored nowhere, so it cannot wait in the outbox. ``device``, ``location``: what the client
    says about itself. ``session_id``: the session that proves its second factor once more; None for a
    sign-in.

    Raises RateLimited, MailUnavailable, MailRefused; a challenge whose mail failed does not count against its
    account.
    """
    challenges, tries = _recent(ctx, user_id, session_id)
    if challenges >= OTP_CHALLENGES_PER_WINDOW or tries >= OTP_TRIES_PER_WINDOW:
        raise _too_many()
    token, now = new_token(ctx.tools.random), ctx.now
    second_factor = ctx.db.get_one(CredentialRow, user_id).second_factor
    # An account without a second factor that is being guessed at gets a mailed code.
    method: SecondFactor = "totp" if second_factor == "totp" else "email"
    code = new_otp(ctx.tools.random) if method == "email" else None
    challenge = OtpChallengeRow(
        user_id=user_id,
        token_hash=token_hash(token),
        code_hash=None if code is None else otp_hash(code, token),
        tries=0,
        device=device,
        location=location,
        created_at=now,
        expires_at=now + OTP_LIFETIME,
        session_id=session_id,
    )
    ctx.db.add(challenge)
    ctx.db.flush()
    challenge_id, email = challenge.id, ctx.db.get_one(UserRow, user_id).email
    text = (Template.CODE if session_id is None else Template.CONFIRMATION_CODE).value
    minutes = str(int(OTP_LIFETIME.total_seconds() // 60))
    ctx = yield In.NOTHING
    try:
        if code is not None:
            ctx.tools.mailer.send(text.fill(email, {"code": code, "minutes": minutes}, public_url=None))
    except (MailUnavailable, MailRefused):
        ctx = yield In.WRITE
        ctx.db.delete(ctx.db.get_one(OtpChallengeRow, challenge_id))
        yield In.NOTHING
        raise
    return CodeAwaited(token, method)


def passkey_request(ctx: Ctx, token_2fa: str, session_id: int | None = None) -> str:
    """What a browser may sign in the place of a code, as JSON; empty without a passkey."""
    challenge = _stored(ctx.db, token_2fa, session_id)
    if challenge is None or challenge.code_hash == NO_CODE:
        return ""
    return ctx.tools.passkeys.request(ctx.db, challenge.user_id, challenge.token_hash)


def offer_challenge(ctx: Ctx) -> tuple[str, bytes]:
    """A token, and the challenge with which the caller's browser makes a passkey. No code answers it, so it
    counts for no budget of codes.
    """
    token, now = new_token(ctx.tools.random), ctx.now
    challenge = OtpChallengeRow(
        user_id=ctx.caller.user_id,
        token_hash=token_hash(token),
        code_hash=NO_CODE,
        tries=0,
        created_at=now,
        expires_at=now + OTP_LIFETIME,
        session_id=ctx.caller.session_id,
    )
    ctx.db.add(challenge)
    return token, challenge.token_hash


def offered_challenge(ctx: Ctx, token: str) -> OtpChallengeRow | None:
    """The open challenge of `offer_challenge`."""
    challenge = _stored(ctx.db, token, ctx.caller.session_id)
    is_open = challenge is not None and challenge.code_hash == NO_CODE and not _why_over(ctx, challenge)
    return challenge if is_open else None


def find_challenge(ctx: Ctx, token_2fa: str, session_id: int | None = None) -> OtpChallengeRow | None:
    """The open challenge of a token: only of a sign-in, or only of that session.

    Raises RateLimited where its account has no tries left (P38).
    """
    challenge = _stored(ctx.db, token_2fa, session_id)
    if challenge is None or challenge.code_hash == NO_CODE or _why_over(ctx, challenge):
        return None
    # Challenges that a thief collected before the first try give no further tries.
    if _recent(ctx, challenge.user_id, session_id)[1] >= OTP_TRIES_PER_WINDOW:
        raise _too_many()
    return challenge


def refusal_of(ctx: Ctx, token_2fa: str) -> OtpInvalid:
    """Why a code was refused. An unknown token reads like a wrong code."""
    challenge = _stored(ctx.db, token_2fa, None)
    if challenge is not None and (why := _why_over(ctx, challenge)):
        return SignInOver(f"This sign-in is over: {why}.")
    return OtpInvalid("The code is wrong, was used, or has expired.")


def _why_over(ctx: Ctx, challenge: OtpChallengeRow) -> str:
    """Empty while it is open."""
    if challenge.closed_at is not None:
        if challenge.tries >= OTP_TRIES:
            return "too many wrong codes were given"
        return "it was used, or the password or the second factor has changed since"
    return "" if challenge.expires_at > ctx.now else "its time has passed"


def judge_code(ctx: Ctx, challenge: OtpChallengeRow, token_2fa: str, given: str | Assertion) -> str | None:
    """Counts a try. Returns what a right code, or a passkey's answer, proves, in words. That or the last try
    closes the challenge.
    """
    challenge.tries += 1
    proof = _proof(ctx, challenge, token_2fa, given)
    if proof is not None or challenge.tries >= OTP_TRIES:
        challenge.closed_at = ctx.now
    if proof is None:
        _count_wrong(ctx, challenge.user_id)
    return proof


def _count_wrong(ctx: Ctx, user_id: int) -> None:
    """Tells the owner of the fifth wrong code in an hour, over however many sign-ins, and once an hour."""
    try:
        _WRONG_UNTOLD.take(ctx.db, str(user_id), ctx.now)
    except RateLimited:
        with suppress(RateLimited):
            _MAILS.take(ctx.db, str(user_id), ctx.now)
            email = ctx.db.get_one(UserRow, user_id).email
            queue_mail(ctx.db, Template.WRONG_CODES, email, {}, now=ctx.now)


def _proof(ctx: Ctx, challenge: OtpChallengeRow, token_2fa: str, given: str | Assertion) -> str | None:
    if isinstance(given, Assertion):
        # The hash of a token is as hard to foresee as the token, and is stored.
        return ctx.tools.passkeys.accepts(ctx.db, challenge.user_id, challenge.token_hash, given)
    if challenge.code_hash is None:
        return code_proof(ctx, challenge.user_id, given)
    is_right = compare_digest(challenge.code_hash, otp_hash(plain_code(given), token_2fa))
    return "with a mailed code" if is_right else None


def _recent(ctx: Ctx, user_id: int, session_id: int | None) -> tuple[int, int]:
    """How many challenges an account had in the window, and how many tries were made on them. Those of the
    sessions that one organisation's identity provider opened count apart: a hostile provider keeps no owner
    from signing in (P77).
    """
    bound_to = None if session_id is None else ctx.db.get_one(SignInSessionRow, session_id).bound_to
    query = (
        select(func.count(), func.coalesce(func.sum(OtpChallengeRow.tries), 0))
        .outerjoin(SignInSessionRow, SignInSessionRow.id == OtpChallengeRow.session_id)
        .where(
            OtpChallengeRow.user_id == user_id,
            OtpChallengeRow.created_at > ctx.now - OTP_WINDOW,
            OtpChallengeRow.code_hash.is_distinct_from(NO_CODE),
            SignInSessionRow.bound_to.is_not_distinct_from(bound_to),
        )
    )
    challenges, tries = ctx.db.execute(query).one()
    return int(challenges), int(tries)


def _stored(db: Session, token_2fa: str, session_id: int | None) -> OtpChallengeRow | None:
    query = select(OtpChallengeRow).where(
        OtpChallengeRow.token_hash == token_hash(token_2fa),
        OtpChallengeRow.session_id.is_not_distinct_from(session_id),
    )
    return db.scalars(query).one_or_none()


def _too_many() -> RateLimited:
    return RateLimited("Too many codes were asked for or tried.", retry_after=int(OTP_WINDOW.total_seconds()))
