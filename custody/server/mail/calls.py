"""What a person is mailed when something waits for them."""

from custody.schemas.users import (
    MAIL_SETTINGS,
    UPDATE_MAIL_SETTINGS,
    MailSettings,
    UpdateMailSettingsRequest,
)
from custody.server.calls import Ctx, serves
from custody.server.rules.audit import Event
from custody.server.store.models import UserRow

CHANGED = Event(
    "MAIL_SETTINGS_CHANGED",
    "mailed [{waiting}when something waits|never when something waits], [{amounts}with|without] amounts",
)


@serves(MAIL_SETTINGS)
def mail_settings(ctx: Ctx, _: None) -> MailSettings:
    user = ctx.db.get_one(UserRow, ctx.caller.user_id)
    return MailSettings(waiting=user.mails_waiting, amounts=user.mails_amounts)


@serves(UPDATE_MAIL_SETTINGS)
def update_mail_settings(ctx: Ctx, request: UpdateMailSettingsRequest) -> MailSettings:
    """An update without effect is not recorded."""
    user, before = ctx.db.get_one(UserRow, ctx.caller.user_id), mail_settings(ctx, None)
    user.mails_waiting = before.waiting if request.waiting is None else request.waiting
    user.mails_amounts = before.amounts if request.amounts is None else request.amounts
    ctx.db.flush()
    settings = mail_settings(ctx, None)
    if settings != before:
        ctx.event(CHANGED, waiting=settings.waiting, amounts=settings.amounts)
    return settings
