"""The second factor: which one an account asks for, enrolling an authenticator, its codes (HMAC-SHA-1 over
30-second steps, six digits: RFC 6238, RFC 4226), and its recovery codes.
"""

from base64 import b32encode
from datetime import datetime, timedelta
from hmac import compare_digest
from typing import Final, Literal, cast

import pyotp
from sqlalchemy import delete, func, select
from sqlalchemy.orm import Session

from custody.schemas import auth as wire
from custody.server.calls import Ctx, In, Steps, serves_in_parts
from custody.server.errors import Invalid, NotFound, StateConflict
from custody.server.mail.jobs import METHODS, Template, queue_mail
from custody.server.requests.rates import AttemptLimit
from custody.server.rules.audit import Category, Event
from custody.server.rules.credentials import (
    RECOVERY_CODES,
    new_recovery_code,
    plain_code,
    recovery_hash,
)
from custody.server.secrets import Purpose
from custody.server.sign_in.access_tokens import end_sessions
from custody.server.sign_in.accounts import close_challenges, find_credential, require_password, require_still
from custody.server.store.models import CredentialRow, PasskeyRow, RecoveryCodeRow, UserRow

OFFERED = Event("AUTHENTICATOR_OFFERED", "// not confirmed yet", Category.SIGN_IN)
CONFIRMED = Event("AUTHENTICATOR_CONFIRMED", "// {count} recovery codes", Category.SIGN_IN)
ENABLED = Event("TWO_FACTOR_ENABLED", "// {method}", Category.SIGN_IN)
DISABLED = Event("TWO_FACTOR_DISABLED", "// {method}", Category.SIGN_IN)
RESET = Event("TWO_FACTOR_RESET", "// {user}", Category.SIGN_IN)
STEP_SECONDS: Final = 30
# RFC 6238, section 5.2: one step either way for the phone's clock and the person's typing.
SKEW_STEPS: Final = 1
# RFC 4226, section 4, R6: 160 bits.
SECRET_BYTES: Final = 20
# What the app shows above the code.
ISSUER: Final = "Custody"
_BEGIN: Final = "Begin one under Your account, or with POST /auth/totp/enrol."
# Codes tried to confirm an authenticator. The caller knows the secret, so this only bounds the work.
_CONFIRMATIONS = AttemptLimit("totp-confirm", 10, timedelta(minutes=15))


def second_factor_of(db: Session, user_id: int) -> wire.SecondFactor:
    """What the account's sign-in asks for beside the password."""
    return cast("wire.SecondFactor", db.get_one(CredentialRow, user_id).second_factor)


@serves_in_parts(wire.TWO_FACTOR, first=In.NOTHING)
def two_factor(_ctx: Ctx, request: wire.TwoFactorRequest) -> Steps[wire.TwoFactorResponse]:
    """Raises Invalid, RateLimited, Unauthenticated; StateConflict where no authenticator was confirmed."""
    known = yield from require_password(request.password.get_secret_value())
    ctx = yield In.WRITE
    require_still(ctx, known)
    credential = ctx.db.get_one(CredentialRow, ctx.caller.user_id)
    method = _resolved(credential, request.wanted)
    set_factor(ctx.db, credential, method, ctx.now, keep_session=ctx.caller.session_id)
    mail_change(ctx, ctx.caller.name, METHODS[method])
    ctx.event(DISABLED if method == "none" else ENABLED, method=METHODS[method])
    return wire.TwoFactorResponse(enabled=method != "none", method=method)


@serves_in_parts(wire.TOTP_ENROL, first=In.NOTHING)
def totp_enrol(_ctx: Ctx, request: wire.TotpEnrolRequest) -> Steps[wire.TotpEnrolResponse]:
    """The secret counts once the owner confirms a code of it. Until then the old factor stays.

    Raises Invalid, RateLimited, Unauthenticated.
    """
    known = yield from require_password(request.password.get_secret_value())
    ctx = yield In.WRITE
    require_still(ctx, known)
    secret = ctx.tools.random(SECRET_BYTES)
    sealed = ctx.tools.secrets.seal(Purpose.TOTP, secret)
    ctx.db.get_one(CredentialRow, ctx.caller.user_id).totp_pending = sealed
    ctx.event(OFFERED)
    return wire.TotpEnrolResponse(secret=base32(secret), otpauth_uri=enrolment_uri(secret, ctx.caller.name))


@serves_in_parts(wire.TOTP_CONFIRM, first=In.WRITE)
def totp_confirm(ctx: Ctx, request: wire.TotpConfirmRequest) -> Steps[wire.TotpConfirmResponse]:
    """Raises StateConflict, Invalid, RateLimited, Unauthenticated."""
    _CONFIRMATIONS.take(ctx.db, str(ctx.caller.user_id), ctx.now)
    ctx = yield In.WRITE
    credential = ctx.db.get_one(CredentialRow, ctx.caller.user_id)
    step = _confirmed_step(ctx, credential, request.code)
    credential.totp_secret, credential.totp_pending = credential.totp_pending, None
    credential.totp_last_step = step
    ctx.db.execute(delete(RecoveryCodeRow).where(RecoveryCodeRow.user_id == ctx.caller.user_id))
    codes = [new_recovery_code(ctx.tools.random) for _ in range(RECOVERY_CODES)]
    hashes = map(recovery_hash, codes)
    ctx.db.add_all(RecoveryCodeRow(code_hash=hashed, user_id=ctx.caller.user_id) for hashed in hashes)
    set_factor(ctx.db, credential, "totp", ctx.now, keep_session=ctx.caller.session_id)
    mail_change(ctx, ctx.caller.name, METHODS["totp"])
    ctx.event(CONFIRMED, count=len(codes))
    return wire.TotpConfirmResponse(recovery_codes=codes)


