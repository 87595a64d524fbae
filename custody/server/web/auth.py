"""``/auth``: signing in and out, and the caller's own password, second factor and sessions."""

from datetime import timedelta

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from custody.schemas.auth import (
    REFRESH_COOKIE,
    ChangePasswordRequest,
    LoginRequest,
    LoginResponse,
    OtpValidateRequest,
    PasswordResetRequest,
    RefreshRequest,
    RefreshResponse,
    RegisterRequest,
    ResetPasswordRequest,
    RevokeSessionsRequest,
    RevokeSessionsResponse,
    SessionRecord,
    TotpConfirmRequest,
    TotpConfirmResponse,
    TotpEnrolRequest,
    TotpEnrolResponse,
    TwoFactorRequest,
    TwoFactorResponse,
)
from custody.schemas.common import Done, Listed
from custody.schemas.permissions import Auth
from custody.server.domain.credentials import REFRESH_LIFETIME
from custody.server.domain.errors import (
    NotFound,
    OtpInvalid,
    RateLimited,
    StateConflict,
    TokenExpired,
    Unauthenticated,
)
from custody.server.service.people.people import user_record
from custody.server.service.sign_in.sessions import Tokens
from custody.server.service.sign_in.signin import CodeAwaited, SignedIn
from custody.server.web.endpoint import Call, Endpoint, Unit, address_of

LOOPBACK = frozenset({"127.0.0.1", "::1", "localhost"})
COOKIE_PATH = "/auth"


def login(call: Call[LoginRequest]) -> Response:
    """Starts a sign-in. Branch on ``requires_2FA``."""
    admit(call)
    result = call.services.signin.login(call.body, address_of(call.request), call.trace_id)
    if isinstance(result, CodeAwaited):
        waiting = LoginResponse(
            requires_2fa=True, token="", token_2fa=result.token_2fa, sid="", two_factor_method=result.method
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
        REFRESH_COOKIE, path=COOKIE_PATH, httponly=True, samesite="strict", secure=is_secure(call.request)
    )
    return response


def register(call: Call[RegisterRequest]) -> Done:
    """A new account. The answer is the same where there is one already; its owner is told by mail."""
    admit(call)
    call.services.account.accounts.register(call.body, call.trace_id)
    return Done()


def admit(call: Call[object]) -> None:  # type: ignore[type-var]  # reads no body, whatever it is
    """Counts a call from its address. Raises RateLimited."""
    call.services.signin.admit(address_of(call.request))


def _signed_in(call: Call[LoginRequest] | Call[OtpValidateRequest], result: SignedIn) -> Response:
    with call.services.store.read() as db:
        user = user_record(db, result.user_id)
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
        secure=is_secure(request),
    )
    return response


def is_secure(request: Request) -> bool:
    """True except on loopback http without a proxy, where a browser would never return a Secure cookie."""
    if request.app.state.behind_proxy:
        return True
    return not (request.url.scheme == "http" and request.url.hostname in LOOPBACK)


def _seconds(span: timedelta) -> int:
    return int(span.total_seconds())


def request_password_reset(call: Call[PasswordResetRequest]) -> Done:
    """Mails a token where the address has an account. The answer is the same where it has none."""
    admit(call)
    call.services.account.password_changes.request_reset(call.body.email, call.trace_id)
    return Done()


def reset_password(call: Call[ResetPasswordRequest]) -> Done:
    """A new password for the mailed token, which is good once. Every session ends; the second factor stays."""  # noqa: E501
    admit(call)
    call.services.account.password_changes.reset(
        call.body.token, call.body.new_password.get_secret_value(), call.trace_id, address_of(call.request)
    )
    return Done()


def change_password(call: Call[ChangePasswordRequest]) -> Done:
    """A new password for who knows the old one. Every other session ends."""
    admit(call)
    call.services.account.password_changes.change(
        call.caller, call.body.password.get_secret_value(), call.body.new_password.get_secret_value()
    )
    return Done()


def two_factor(call: Call[TwoFactorRequest]) -> TwoFactorResponse:
    """What the caller's own account asks for beside the password, which is asked for again."""
    admit(call)
    password = call.body.password.get_secret_value()
    method = call.services.account.two_factor.choose(call.caller, password, call.body.wanted)
    return TwoFactorResponse(enabled=method != "none", method=method)


