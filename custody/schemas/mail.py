"""What a person is mailed when something waits for them."""

from pydantic import StrictBool

from custody.schemas.common import Request, Shape


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
