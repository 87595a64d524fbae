"""Workspaces of an organisation: another one, and another name. `people.founding` founds them."""

from sqlalchemy import func, select

from custody.schemas.permissions import ANY_MEMBER
from custody.schemas.users import (
    CREATE_WORKSPACE,
    UPDATE_WORKSPACE,
    CreateWorkspaceRequest,
    UpdateWorkspaceRequest,
    WorkspaceEntry,
    WorkspaceInfo,
)
from custody.server.calls import Ctx, serves
from custody.server.errors import NotFound, StateConflict
from custody.server.people.founding import (
    chain_for,
    found_workspace,
    record_founding,
    require_free_workspace_name,
)
from custody.server.people.people import add_membership, enter, workspace_info
from custody.server.people.staff import role_shapes
from custody.server.rules.audit import Event
from custody.server.store.models import OrganisationRow, WorkspaceRow

# A sign-in reads all of a member's workspaces.
MAX_WORKSPACES = 100
RENAMED = Event(
    "WORKSPACE_UPDATED", "named {name}; now {new_name}", "renamed the workspace {name} to {new_name}"
)
DESCRIBED = Event("WORKSPACE_UPDATED", "described anew", "changed the workspace's description")


class TooManyWorkspaces(StateConflict):
    hint = "Rename a workspace that is no longer needed, and use that one."


@serves(CREATE_WORKSPACE)
def create_workspace(ctx: Ctx, request: CreateWorkspaceRequest) -> WorkspaceEntry:
    if request.org_id != ctx.access.organisation_id:
        raise NotFound("The workspace and the organisation named do not belong together.")
    organisation = ctx.db.get_one(OrganisationRow, ctx.access.organisation_id)
    present = select(func.count()).where(WorkspaceRow.organisation_id == organisation.id)
    if (ctx.db.scalar(present) or 0) >= MAX_WORKSPACES:
        raise TooManyWorkspaces(
            f"The organisation has {MAX_WORKSPACES} workspaces, the most that it can have."
        )
    founded = found_workspace(
        ctx.db,
        ctx.tools.clock,
        organisation,
        name=request.name,
        description=request.description,
        chain=chain_for(ctx.db, request.network),
    )
    workspace, role = founded.workspace, founded.administrator
    add_membership(ctx.db, ctx.now, ctx.caller.user_id, workspace.id, role.id)
    entered = enter(ctx.db, ctx.caller, workspace.id, ANY_MEMBER, ctx.now)
    record_founding(ctx.db, ctx.tools.audit, ctx.caller, entered, founded)
    shape = role_shapes(ctx.db, [role])[role.id]
    return WorkspaceEntry(workspace_info=workspace_info(workspace), role=shape)


@serves(UPDATE_WORKSPACE)
def update_workspace(ctx: Ctx, request: UpdateWorkspaceRequest) -> WorkspaceInfo:
    workspace = ctx.db.get_one(WorkspaceRow, ctx.access.workspace_id)
    before = workspace.name
    name = before if request.name is None else request.name
    description = workspace.description if request.description is None else request.description
    if name != before:
        require_free_workspace_name(ctx.db, workspace.organisation_id, name, besides=workspace.id)
    if (name, description) == (before, workspace.description):
        return workspace_info(workspace)
    workspace.name, workspace.description = name, description
    ctx.db.flush()
    if name == before:
        ctx.event(DESCRIBED)
    else:
        ctx.event(RENAMED, name=before, new_name=name)
    return workspace_info(workspace)
