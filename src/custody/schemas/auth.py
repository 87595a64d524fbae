"""Sign-in: ``/auth/*``."""

from typing import Annotated

from pydantic import Field, SecretStr, StringConstraints

from custody.schemas.common import EmailAddress, Name, Request, Shape
from custody.schemas.users import User

# NIST SP 800-63B: at least eight characters, at least 64 allowed; the bound keeps Argon2 cheap to refuse.
Password = Annotated[SecretStr, Field(min_length=8, max_length=256)]
OneTimeCode = Annotated[str, StringConstraints(strip_whitespace=True, pattern=r"^[0-9]{6}$")]
OpaqueToken = Annotated[str, StringConstraints(min_length=16, max_length=200, pattern=r"^[A-Za-z0-9_-]+$")]
ShortText = Annotated[str, StringConstraints(max_length=200)]

REFRESH_COOKIE = "refresh_token"


class RegisterRequest(Request):
    """``POST /auth/register``: an account without any organisation yet."""

    email: EmailAddress
    password: Password
    first_name: Name | None = None
    surname: Name | None = None


class LoginRequest(Request):
    """``POST /auth/login``. An existing account's password may be shorter than today's rule asks."""

    email: EmailAddress
    password: Annotated[SecretStr, Field(max_length=256)]
    location: ShortText | None = None
    device: ShortText | None = None


class LoginResponse(Shape):
    """Branch on ``requires_2FA``, never on whether a token is present."""

    success: bool = True
    requires_2fa: bool = Field(alias="requires_2FA")
    token: str = Field(repr=False)
    token_2fa: str = Field(repr=False)
    sid: str
    user_info: User | None = None
    # Seconds until the access token ends; absent while a second factor is outstanding.
    expires_in: int | None = None


class OtpValidateRequest(Request):
    """``POST /auth/otp-validate``: finishes a sign-in whose answer said ``requires_2FA``."""

    token_2fa: OpaqueToken = Field(repr=False)
    otp: OneTimeCode = Field(repr=False)


class RefreshRequest(Request):
    """``POST /auth/refresh``, with the refresh cookie."""

    sid: OpaqueToken


class RefreshResponse(Shape):
    success: bool = True
    token: str = Field(repr=False)
    sid: str
    expires_in: int


class TwoFactorRequest(Request):
    """``POST /auth/two-factor``: e-mailed codes on or off for the caller's own account."""

    enabled: bool
    password: Annotated[SecretStr, Field(max_length=256)]


class TwoFactorResponse(Shape):
    success: bool = True
    enabled: bool
