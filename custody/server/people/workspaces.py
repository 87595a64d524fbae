"""Organisations and their workspaces: founding one, and its name. A workspace is on a chain, with its first
roles.

The command line, an organisation's administrators, and the approval of a request for an organisation found
them, each in a transaction of its own.
"""

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from custody.common.text import name_key
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
from custody.server.keys.profiles import chain_on, watch_profiles
from custody.server.people.people import add_membership, enter, workspace_info
from custody.server.people.staff import role_shapes, store_role
from custody.server.rules.audit import Event
from custody.server.rules.credentials import WorkspaceAccess
from custody.server.rules.roles import ADMINISTRATOR, SIGNER
from custody.server.store.models import OrganisationRow, RoleRow, WorkspaceRow
from multisig import Network

# A sign-in reads all of a member's workspaces.
MAX_WORKSPACES = 100
ORGANISATION_CREATED = Event(
    "ORGANISATION_CREATED", "organisation {organisation}, named {name}[, for user {user}]"
)
CREATED = Event(
    "WORKSPACE_CREATED", "workspace {workspace}, named {name}, on {network}", "made the workspace {name}"
)
RENAMED = Event(
    "WORKSPACE_UPDATED", "named {name}; now {new_name}", "renamed the workspace {name} to {new_name}"
)
DESCRIBED = Event("WORKSPACE_UPDATED", "described anew", "changed the workspace's description")


def found_organisation(ctx: Ctx, name: str, *, user_id: int | None = None) -> OrganisationRow:
    """Records the first event of the organisation's chain. ``user_id``: who had asked for it."""
    organisation = OrganisationRow(name=name, created_at=ctx.now)
    ctx.db.add(organisation)
    ctx.db.flush()
    facts = {"organisation": organisation.id, "name": organisation.name, "user": user_id}
    ctx.tools.audit.record(ctx.db, ctx.caller, ORGANISATION_CREATED, None, None, organisation.id, **facts)
    return organisation


def found_workspace(
    ctx: Ctx, organisation_id: int, *, name: str, description: str, chain: Network
) -> tuple[WorkspaceRow, RoleRow]:
    """A workspace with the first roles, of which the administrator's is returned, and no member: add one, and
    `record_founding`.

    Raises StateConflict where the organisation has a workspace with this name, or the platform's network is
    on another chain: ``testnet`` means one chain on one platform, because profile addresses name no
    workspace.
    """
    db, network = ctx.db, chain.api_name
    known = chain_on(db, network)
    if known not in {None, chain}:
        raise StateConflict(
            f"On this platform, {network} always means {known}. "
            f"Create it on {known}, or start another platform."
        )
    _require_free_name(db, organisation_id, name)
    workspace = WorkspaceRow(
        organisation_id=organisation_id,
        name=name,
        description=description,
        network=network,
        chain=chain.value,
        created_at=ctx.now,
    )
    db.add(workspace)
    db.flush()
    if known is None:
        watch_profiles(db, network, chain.value)
    administrator = store_role(db, ctx.now, workspace.id, ADMINISTRATOR)
    store_role(db, ctx.now, workspace.id, SIGNER)
    return workspace, administrator


def record_founding(ctx: Ctx, access: WorkspaceAccess, workspace: WorkspaceRow) -> None:
    """The first event of the workspace's chain. ``access``: the founder's, or `place_of`."""
    facts = {"workspace": workspace.id, "name": workspace.name, "network": workspace.network}
    ctx.tools.audit.record(ctx.db, ctx.caller, CREATED, access, **facts)


def chain_for(db: Session, network: str) -> Network:
    """The chain of a new workspace on an API network: that of the platform's other workspaces. Raises
    StateConflict.
    """
    if network == Network.MAINNET.api_name:
        return Network.MAINNET
    chain = chain_on(db, network)
    if chain is None:
        # The first workspace of a network decides its chain; only the operator can create it.
        raise StateConflict(
            f"No workspace of this platform is on {network} yet.",
            hint="Ask the platform's operator, who opens a network with custody admin bootstrap --chain.",
        )
    return chain


@serves(CREATE_WORKSPACE)
def create_workspace(ctx: Ctx, request: CreateWorkspaceRequest) -> WorkspaceEntry:
    organisation_id = ctx.access.organisation_id
    if request.org_id != organisation_id:
        raise NotFound("The workspace and the organisation named do not belong together.")
    present = select(func.count()).where(WorkspaceRow.organisation_id == organisation_id)
    if (ctx.db.scalar(present) or 0) >= MAX_WORKSPACES:
        raise StateConflict(
            f"The organisation has {MAX_WORKSPACES} workspaces, the most that it can have.",
            hint="Rename a workspace that is no longer needed, and use that one.",
        )
    workspace, role = found_workspace(
        ctx,
        organisation_id,
        name=request.name,
        description=request.description,
        chain=chain_for(ctx.db, request.network),
    )
    add_membership(ctx.db, ctx.now, ctx.caller.user_id, workspace.id, role.id)
    record_founding(ctx, enter(ctx.db, ctx.caller, workspace.id, ANY_MEMBER, ctx.now), workspace)
    shape = role_shapes(ctx.db, [role])[role.id]
    return WorkspaceEntry(workspace_info=workspace_info(workspace), role=shape)


@serves(UPDATE_WORKSPACE)
def update_workspace(ctx: Ctx, request: UpdateWorkspaceRequest) -> WorkspaceInfo:
    workspace = ctx.db.get_one(WorkspaceRow, ctx.access.workspace_id)
    before = workspace.name
    name = before if request.name is None else request.name
    description = workspace.description if request.description is None else request.description
    if name != before:
        _require_free_name(ctx.db, workspace.organisation_id, name, besides=workspace.id)
    if (name, description) == (before, workspace.description):
        return workspace_info(workspace)
    workspace.name, workspace.description = name, description
    ctx.db.flush()
    if name == before:
        ctx.event(DESCRIBED)
    else:
        ctx.event(RENAMED, name=before, new_name=name)
    return workspace_info(workspace)


def _require_free_name(db: Session, organisation_id: int, name: str, *, besides: int = 0) -> None:
    """Names that look the same count as equal. Raises StateConflict."""
    others = WorkspaceRow.organisation_id == organisation_id, WorkspaceRow.id != besides
    for taken in db.scalars(select(WorkspaceRow.name).where(*others)):
        if name_key(taken) == name_key(name):
            raise StateConflict(f"The organisation has a workspace called {taken} already.")
