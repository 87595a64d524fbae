"""``/auth``: signing in and out, and the caller's own password, second factor and sessions."""

from typing import Annotated, Literal, Self

from pydantic import BeforeValidator, Field, SecretStr, StrictBool, StringConstraints, model_validator

from custody.schemas.call import Auth, Call, Way, few
from custody.schemas.common import (
    Count,
    Done,
    EmailAddress,
    Few,
    Label,
    Line,
    Name,
    NullString,
    Prose,
    Request,
    Shape,
    TextId,
    Timestamp,
)
from custody.schemas.errors import ErrorCode
from custody.schemas.users import User

# NIST SP 800-63B asks for eight characters beside a second factor, for fifteen without, and to allow 64; the
# upper bound keeps Argon2 cheap to refuse.
Password = Annotated[SecretStr, Field(min_length=12, max_length=256)]
GivenPassword = Annotated[SecretStr, Field(max_length=256)]
# As authenticators show it: 123456 or 123 456.
_SIX_DIGITS = r"[0-9]{3}[ -]?[0-9]{3}"
_RECOVERY_CODE = r"[A-Za-z2-7]{4}([ -]?[A-Za-z2-7]{4}){3}"
SixDigits = Annotated[str, StringConstraints(strip_whitespace=True, pattern=f"^{_SIX_DIGITS}$")]
OneTimeCode = Annotated[
    str, StringConstraints(strip_whitespace=True, pattern=f"^({_SIX_DIGITS}|{_RECOVERY_CODE})$")
]
OpaqueToken = Annotated[str, StringConstraints(min_length=16, max_length=200, pattern=r"^[A-Za-z0-9_-]+$")]
# In an answer: empty while a second factor is outstanding; else what a header and the next request can carry.
TokenOrNone = Annotated[str, StringConstraints(max_length=200, pattern=r"^([A-Za-z0-9_-]{16,200})?$")]
BearerOrNone = Annotated[str, StringConstraints(max_length=4_000, pattern=r"^[\x21-\x7e]*$")]
SecondFactor = Literal["none", "email", "totp"]

REFRESH_COOKIE = "refresh_token"
# It travels in that cookie, never in a body.
RefreshToken = Annotated[TokenOrNone, Field(exclude=True, repr=False)]


class RegisterRequest(Request):
    email: EmailAddress
    password: Password
    first_name: Name | None = None
    surname: Name | None = None


class LoginRequest(Request):
    """An existing account's password may be shorter than today's rule asks."""

    email: EmailAddress
    password: GivenPassword
    # What a client says of itself is shown in lists and logs.
    location: Line | None = None
    device: Line | None = None


def _or_nobody(value: object) -> object:
    """Another platform may write null while no one is signed in."""
    return User.nobody() if value is None else value


class LoginResponse(Done):
    """Branch on ``requires_2FA``, never on whether a token is present. While a second factor is outstanding nobody is signed
    in: ``user_info`` is then a user without id and name, and tells nothing of the account.
    """  # noqa: E501

    requires_2fa: bool = Field(alias="requires_2FA")
    token: BearerOrNone = Field(repr=False)
    token_2fa: TokenOrNone = Field(repr=False)
    sid: TokenOrNone
    user_info: Annotated[User, BeforeValidator(_or_nobody)] = Field(default_factory=User.nobody)
    # Seconds until the access token ends; absent while a second factor is outstanding.
    expires_in: Count | None = None
    # Where the outstanding code is to be read.
    two_factor_method: SecondFactor | None = None
    refresh_token: RefreshToken = ""


class OtpValidateRequest(Request):
    """``otp``: the mailed code, the authenticator's, or one of its recovery codes."""

    token_2fa: OpaqueToken = Field(repr=False)
    otp: OneTimeCode = Field(repr=False)


class RefreshRequest(Request):
    sid: OpaqueToken


class RefreshResponse(Done):
    token: BearerOrNone = Field(repr=False)
    sid: TokenOrNone
    expires_in: Count
    refresh_token: RefreshToken = ""


class TwoFactorRequest(Request):
    """``enabled``: true keeps an authenticator where there is one, and means mailed codes otherwise; false is ``none``."""  # noqa: E501

    enabled: StrictBool | None = None
    method: SecondFactor | None = None
    password: GivenPassword

    @model_validator(mode="after")
    def _one_of_them(self) -> Self:
        if (self.enabled is None) == (self.method is None):
            raise ValueError("exactly one of enabled and method is needed")
        return self

    @property
    def wanted(self) -> Literal["none", "email", "totp", "on"]:
        if self.method is not None:
            return self.method
        return "on" if self.enabled else "none"


class TwoFactorResponse(Done):
    enabled: bool
    method: SecondFactor | None = None


class TotpEnrolRequest(Request):
    password: GivenPassword


class TotpEnrolResponse(Done):
    """Shown once: ``secret`` in base32 to be typed, ``otpauth_uri`` to be drawn as a QR code."""

    secret: Prose = Field(repr=False)
    otpauth_uri: Prose = Field(repr=False)


class TotpConfirmRequest(Request):
    code: SixDigits = Field(repr=False)


class TotpConfirmResponse(Done):
    """Shown once. Each recovery code stands in for the authenticator one time."""

    recovery_codes: Few[Label] = Field(repr=False)


