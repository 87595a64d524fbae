"""A person's own record: who they are, which workspace is shown first, and what they are mailed when
something waits for them.
"""

from custody.schemas.common import WorkspaceRequest
from custody.schemas.users import (
    MAIL_SETTINGS,
    SET_DEFAULT_WORKSPACE,
    UPDATE_MAIL_SETTINGS,
    UPDATE_USER_INFO,
    USER_INFO,
    MailSettings,
    UpdateMailSettingsRequest,
    UpdateUserInfoRequest,
    User,
)
from custody.server.calls import Ctx, serves
from custody.server.people.people import user_record
from custody.server.rules.audit import Event
from custody.server.store.models import UserRow

# The names of the changed fields, not their values, which are personal.
UPDATED = Event("USER_INFO_UPDATED", "// {fields}")
DEFAULT_CHANGED = Event("DEFAULT_WORKSPACE_CHANGED", "// workspace {workspace}")
MAILS_CHANGED = Event(
    "MAIL_SETTINGS_CHANGED",
    "// mailed [{waiting}when something waits|never when something waits], [{amounts}with|without] amounts",
)


@serves(USER_INFO)
def user_info(ctx: Ctx, _: None) -> User:
    return user_record(ctx.db, ctx.caller.user_id, ctx.caller)


@serves(UPDATE_USER_INFO)
def update_user_info(ctx: Ctx, request: UpdateUserInfoRequest) -> User:
    user = ctx.db.get_one(UserRow, ctx.caller.user_id)
    given = request.model_dump(exclude_none=True)
    changed = [name for name, value in given.items() if getattr(user, name) != (value or None)]
    for name in changed:
        setattr(user, name, given[name] or None)
    ctx.db.flush()
    record = user_record(ctx.db, user.id)
    if changed:
        ctx.event(UPDATED, fields=changed)
    return record


@serves(SET_DEFAULT_WORKSPACE)
def set_default_workspace(ctx: Ctx, _: WorkspaceRequest) -> User:
    """And its organisation."""
    user, access = ctx.db.get_one(UserRow, ctx.caller.user_id), ctx.access
    is_same = user.default_workspace_id == access.workspace_id
    user.default_workspace_id, user.default_org_id = access.workspace_id, access.organisation_id
    ctx.db.flush()
    record = user_record(ctx.db, user.id, ctx.caller)
    if not is_same:
        # Of the person, not of the workspace.
        ctx.tools.audit.record(ctx.db, ctx.caller, DEFAULT_CHANGED, None, workspace=access.workspace_id)
    return record


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
        ctx.event(MAILS_CHANGED, waiting=settings.waiting, amounts=settings.amounts)
    return settings
