"""``/auth``: signing in and out."""

from datetime import timedelta

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from custody.schemas.auth import (
    REFRESH_COOKIE,
    LoginRequest,
    LoginResponse,
    OtpValidateRequest,
    RefreshRequest,
    RefreshResponse,
    RegisterRequest,
)
from custody.schemas.common import Done
from custody.server.domain.credentials import REFRESH_LIFETIME
from custody.server.domain.errors import OtpInvalid, RateLimited, TokenExpired, Unauthenticated
from custody.server.service.sign_in.challenges import CodeAwaited
from custody.server.service.sign_in.sessions import Tokens
from custody.server.service.sign_in.signin import SignedIn
from custody.server.web.endpoint import Call, Door, Endpoint, Unit

LOOPBACK = frozenset({"127.0.0.1", "::1", "localhost"})
COOKIE_PATH = "/auth"


def login(call: Call[LoginRequest]) -> Response:
    """Starts a sign-in. Branch on ``requires_2FA``."""
    admit(call)
    result = call.services.signin.login(call.body, call.trace_id)
    if isinstance(result, CodeAwaited):
        waiting = LoginResponse(
            requires_2fa=True,
            token="",
            token_2fa=result.token_2fa,
            sid="",
            two_factor_method=result.method,
        )
        return JSONResponse(waiting.model_dump(mode="json", by_alias=True))
    return _signed_in(call, result)


def otp_validate(call: Call[OtpValidateRequest]) -> Response:
    """Finishes a sign-in with the mailed code, the authenticator's, or a recovery code."""
    admit(call)
    result = call.services.signin.validate_code(call.body.token_2fa, call.body.otp, call.trace_id)
    return _signed_in(call, result)


def refresh(call: Call[RefreshRequest]) -> Response:
    """A new access token for the refresh cookie and ``sid``; the cookie rotates."""
    admit(call)
    token = call.request.cookies.get(REFRESH_COOKIE)
    if not token:
        raise Unauthenticated("The request carries no refresh cookie.")
    tokens = call.services.sessions.refresh(call.body.sid, token, call.trace_id)
    shape = RefreshResponse(token=tokens.access, sid=tokens.sid, expires_in=tokens.expires_in)
    return _with_cookie(call.request, JSONResponse(shape.model_dump(mode="json", by_alias=True)), tokens)


def logout(call: Call[None]) -> Response:
    """Ends the session; its tokens are dead at once."""
    call.services.sessions.close(call.caller)
    response = JSONResponse(Done().model_dump(mode="json"))
    response.delete_cookie(
        REFRESH_COOKIE, path=COOKIE_PATH, httponly=True, samesite="strict", secure=_is_secure(call.request)
    )
    return response


def register(call: Call[RegisterRequest]) -> Done:
    """A new account. The answer is the same where there is one already; its owner is told by mail."""
    admit(call)
    call.services.account.accounts.register(call.body, call.trace_id)
    return Done()


def admit(call: Call[object]) -> None:  # type: ignore[type-var]  # reads no body, whatever it is
    """Counts a call from its address. Raises RateLimited."""
    client = call.request.client
    call.services.signin.admit(client.host if client else "local")


def _signed_in(call: Call[LoginRequest] | Call[OtpValidateRequest], result: SignedIn) -> Response:
    with call.services.store.read() as db:
        user = call.services.people.user_info(db, result.user_id)
    tokens = result.tokens
    shape = LoginResponse(
        requires_2fa=False,
        token=tokens.access,
        token_2fa="",
        sid=tokens.sid,
        user_info=user,
        expires_in=tokens.expires_in,
    )
    return _with_cookie(call.request, JSONResponse(shape.model_dump(mode="json", by_alias=True)), tokens)


def _with_cookie(request: Request, response: Response, tokens: Tokens) -> Response:
    response.set_cookie(
        REFRESH_COOKIE,
        tokens.refresh,
        max_age=_seconds(REFRESH_LIFETIME),
        path=COOKIE_PATH,
        httponly=True,
        samesite="strict",
        secure=_is_secure(request),
    )
    return response


def _is_secure(request: Request) -> bool:
    """Everywhere but on loopback http, where a Secure cookie would never be sent back."""
    return not (request.url.scheme == "http" and request.url.hostname in LOOPBACK)


def _seconds(span: timedelta) -> int:
    return int(span.total_seconds())


ENDPOINTS = (
    Endpoint(
        "POST", "/auth/register", register, Done, Door.OPEN, Unit.OWN, RegisterRequest, refuses=(RateLimited,)
    ),
    Endpoint(
        "POST",
        "/auth/login",
        login,
        LoginResponse,
        Door.OPEN,
        Unit.OWN,
        LoginRequest,
        refuses=(RateLimited, Unauthenticated),
    ),
    Endpoint(
        "POST",
        "/auth/otp-validate",
        otp_validate,
        LoginResponse,
        Door.OPEN,
        Unit.OWN,
        OtpValidateRequest,
        refuses=(OtpInvalid, RateLimited, Unauthenticated),
    ),
    Endpoint(
        "POST",
        "/auth/refresh",
        refresh,
        RefreshResponse,
        Door.OPEN,
        Unit.OWN,
        RefreshRequest,
        refuses=(TokenExpired, Unauthenticated),
    ),
    Endpoint("POST", "/auth/logout", logout, Done, Door.SIGNED_IN, Unit.OWN),
)
