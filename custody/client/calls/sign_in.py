"""``/auth``: an account, signing in and out."""

import httpx
from pydantic import SecretStr

from custody.client.flow import Core, Plan, attempt, call, checked, read, refresh_token_of
from custody.client.method import method
from custody.client.session import Session
from custody.schemas.auth import (
    LoginRequest,
    LoginResponse,
    OtpValidateRequest,
    RegisterRequest,
)
from custody.schemas.common import Done


def _signed_in(core: Core, response: httpx.Response) -> LoginResponse:
    answer = read(checked(response), LoginResponse)
    if not answer.requires_2fa:
        refresh_token = refresh_token_of(response)
        core.set_session(
            Session(answer.sid, answer.token, refresh_token, core.now() + (answer.expires_in or 0))
        )
    return answer


class SignInCalls:
    @method
    @staticmethod
    def register(core: Core, request: RegisterRequest) -> Plan[Done]:
        """``POST /auth/register``."""
        return read(
            checked(
                (yield from attempt(core, core.build("POST", "/auth/register", request), repeatable=False))
            ),
            Done,
        )

    @method
    @staticmethod
    def login(
        core: Core, email: str, password: str, *, device: str | None = None, location: str | None = None
    ) -> Plan[LoginResponse]:
        """``POST /auth/login``. Where ``requires_2fa``, go on with ``otp_validate``."""
        body = LoginRequest(email=email, password=SecretStr(password), device=device, location=location)
        response = yield from attempt(core, core.build("POST", "/auth/login", body), repeatable=False)
        return _signed_in(core, response)

    @method
    @staticmethod
    def otp_validate(core: Core, token_2fa: str, otp: str) -> Plan[LoginResponse]:
        """``POST /auth/otp-validate``. Not repeated: each try counts."""
        body = OtpValidateRequest(token_2fa=token_2fa, otp=otp)
        response = yield from attempt(core, core.build("POST", "/auth/otp-validate", body), repeatable=False)
        return _signed_in(core, response)

    @method
    @staticmethod
    def logout(core: Core) -> Plan[Done]:
        """``POST /auth/logout``: the session is forgotten here whatever the platform answers."""
        request = core.build("POST", "/auth/logout")
        try:
            return read((yield from call(core, request, repeatable=True)), Done)
        finally:
            core.set_session(None)
