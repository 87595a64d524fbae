"""What a person is mailed when something waits for them."""

from pydantic import StrictBool

from custody.schemas.call import Call
from custody.schemas.common import Request, Shape
from custody.schemas.permissions import Auth


class MailSettings(Shape):
    """``waiting``: a mail when something waits for one's signature or confirmation. ``amounts``: with amounts and
    addresses in it.
    """  # noqa: E501

    waiting: bool
    amounts: bool


class UpdateMailSettingsRequest(Request):
    """``POST /api/v1/update-mail-settings``: what is left out stays."""

    waiting: StrictBool | None = None
    amounts: StrictBool | None = None


MAIL_SETTINGS = Call(
    "GET", "/api/v1/mail-settings", type(None), MailSettings,
    "Whether the caller is mailed when something waits for them, and whether with amounts and addresses.",
    Auth.SIGNED_IN,
)  # fmt: skip
UPDATE_MAIL_SETTINGS = Call(
    "POST", "/api/v1/update-mail-settings", UpdateMailSettingsRequest, MailSettings,
    "Changes the caller's own.", Auth.SIGNED_IN, repeatable=True,
)  # fmt: skip
