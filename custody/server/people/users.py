"""A person's own record: who they are, and which workspace is shown first."""

from custody.schemas.common import WorkspaceRequest
from custody.schemas.users import (
    SET_DEFAULT_WORKSPACE,
    UPDATE_USER_INFO,
    USER_INFO,
    UpdateUserInfoRequest,
    User,
)
from custody.server.calls import Ctx, serves
from custody.server.people.people import user_record
from custody.server.rules.audit import Event
from custody.server.store import models

# The names of the changed fields, not their values, which are personal.
UPDATED = Event("USER_INFO_UPDATED", "{fields}")
DEFAULT_CHANGED = Event("DEFAULT_WORKSPACE_CHANGED", "workspace {workspace}")


@serves(USER_INFO)
def user_info(ctx: Ctx, _: None) -> User:
    return user_record(ctx.db, ctx.caller.user_id, ctx.caller)


@serves(UPDATE_USER_INFO)
def update_user_info(ctx: Ctx, request: UpdateUserInfoRequest) -> User:
    user = ctx.db.get_one(models.UserRow, ctx.caller.user_id)
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
    user, access = ctx.db.get_one(models.UserRow, ctx.caller.user_id), ctx.access
    is_same = user.default_workspace_id == access.workspace_id
    user.default_workspace_id, user.default_org_id = access.workspace_id, access.organisation_id
    ctx.db.flush()
    record = user_record(ctx.db, user.id, ctx.caller)
    if not is_same:
        # Of the person, not of the workspace.
        ctx.tools.audit.record(ctx.db, ctx.caller, DEFAULT_CHANGED, None, workspace=access.workspace_id)
    return record
