"""``/auth``: one's own account: its password, its second factor, its sessions."""

from custody.schemas.auth import (
    ChangePasswordRequest,
    PasswordResetRequest,
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
from custody.schemas.common import Done
from custody.server.domain.errors import NotFound, OtpInvalid, RateLimited, StateConflict
from custody.server.web.auth import admit
from custody.server.web.endpoint import Call, Door, Endpoint, Unit


def request_password_reset(call: Call[PasswordResetRequest]) -> Done:
    """Mails a token where the address has an account. The answer is the same where it has none."""
    admit(call)
    call.services.account.password_changes.request_reset(call.body.email, call.trace_id)
    return Done()


def reset_password(call: Call[ResetPasswordRequest]) -> Done:
    """A new password for the mailed token, which is good once. Every session ends; the second factor stays."""
    admit(call)
    call.services.account.password_changes.reset(
        call.body.token, call.body.new_password.get_secret_value(), call.trace_id
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
    """A secret for an authenticator; nothing changes until one of its codes is confirmed. Asks for the password again."""
    admit(call)
    enrolment = call.services.account.authenticators.enrol(call.caller, call.body.password.get_secret_value())
    return TotpEnrolResponse(secret=enrolment.secret, otpauth_uri=enrolment.uri)


def totp_confirm(call: Call[TotpConfirmRequest]) -> TotpConfirmResponse:
    """The authenticator becomes the second factor. Ten recovery codes, shown this once; older ones are dead."""
    admit(call)
    codes = call.services.account.authenticators.confirm(call.caller, call.body.code)
    return TotpConfirmResponse(recovery_codes=list(codes))


def sessions(call: Call[None]) -> list[SessionRecord]:
    """The caller's live sessions, the newest first."""
    return call.services.sessions.listed(call.db, call.caller)


def revoke_sessions(call: Call[RevokeSessionsRequest]) -> RevokeSessionsResponse:
    """Ends one of the caller's sessions, or all others; their tokens are dead at once."""
    name, of = call.body.session_id, call.services.sessions
    ended = of.end_others(call.db, call.caller) if name is None else of.end_one(call.db, call.caller, name)
    return RevokeSessionsResponse(ended=ended)


ENDPOINTS = (
    Endpoint(
        "POST", "/auth/request-password-reset", request_password_reset, Done, Door.OPEN, Unit.OWN,
        PasswordResetRequest, refuses=(RateLimited,),
    ),
    Endpoint(
        "POST", "/auth/reset-password", reset_password, Done, Door.OPEN, Unit.OWN, ResetPasswordRequest,
        refuses=(RateLimited,),
    ),
    Endpoint(
        "POST", "/auth/change-password", change_password, Done, Door.SIGNED_IN, Unit.OWN, ChangePasswordRequest
    ),
    Endpoint(
        "POST", "/auth/two-factor", two_factor, TwoFactorResponse, Door.SIGNED_IN, Unit.OWN, TwoFactorRequest,
        refuses=(OtpInvalid, StateConflict),
    ),
    Endpoint(
        "POST", "/auth/totp/enrol", totp_enrol, TotpEnrolResponse, Door.SIGNED_IN, Unit.OWN, TotpEnrolRequest,
        refuses=(StateConflict,),
    ),
    Endpoint(
        "POST", "/auth/totp/confirm", totp_confirm, TotpConfirmResponse, Door.SIGNED_IN, Unit.OWN,
        TotpConfirmRequest, refuses=(OtpInvalid, StateConflict),
    ),
    Endpoint("GET", "/auth/sessions", sessions, list[SessionRecord], Door.SIGNED_IN, Unit.READ),
    Endpoint(
        "POST", "/auth/sessions/revoke", revoke_sessions, RevokeSessionsResponse, Door.SIGNED_IN, Unit.WRITE,
        RevokeSessionsRequest, refuses=(NotFound,),
    ),
)  # fmt: skip
