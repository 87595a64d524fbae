"""Signing in, and the caller's own account."""

from pydantic import SecretStr, TypeAdapter

from custody.client.flow import Core, Sent, Session, attempt, call, checked, read, refresh_token_of, row
from custody.exchange import Plan, Reply, method
from custody.schemas.auth import (
    ChangePasswordRequest,
    LoginRequest,
    LoginResponse,
    OtpValidateRequest,
    PasswordResetRequest,
    RegisterRequest,
    ResetPasswordRequest,
    RevokeSessionsRequest,
    RevokeSessionsResponse,
    SecondFactor,
    SessionRecord,
    TotpConfirmRequest,
    TotpConfirmResponse,
    TotpEnrolRequest,
    TotpEnrolResponse,
    TwoFactorRequest,
    TwoFactorResponse,
)
from custody.schemas.common import LATER, Done, Few

_SESSIONS = TypeAdapter(Few[SessionRecord], config=LATER)


class SignInCalls:
    @row("POST", "/auth/register", Done, signed_in=False)
    @staticmethod
    def register(request: RegisterRequest) -> Sent:
        return Sent(request)

    @method
    @staticmethod
    def login(
        core: Core, email: str, password: str, *, device: str | None = None, location: str | None = None
    ) -> Plan[LoginResponse]:
        """``POST /auth/login``. Where ``requires_2fa``, go on with ``otp_validate``."""
        body = LoginRequest(email=email, password=SecretStr(password), device=device, location=location)
        reply = yield from attempt(core, core.build("POST", "/auth/login", body), repeatable=False)
        return _signed_in(core, reply)

    @method
    @staticmethod
    def otp_validate(core: Core, token_2fa: str, otp: str) -> Plan[LoginResponse]:
        """``POST /auth/otp-validate``. Not repeated: each try counts."""
        body = OtpValidateRequest(token_2fa=token_2fa, otp=otp)
        reply = yield from attempt(core, core.build("POST", "/auth/otp-validate", body), repeatable=False)
        return _signed_in(core, reply)

    @method
    @staticmethod
    def logout(core: Core) -> Plan[Done]:
        """``POST /auth/logout``: the session is forgotten here whatever the platform answers."""
        request = core.build("POST", "/auth/logout")
        try:
            return read((yield from call(core, request, repeatable=True)), Done)
        finally:
            core.set_session(None)


class SignInAccountCalls:
    @row("POST", "/auth/request-password-reset", Done, signed_in=False)
    @staticmethod
    def request_password_reset(email: str) -> Sent:
        """Mails a token, where the address has an account."""
        return Sent(PasswordResetRequest(email=email))

    @row("POST", "/auth/reset-password", Done, signed_in=False)
    @staticmethod
    def reset_password(token: str, new_password: str) -> Sent:
        """With the mailed token. Every session ends; sign in again."""
        return Sent(ResetPasswordRequest(token=token, new_password=SecretStr(new_password)))

    @row("POST", "/auth/change-password", Done)
    @staticmethod
    def change_password(password: str, new_password: str) -> Sent:
        """Every other session ends."""
        return Sent(ChangePasswordRequest(password=SecretStr(password), new_password=SecretStr(new_password)))

    @row("POST", "/auth/two-factor", TwoFactorResponse)
    @staticmethod
    def two_factor(*, password: str, enabled: bool | None = None, method: SecondFactor | None = None) -> Sent:
        """With either ``enabled`` or ``method``."""
        return Sent(TwoFactorRequest(enabled=enabled, method=method, password=SecretStr(password)))

    @row("POST", "/auth/totp/enrol", TotpEnrolResponse)
    @staticmethod
    def totp_enrol(password: str) -> Sent:
        """The secret for an authenticator, shown once."""
        return Sent(TotpEnrolRequest(password=SecretStr(password)))

    @row("POST", "/auth/totp/confirm", TotpConfirmResponse)
    @staticmethod
    def totp_confirm(code: str) -> Sent:
        """The recovery codes, shown once. Not repeated: they would be others."""
        return Sent(TotpConfirmRequest(code=code))

    @row("GET", "/auth/sessions", _SESSIONS, repeatable=True)
    @staticmethod
    def sessions() -> Sent:
        """The caller's own, the newest first."""
        return Sent()

    @row("POST", "/auth/sessions/revoke", RevokeSessionsResponse)
    @staticmethod
    def revoke_session(session_id: str) -> Sent:
        """Not repeated: the second answer would be that there is none."""
        return Sent(RevokeSessionsRequest(session_id=session_id))

    @row("POST", "/auth/sessions/revoke", RevokeSessionsResponse, repeatable=True)
    @staticmethod
    def revoke_other_sessions() -> Sent:
        """All of the caller's own but this one."""
        return Sent(RevokeSessionsRequest(all_others=True))


def _signed_in(core: Core, reply: Reply) -> LoginResponse:
    answer = read(checked(reply), LoginResponse)
    if not answer.requires_2fa:
        refresh_token = refresh_token_of(reply)
        core.set_session(
            Session(answer.sid, answer.token, refresh_token, core.now() + (answer.expires_in or 0))
        )
    return answer
