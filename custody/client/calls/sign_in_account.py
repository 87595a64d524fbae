"""``/auth``: one's own account: its password, its second factor, its sessions."""

from pydantic import SecretStr, TypeAdapter

from custody.client.flow import Core, Plan, attempt, call, checked, read
from custody.client.method import method
from custody.schemas.auth import (
    ChangePasswordRequest,
    PasswordResetRequest,
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
from custody.schemas.common import Done, Few

_SESSIONS = TypeAdapter(Few[SessionRecord])


class SignInAccountCalls:
    @method
    @staticmethod
    def request_password_reset(core: Core, email: str) -> Plan[Done]:
        """``POST /auth/request-password-reset``: a token comes by mail, where the address has an account."""
        request = core.build("POST", "/auth/request-password-reset", PasswordResetRequest(email=email))
        return read(checked((yield from attempt(core, request, repeatable=False))), Done)

    @method
    @staticmethod
    def reset_password(core: Core, token: str, new_password: str) -> Plan[Done]:
        """``POST /auth/reset-password``, with the mailed token. Every session ends; sign in again."""
        body = ResetPasswordRequest(token=token, new_password=SecretStr(new_password))
        request = core.build("POST", "/auth/reset-password", body)
        return read(checked((yield from attempt(core, request, repeatable=False))), Done)

    @method
    @staticmethod
    def change_password(core: Core, password: str, new_password: str) -> Plan[Done]:
        """``POST /auth/change-password``. Every other session ends."""
        body = ChangePasswordRequest(password=SecretStr(password), new_password=SecretStr(new_password))
        request = core.build("POST", "/auth/change-password", body)
        return read((yield from call(core, request, repeatable=False)), Done)

    @method
    @staticmethod
    def two_factor(
        core: Core, *, password: str, enabled: bool | None = None, method: SecondFactor | None = None
    ) -> Plan[TwoFactorResponse]:
        """``POST /auth/two-factor``, with either ``enabled`` or ``method``."""
        body = TwoFactorRequest(enabled=enabled, method=method, password=SecretStr(password))
        request = core.build("POST", "/auth/two-factor", body)
        return read((yield from call(core, request, repeatable=False)), TwoFactorResponse)

    @method
    @staticmethod
    def totp_enrol(core: Core, password: str) -> Plan[TotpEnrolResponse]:
        """``POST /auth/totp/enrol``: the secret for an authenticator, shown once."""
        request = core.build("POST", "/auth/totp/enrol", TotpEnrolRequest(password=SecretStr(password)))
        return read((yield from call(core, request, repeatable=False)), TotpEnrolResponse)

    @method
    @staticmethod
    def totp_confirm(core: Core, code: str) -> Plan[TotpConfirmResponse]:
        """``POST /auth/totp/confirm``: the recovery codes, shown once. Not repeated: they would be others."""
        request = core.build("POST", "/auth/totp/confirm", TotpConfirmRequest(code=code))
        return read((yield from call(core, request, repeatable=False)), TotpConfirmResponse)

    @method
    @staticmethod
    def sessions(core: Core) -> Plan[list[SessionRecord]]:
        """``GET /auth/sessions``: one's own, the newest first."""
        return read((yield from call(core, core.build("GET", "/auth/sessions"), repeatable=True)), _SESSIONS)

    @method
    @staticmethod
    def revoke_session(core: Core, session_id: str) -> Plan[RevokeSessionsResponse]:
        """``POST /auth/sessions/revoke``. Not repeated: the second answer would be that there is none."""
        request = core.build("POST", "/auth/sessions/revoke", RevokeSessionsRequest(session_id=session_id))
        return read((yield from call(core, request, repeatable=False)), RevokeSessionsResponse)

    @method
    @staticmethod
    def revoke_other_sessions(core: Core) -> Plan[RevokeSessionsResponse]:
        """``POST /auth/sessions/revoke``: all of one's own but this one."""
        request = core.build("POST", "/auth/sessions/revoke", RevokeSessionsRequest(all_others=True))
        return read((yield from call(core, request, repeatable=True)), RevokeSessionsResponse)