def reset_second_factor(ctx: Ctx, email: str) -> None:
    """For the operator: back to mailed codes; the authenticator, its recovery codes and the passkeys are
    deleted. Raises NotFound.
    """
    stored = find_credential(ctx.db, email)
    if stored is None:
        raise NotFound(f"{email} has no account.")
    user, credential = stored
    set_factor(ctx.db, credential, "email", ctx.now, keep_session=None)
    mail_change(ctx, user.email, METHODS["email"])
    credential.totp_secret = credential.totp_pending = credential.totp_last_step = None
    ctx.db.execute(delete(RecoveryCodeRow).where(RecoveryCodeRow.user_id == user.id))
    ctx.db.execute(delete(PasskeyRow).where(PasskeyRow.user_id == user.id))
    ctx.event(RESET, user=user.id)


def code_proof(ctx: Ctx, user_id: int, code: str) -> str | None:
    """What a code proves, in words, or None. Takes a code of the authenticator or a recovery code, each of
    them once.
    """
    plain = plain_code(code)
    return _take_code(ctx, user_id, plain) if plain.isdecimal() else _take_recovery(ctx, user_id, plain)


def _take_code(ctx: Ctx, user_id: int, code: str) -> str | None:
    credential = ctx.db.get_one(CredentialRow, user_id)
    secret = ctx.tools.secrets.open(Purpose.TOTP, credential.totp_secret or b"")
    step = find_step(secret, code, ctx.now, credential.totp_last_step) if secret else None
    if step is None:
        return None
    credential.totp_last_step = step
    return "with an authenticator's code"


def _take_recovery(ctx: Ctx, user_id: int, code: str) -> str | None:
    db, mine = ctx.db, (RecoveryCodeRow.user_id == user_id, RecoveryCodeRow.used_at.is_(None))
    code_row = db.scalars(
        select(RecoveryCodeRow).where(*mine, RecoveryCodeRow.code_hash == recovery_hash(code))
    ).one_or_none()
    if code_row is None:
        return None
    code_row.used_at = ctx.now
    db.flush()
    left = db.scalar(select(func.count()).select_from(RecoveryCodeRow).where(*mine))
    email = db.get_one(UserRow, user_id).email
    queue_mail(db, Template.RECOVERY_CODE_USED, email, {"left": str(left)}, now=ctx.now)
    return f"with a recovery code, {left} left"


def _confirmed_step(ctx: Ctx, credential: CredentialRow, code: str) -> int:
    if credential.totp_pending is None and credential.second_factor == "totp":
        raise StateConflict(
            "Your authenticator is on. Its recovery codes were shown once: replace the authenticator for new "
            "ones.",
            hint=_BEGIN,
        )
    if credential.totp_pending is None:
        raise StateConflict("No authenticator waits for a code: begin one first.", hint=_BEGIN)
    secret = ctx.tools.secrets.open(Purpose.TOTP, credential.totp_pending)
    step = find_step(secret, plain_code(code), ctx.now, None) if secret else None
    if step is None:
        sentence = "The code is not the one that the authenticator shows now; check the phone's clock."
        raise Invalid.at("/code", sentence)
    return step


def mail_change(ctx: Ctx, email: str, asks_for: str) -> None:
    queue_mail(ctx.db, Template.SECOND_FACTOR_CHANGED, email, {"method": asks_for}, now=ctx.now)


def set_factor(
    db: Session,
    credential: CredentialRow,
    method: wire.SecondFactor,
    now: datetime,
    *,
    keep_session: int | None,
) -> None:
    """Sets what a sign-in asks for from now on. Where it asked for nothing, the other sessions end: they
    never gave a second factor, and would be renewed without one (P107).
    """
    if credential.second_factor == "none" and method != "none":
        end_sessions(db, credential.user_id, now, "second factor turned on", keep=keep_session)
    credential.second_factor, credential.updated_at = method, now
    close_challenges(db, credential.user_id, now)


def _resolved(credential: CredentialRow, wanted: wire.SecondFactor | Literal["on"]) -> wire.SecondFactor:
    """``on`` means the confirmed method, or mailed codes where there is none."""
    if wanted == "on":
        is_off = credential.second_factor == "none"
        return "email" if is_off else cast("wire.SecondFactor", credential.second_factor)
    if wanted == "totp" and credential.totp_secret is None:
        raise StateConflict("No authenticator was confirmed.", hint=_BEGIN)
    return wanted


def step_at(moment: datetime) -> int:
    return int(moment.timestamp()) // STEP_SECONDS


def code_at(secret: bytes, step: int) -> str:
    return pyotp.HOTP(base32(secret)).at(step)


def find_step(secret: bytes, code: str, now: datetime, last_step: int | None) -> int | None:
    """The step near ``now`` whose code this is, after ``last_step``: no code is accepted twice (RFC 6238,
    section 5.2).
    """
    current = step_at(now)
    first = current - SKEW_STEPS if last_step is None else max(current - SKEW_STEPS, last_step + 1)
    matching = [
        step
        for step in range(max(first, 0), current + SKEW_STEPS + 1)
        if compare_digest(code_at(secret, step).encode(), code.encode())
    ]
    return matching[0] if matching else None


def base32(secret: bytes) -> str:
    """The secret for typing by hand, where the QR code cannot be scanned."""
    return b32encode(secret).decode()


def enrolment_uri(secret: bytes, email: str) -> str:
    """``otpauth://totp/…``, which authenticators read as a QR code."""
    return pyotp.TOTP(base32(secret)).provisioning_uri(name=email, issuer_name=ISSUER)
