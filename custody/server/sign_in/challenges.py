"""Challenges: what a code answers, mailed or of an authenticator, or a passkey; at a sign-in, or when a
session proves its second factor once more, before a person changes who may do what; and the passkeys that
they then add to their account, or remove.
"""

from contextlib import suppress
from dataclasses import dataclass, field
from datetime import timedelta
from hmac import compare_digest
from typing import Final

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from custody.schemas.auth import SecondFactor
from custody.server import errors
from custody.server.calls import Ctx, In, Steps
from custody.server.mail.jobs import Template, queue_mail
from custody.server.requests.rates import AttemptLimit
from custody.server.rules import credentials
from custody.server.rules.audit import Category, Event
from custody.server.sign_in import passkeys
from custody.server.sign_in.accounts import require_password, require_still
from custody.server.sign_in.passkeys import Assertion
from custody.server.sign_in.second_factor import code_proof, mail_change, second_factor_of, set_factor
from custody.server.store.models import (
    CredentialRow,
    OtpChallengeRow,
    PasskeyRow,
    SignInSessionRow,
    UserRow,
)

STEPPED_UP = Event("STEPPED_UP", "// {proof}", Category.SIGN_IN)
STEP_UP_REFUSED = Event("STEP_UP_REFUSED", "", Category.SIGN_IN)
PASSKEY_ADDED = Event("PASSKEY_ADDED", "// {name}", Category.SIGN_IN)
PASSKEY_REMOVED = Event("PASSKEY_REMOVED", "// {name}", Category.SIGN_IN)
# So long a proof counts, the code of the sign-in among them: a treasurer who changes five limits gives one.
STEP_UP_LIFETIME: Final = timedelta(minutes=10)
# The code hash of a challenge that makes a passkey.
NO_CODE: Final = b""
_WRONG: Final = "The code is wrong, was used, or has expired."
_WRONG_UNTOLD: Final = AttemptLimit("wrong-code", credentials.OTP_TRIES - 1, credentials.OTP_WINDOW)
_MAILS: Final = AttemptLimit("wrong-codes-mail", 1, credentials.OTP_WINDOW)


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
    if challenges >= credentials.OTP_CHALLENGES_PER_WINDOW or tries >= credentials.OTP_TRIES_PER_WINDOW:
        raise _too_many()
    token = credentials.new_token(ctx.tools.random)
    # An account without a second factor that is being guessed at gets a mailed code.
    method: SecondFactor = "totp" if second_factor_of(ctx.db, user_id) == "totp" else "email"
    code = credentials.new_otp(ctx.tools.random) if method == "email" else None
    code_hash = None if code is None else credentials.otp_hash(code, token)
    challenge = _added(ctx, user_id, token, code_hash, session_id, device=device, location=location)
    ctx.db.flush()
    challenge_id, email = challenge.id, ctx.db.get_one(UserRow, user_id).email
    text = (Template.CODE if session_id is None else Template.CONFIRMATION_CODE).value
    minutes, time = str(int(credentials.OTP_LIFETIME.total_seconds() // 60)), _time_words(challenge)
    ctx = yield In.NOTHING
    try:
        if code is not None:
            values = {"code": code, "minutes": minutes, "time": time}
            ctx.tools.mailer.send(text.fill(email, values, public_url=None))
    except (errors.MailUnavailable, errors.MailRefused):
        ctx = yield In.WRITE
        ctx.db.delete(ctx.db.get_one(OtpChallengeRow, challenge_id))
        yield In.NOTHING
        raise
    return CodeAwaited(token, method)


def _added(
    ctx: Ctx, user_id: int, token: str, code_hash: bytes | None, session_id: int | None, **client: str | None
) -> OtpChallengeRow:
    challenge = OtpChallengeRow(
        user_id=user_id,
        token_hash=credentials.token_hash(token),
        code_hash=code_hash,
        tries=0,
        created_at=ctx.now,
        expires_at=ctx.now + credentials.OTP_LIFETIME,
        session_id=session_id,
        **client,
    )
    ctx.db.add(challenge)
    return challenge


def beside_code(ctx: Ctx, token_2fa: str, session_id: int | None = None) -> tuple[str, str]:
    """What a browser may sign in the place of a code, as JSON; empty without a passkey. When the code was
    asked for, as its mail says it; empty where none is awaited.
    """
    challenge = _stored(ctx.db, token_2fa, session_id)
    if challenge is None or challenge.code_hash == NO_CODE:
        return "", ""
    passkey = passkeys.request(ctx, challenge.user_id, challenge.token_hash)
    return passkey, _time_words(challenge)


def _time_words(challenge: OtpChallengeRow) -> str:
    return f"{challenge.created_at:%H:%M:%S}"


def find_challenge(ctx: Ctx, token_2fa: str, session_id: int | None = None) -> OtpChallengeRow | None:
    """The open challenge of a token: only of a sign-in, or only of that session.

    Raises RateLimited where its account has no tries left (P38).
    """
    challenge = _stored(ctx.db, token_2fa, session_id)
    if challenge is None or challenge.code_hash == NO_CODE or _why_over(ctx, challenge):
        return None
    # Challenges that a thief collected before the first try give no further tries.
    if _recent(ctx, challenge.user_id, session_id)[1] >= credentials.OTP_TRIES_PER_WINDOW:
        raise _too_many()
    return challenge


def refusal_of(ctx: Ctx, token_2fa: str) -> errors.OtpInvalid:
    """Why a code was refused. An unknown token reads like a wrong code."""
    challenge = _stored(ctx.db, token_2fa, None)
    if challenge is not None and (why := _why_over(ctx, challenge)):
        return errors.SignInOver(f"This sign-in is over: {why}.")
    return errors.OtpInvalid(_WRONG)


def _why_over(ctx: Ctx, challenge: OtpChallengeRow) -> str:
    """Empty while it is open."""
    if challenge.closed_at is not None:
        if challenge.tries >= credentials.OTP_TRIES:
            return "too many wrong codes were given"
        return "it was used, or the password or the second factor has changed since"
    return "" if challenge.expires_at > ctx.now else "its time has passed"


def judge_code(ctx: Ctx, challenge: OtpChallengeRow, token_2fa: str, given: str | Assertion) -> str | None:
    """Counts a try. Returns what a right code, or a passkey's answer, proves, in words. That or the last try
    closes the challenge.
    """
    challenge.tries += 1
    proof = _proof(ctx, challenge, token_2fa, given)
    if proof is not None or challenge.tries >= credentials.OTP_TRIES:
        challenge.closed_at = ctx.now
    if proof is None:
        _count_wrong(ctx, challenge.user_id)
    return proof


def _count_wrong(ctx: Ctx, user_id: int) -> None:
    """Tells the owner of the fifth wrong code in an hour, over however many sign-ins, and once an hour."""
    try:
        _WRONG_UNTOLD.take(ctx.db, str(user_id), ctx.now)
    except errors.RateLimited:
        with suppress(errors.RateLimited):
            _MAILS.take(ctx.db, str(user_id), ctx.now)
            email = ctx.db.get_one(UserRow, user_id).email
            queue_mail(ctx.db, Template.WRONG_CODES, email, {}, now=ctx.now)


def _proof(ctx: Ctx, challenge: OtpChallengeRow, token_2fa: str, given: str | Assertion) -> str | None:
    if isinstance(given, Assertion):
        # The hash of a token is as hard to foresee as the token, and is stored.
        return passkeys.accepts(ctx, challenge.user_id, challenge.token_hash, given)
    if challenge.code_hash is None:
        return code_proof(ctx, challenge.user_id, given)
    is_right = compare_digest(
        challenge.code_hash, credentials.otp_hash(credentials.plain_code(given), token_2fa)
    )
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
            OtpChallengeRow.created_at > ctx.now - credentials.OTP_WINDOW,
            OtpChallengeRow.code_hash.is_distinct_from(NO_CODE),
            SignInSessionRow.bound_to.is_not_distinct_from(bound_to),
        )
    )
    challenges, tries = ctx.db.execute(query).one()
    return int(challenges), int(tries)


