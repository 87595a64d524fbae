"""Signing in: the password, then the second factor of the account, a mailed code or an authenticator's."""

from custody.schemas.auth import LOGIN, OTP_VALIDATE, LoginRequest, LoginResponse, OtpValidateRequest
from custody.server.calls import Ctx, In, Steps, serves_in_parts
from custody.server.errors import SignInOver, Unauthenticated
from custody.server.people.people import user_record
from custody.server.rules.audit import Category, Event
from custody.server.sign_in.accounts import about, find_credential
from custody.server.sign_in.challenges import (
    CodeAwaited,
    ask_for_code,
    find_challenge,
    judge_code,
    refusal_of,
)
from custody.server.sign_in.passkeys import Assertion
from custody.server.sign_in.passwords import count_guess, forget_guesses
from custody.server.sign_in.sessions import open_session
from custody.server.store.models import CredentialRow, UserRow

SIGNED_IN = Event("SIGNED_IN", "{proof}", category=Category.SIGN_IN)
REFUSED = Event("SIGN_IN_REFUSED", "", category=Category.SIGN_IN)
OTP_REFUSED = Event("OTP_REFUSED", "", category=Category.SIGN_IN)


@serves_in_parts(LOGIN, first=In.WRITE)
def login(ctx: Ctx, request: LoginRequest) -> Steps[LoginResponse]:
    """Raises Unauthenticated, with one text for a wrong password and an unknown account; RateLimited;
    MailUnavailable, MailRefused.
    """
    is_guessed_at = count_guess(ctx, request.email)
    found = find_credential(ctx.db, request.email)
    stored = found[1].password_hash if found else None
    ctx = yield In.NOTHING
    passwords, password = ctx.tools.passwords, request.password.get_secret_value()
    if not passwords.matches(stored, password) or found is None or stored is None:
        # Recorded for an unknown account too, so that both take the same time, and without the text that was
        # typed: it may be a password.
        ctx = yield In.WRITE
        about(ctx, found[0] if found else None).event(REFUSED)
        yield In.NOTHING
        raise _refused()
    current = passwords.hash(password) if passwords.is_outdated(stored) else stored
    ctx = yield In.WRITE
    user, credential = ctx.db.get_one(UserRow, found[0].id), ctx.db.get_one(CredentialRow, found[0].id)
    # Hashing takes time: a password that was changed during it is a wrong one.
    if credential.password_hash != stored:
        raise _refused()
    credential.password_hash = current
    forget_guesses(ctx, request.email, anywhere=not is_guessed_at)
    device, location = request.device, request.location
    if credential.second_factor == "none" and not is_guessed_at:
        return (yield from _signed_in(ctx, user, "with the password alone", device, location))
    awaited = yield from ask_for_code(ctx, user.id, device, location)
    return LoginResponse(
        requires_2fa=True, token="", token_2fa=awaited.token_2fa, sid="", two_factor_method=awaited.method
    )


@serves_in_parts(OTP_VALIDATE, first=In.NOTHING)
def otp_validate(_ctx: Ctx, request: OtpValidateRequest) -> Steps[LoginResponse]:
    return finish_sign_in(request.token_2fa, request.otp)


def finish_sign_in(token_2fa: str, given: str | Assertion) -> Steps[LoginResponse]:
    """Finishes a sign-in. ``given``: a code, or a passkey's answer. Each try counts (P38).

    Raises OtpInvalid, with one text for a wrong code, one of another sign-in and an unknown token;
    SignInOver from the try on that ends the sign-in; RateLimited.
    """
    ctx = yield In.WRITE
    challenge = find_challenge(ctx, token_2fa)
    if challenge is not None:
        user = ctx.db.get_one(UserRow, challenge.user_id)
        proof = judge_code(ctx, challenge, token_2fa, given)
        if proof is not None:
            device, location = challenge.device, challenge.location
            return (yield from _signed_in(ctx, user, proof, device, location, is_proven=True))
        about(ctx, user).event(OTP_REFUSED)
    refused = refusal_of(ctx, token_2fa)
    yield In.NOTHING
    raise refused


def another_code(token_2fa: str) -> Steps[CodeAwaited]:
    """Another code for a sign-in whose password was right; the one before stays valid for its time. Raises
    SignInOver where no such sign-in waits, RateLimited, MailUnavailable, MailRefused.
    """
    ctx = yield In.WRITE
    waiting = find_challenge(ctx, token_2fa)
    if waiting is None:
        raise SignInOver("This sign-in is over: no other code is mailed for it.")
    return (yield from ask_for_code(ctx, waiting.user_id, waiting.device, waiting.location))


def _signed_in(
    ctx: Ctx, user: UserRow, proof: str, device: str | None, location: str | None, *, is_proven: bool = False
) -> Steps[LoginResponse]:
    tokens = open_session(ctx, user, device, location, is_proven=is_proven)
    about(ctx, user).event(SIGNED_IN, proof=proof)
    user_id = user.id
    ctx = yield In.SNAPSHOT
    return LoginResponse(
        requires_2fa=False,
        token=tokens.token,
        token_2fa="",
        sid=tokens.sid,
        user_info=user_record(ctx.db, user_id),
        expires_in=tokens.expires_in,
        refresh_token=tokens.refresh_token,
    )


def _refused() -> Unauthenticated:
    return Unauthenticated("The e-mail address or the password is wrong.")