def totp_enrol(call: Call[TotpEnrolRequest]) -> TotpEnrolResponse:
    """A secret for an authenticator; nothing changes until one of its codes is confirmed. Asks for the password again."""  # noqa: E501
    admit(call)
    enrolment = call.services.account.authenticators.enrol(call.caller, call.body.password.get_secret_value())
    return TotpEnrolResponse(secret=enrolment.secret, otpauth_uri=enrolment.uri)


def totp_confirm(call: Call[TotpConfirmRequest]) -> TotpConfirmResponse:
    """The authenticator becomes the second factor. Ten recovery codes, shown this once; older ones are dead."""  # noqa: E501
    admit(call)
    codes = call.services.account.authenticators.confirm(call.caller, call.body.code)
    return TotpConfirmResponse(recovery_codes=list(codes))


def sessions(call: Call[None]) -> Listed[SessionRecord]:
    """The caller's live sessions, the newest first."""
    return call.services.sessions.listed(call.db, call.caller)


def revoke_sessions(call: Call[RevokeSessionsRequest]) -> RevokeSessionsResponse:
    """Ends one of the caller's sessions, or all others; their tokens are dead at once."""
    name, of = call.body.session_id, call.services.sessions
    ended = of.end_others(call.db, call.caller) if name is None else of.end_one(call.db, call.caller, name)
    return RevokeSessionsResponse(ended=ended)


ENDPOINTS = (
    Endpoint(
        "POST", "/auth/register", register, Done, Auth.OPEN, Unit.OWN, RegisterRequest,
        refuses=(RateLimited,),
    ),
    Endpoint(
        "POST", "/auth/login", login, LoginResponse, Auth.OPEN, Unit.OWN, LoginRequest,
        refuses=(RateLimited, Unauthenticated),
    ),
    Endpoint(
        "POST", "/auth/otp-validate", otp_validate, LoginResponse, Auth.OPEN, Unit.OWN, OtpValidateRequest,
        refuses=(OtpInvalid, RateLimited, Unauthenticated),
    ),
    Endpoint(
        "POST", "/auth/refresh", refresh, RefreshResponse, Auth.OPEN, Unit.OWN, RefreshRequest,
        refuses=(TokenExpired, Unauthenticated),
    ),
    Endpoint("POST", "/auth/logout", logout, Done, Auth.SIGNED_IN, Unit.OWN),
    Endpoint(
        "POST", "/auth/request-password-reset", request_password_reset, Done, Auth.OPEN, Unit.OWN,
        PasswordResetRequest, refuses=(RateLimited,),
    ),
    Endpoint(
        "POST", "/auth/reset-password", reset_password, Done, Auth.OPEN, Unit.OWN, ResetPasswordRequest,
        refuses=(RateLimited,),
    ),
    Endpoint(
        "POST", "/auth/change-password", change_password, Done, Auth.SIGNED_IN, Unit.OWN,
        ChangePasswordRequest,
    ),
    Endpoint(
        "POST", "/auth/two-factor", two_factor, TwoFactorResponse, Auth.SIGNED_IN, Unit.OWN, TwoFactorRequest,
        refuses=(OtpInvalid, StateConflict),
    ),
    Endpoint(
        "POST", "/auth/totp/enrol", totp_enrol, TotpEnrolResponse, Auth.SIGNED_IN, Unit.OWN, TotpEnrolRequest,
        refuses=(StateConflict,),
    ),
    Endpoint(
        "POST", "/auth/totp/confirm", totp_confirm, TotpConfirmResponse, Auth.SIGNED_IN, Unit.OWN,
        TotpConfirmRequest, refuses=(OtpInvalid, StateConflict),
    ),
    Endpoint("GET", "/auth/sessions", sessions, Listed[SessionRecord], Auth.SIGNED_IN, Unit.READ),
    Endpoint(
        "POST", "/auth/sessions/revoke", revoke_sessions, RevokeSessionsResponse, Auth.SIGNED_IN, Unit.WRITE,
        RevokeSessionsRequest, refuses=(NotFound,),
    ),
)  # fmt: skip