def _stored(db: Session, token_2fa: str, session_id: int | None) -> OtpChallengeRow | None:
    query = select(OtpChallengeRow).where(
        OtpChallengeRow.token_hash == credentials.token_hash(token_2fa),
        OtpChallengeRow.session_id.is_not_distinct_from(session_id),
    )
    return db.scalars(query).one_or_none()


def _too_many() -> errors.RateLimited:
    return errors.RateLimited(
        "Too many codes were asked for or tried.", retry_after=int(credentials.OTP_WINDOW.total_seconds())
    )


def is_fresh(ctx: Ctx) -> bool:
    """Whether this session gave its proof lately."""
    proven_at = ctx.db.get_one(SignInSessionRow, ctx.caller.session_id).stepped_up_at
    return proven_at is not None and proven_at > ctx.now - STEP_UP_LIFETIME


def ask_for_proof() -> Steps[CodeAwaited | None]:
    """Mails a code where the account has mailed codes. None for an account without a second factor:
    `prove_by_password`. Raises as `ask_for_code`.
    """
    ctx = yield In.WRITE
    if second_factor_of(ctx.db, ctx.caller.user_id) == "none":
        return None
    return (yield from ask_for_code(ctx, ctx.caller.user_id, session_id=ctx.caller.session_id))


def prove_by_code(token: str, given: str | Assertion) -> Steps[None]:
    """Raises Invalid, with one text for a wrong, used, expired or foreign code, and RateLimited."""
    ctx = yield In.WRITE
    challenge = find_challenge(ctx, token, ctx.caller.session_id)
    proof = None if challenge is None else judge_code(ctx, challenge, token, given)
    if proof is not None:
        _note(ctx, proof)
        return
    ctx.event(STEP_UP_REFUSED)
    yield In.NOTHING
    raise errors.Invalid.at("/code", _WRONG)