class PasswordResetRequest(Request):
    email: EmailAddress


class ResetPasswordRequest(Request):
    token: OpaqueToken = Field(repr=False)
    new_password: Password


class ChangePasswordRequest(Request):
    password: GivenPassword
    new_password: Password


class SessionRecord(Shape):
    """A live session of the caller's. ``session_id`` names it and opens nothing; ``last_used_at``: signed in or renewed."""  # noqa: E501

    session_id: TextId
    device: NullString
    location: NullString
    created_at: Timestamp
    last_used_at: Timestamp
    current: bool


class RevokeSessionsRequest(Request):
    session_id: TextId | None = None
    all_others: StrictBool = False

    @model_validator(mode="after")
    def _one_of_them(self) -> Self:
        if self.all_others == (self.session_id is not None):
            raise ValueError("exactly one of session_id and all_others is needed")
        return self


class RevokeSessionsResponse(Done):
    ended: Count


# In the order of the OpenAPI document.
REGISTER = Call(
    "POST", "/auth/register", RegisterRequest, Done,
    "A new account. The answer is the same where there is one already; its owner is told by mail.",
    Auth.OPEN, by_address=True, refuses=(ErrorCode.RATE_LIMITED,),
)  # fmt: skip
LOGIN = Call(
    "POST", "/auth/login", LoginRequest, LoginResponse,
    "Starts a sign-in. Branch on ``requires_2FA``.",
    Auth.OPEN, by_address=True, refuses=(ErrorCode.RATE_LIMITED, ErrorCode.UNAUTHENTICATED),
)  # fmt: skip
OTP_VALIDATE = Call(
    "POST", "/auth/otp-validate", OtpValidateRequest, LoginResponse,
    "Finishes a sign-in with the mailed code, the authenticator's, or a recovery code.",
    Auth.OPEN, by_address=True,
    refuses=(ErrorCode.OTP_INVALID, ErrorCode.RATE_LIMITED, ErrorCode.UNAUTHENTICATED),
)  # fmt: skip
REFRESH = Call(
    "POST", "/auth/refresh", RefreshRequest, RefreshResponse,
    "A new access token for the refresh cookie and ``sid``; the cookie rotates.",
    Auth.OPEN, by_address=True, refuses=(ErrorCode.TOKEN_EXPIRED, ErrorCode.UNAUTHENTICATED),
)  # fmt: skip
LOGOUT = Call(
    "POST", "/auth/logout", type(None), Done,
    "Ends the session; its tokens are dead at once.",
    Auth.SIGNED_IN, open_to=frozenset({Way.BOUND}), repeatable=True, reserved=True,
)  # fmt: skip
REQUEST_PASSWORD_RESET = Call(
    "POST", "/auth/request-password-reset", PasswordResetRequest, Done,
    "Mails a token where the address has an account. The answer is the same where it has none.",
    Auth.OPEN, by_address=True, refuses=(ErrorCode.RATE_LIMITED,),
)  # fmt: skip
RESET_PASSWORD = Call(
    "POST", "/auth/reset-password", ResetPasswordRequest, Done,
    "A new password for the mailed token, which is good once. Every session ends; the second factor stays.",
    Auth.OPEN, by_address=True, refuses=(ErrorCode.RATE_LIMITED,),
)  # fmt: skip
CHANGE_PASSWORD = Call(
    "POST", "/auth/change-password", ChangePasswordRequest, Done,
    "A new password for who knows the old one. Every other session ends.",
    Auth.SIGNED_IN, by_address=True,
)  # fmt: skip
TWO_FACTOR = Call(
    "POST", "/auth/two-factor", TwoFactorRequest, TwoFactorResponse,
    "What the caller's own account asks for beside the password, which is asked for again.",
    Auth.SIGNED_IN, by_address=True, refuses=(ErrorCode.OTP_INVALID, ErrorCode.STATE_CONFLICT),
)  # fmt: skip
TOTP_ENROL = Call(
    "POST", "/auth/totp/enrol", TotpEnrolRequest, TotpEnrolResponse,
    "A secret for an authenticator; nothing changes until one of its codes is confirmed. Asks for the "
    "password again.",
    Auth.SIGNED_IN, by_address=True, refuses=(ErrorCode.STATE_CONFLICT,),
)  # fmt: skip
TOTP_CONFIRM = Call(
    "POST", "/auth/totp/confirm", TotpConfirmRequest, TotpConfirmResponse,
    "The authenticator becomes the second factor. Ten recovery codes, shown this once; older ones are dead.",
    Auth.SIGNED_IN, by_address=True, refuses=(ErrorCode.OTP_INVALID, ErrorCode.STATE_CONFLICT),
)  # fmt: skip
SESSIONS = Call(
    "GET", "/auth/sessions", type(None), few(SessionRecord),
    "The caller's live sessions, the newest first.",
    Auth.SIGNED_IN,
)  # fmt: skip
REVOKE_SESSIONS = Call(
    "POST", "/auth/sessions/revoke", RevokeSessionsRequest, RevokeSessionsResponse,
    "Ends one of the caller's sessions, or all others; their tokens are dead at once.",
    Auth.SIGNED_IN, refuses=(ErrorCode.NOT_FOUND,),
)  # fmt: skip