def prove_by_password(password: str) -> Steps[None]:
    """For an account without a second factor. Raises Invalid, RateLimited."""
    known = yield from require_password(password)
    ctx = yield In.WRITE
    require_still(ctx, known)
    if second_factor_of(ctx.db, ctx.caller.user_id) != "none":
        raise errors.Invalid("This account has a second factor: give its code.")
    _note(ctx, "with the password alone")


def _note(ctx: Ctx, proof: str) -> None:
    ctx.db.get_one(SignInSessionRow, ctx.caller.session_id).stepped_up_at = ctx.now
    ctx.event(STEPPED_UP, proof=proof)


@dataclass(frozen=True)
class PasskeyOffer:
    """``options``: for the browser, as JSON. ``token``: identifies the challenge."""

    options: str
    token: str = field(repr=False)


def offer_passkey(ctx: Ctx) -> PasskeyOffer:
    """The challenge with which the caller's browser makes a passkey. No code answers it, so it counts for no
    budget of codes. Raises StateConflict.
    """
    token = credentials.new_token(ctx.tools.random)
    challenge = _added(ctx, ctx.caller.user_id, token, NO_CODE, ctx.caller.session_id)
    return PasskeyOffer(passkeys.creation(ctx, challenge.token_hash), token)


def add_passkey(ctx: Ctx, token: str, name: str, given: Assertion) -> None:
    """From then on a sign-in asks for a second factor. A session alone cannot add a passkey: its user must
    have proven the second factor recently. Raises Invalid, RateLimited, StateConflict.
    """
    if not is_fresh(ctx):
        raise errors.StateConflict("Show first that it is you, and add the passkey then.")
    challenge = _stored(ctx.db, token, ctx.caller.session_id)
    if challenge is None or challenge.code_hash != NO_CODE or _why_over(ctx, challenge):
        raise errors.Invalid("The request for a passkey has expired: try it again.")
    passkeys.add(ctx, name, challenge.token_hash, given)
    challenge.closed_at = ctx.now
    credential = ctx.db.get_one(CredentialRow, ctx.caller.user_id)
    if credential.second_factor == "none":
        set_factor(ctx.db, credential, "email", ctx.now, keep_session=ctx.caller.session_id)
    mail_change(ctx, ctx.caller.name, "a passkey, or what it asked for before")
    ctx.event(PASSKEY_ADDED, name=name)


def remove_passkey(ctx: Ctx, passkey_id: int) -> None:
    """Raises NotFound."""
    passkey = ctx.db.get(PasskeyRow, passkey_id)
    if passkey is None or passkey.user_id != ctx.caller.user_id:
        raise errors.NotFound("You have no such passkey.")
    ctx.db.delete(passkey)
    mail_change(ctx, ctx.caller.name, "what it asked for before, without one passkey")
    ctx.event(PASSKEY_REMOVED, name=passkey.name)
