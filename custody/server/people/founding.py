"""Creating a workspace: on a chain, with its first roles and an administrator as its first member.

The command line, an organisation's administrators, and the approval of a request for an organisation create
workspaces, each in a transaction of its own.
"""

from dataclasses import dataclass

from sqlalchemy import select
from sqlalchemy.orm import Session

from custody.common.text import name_key
from custody.server.audit.log import AuditLog
from custody.server.errors import NotFound, StateConflict
from custody.server.keys.profiles import chain_of_network, watch_profiles
from custody.server.rules.audit import Event
from custody.server.rules.credentials import Caller, WorkspaceAccess
from custody.server.rules.limits import Cycle
from custody.server.rules.ports import Clock
from custody.server.rules.roles import FIRST_ROLES, RoleTemplate
from custody.server.store.models import OrganisationRow, RolePermissionRow, RoleRow, WorkspaceRow
from multisig import Network

FIRST_CYCLE = Cycle("M", 1)
CREATED = Event(
    "WORKSPACE_CREATED", "workspace {workspace}, named {name}, on {network}", "made the workspace {name}"
)
ORGANISATION_CREATED = Event(
    "ORGANISATION_CREATED", "organisation {organisation}, named {name}[, for user {user}]"
)


class NoChainYet(StateConflict):
    """The first workspace of a network decides its chain; only the operator can create it."""

    hint = "Ask the platform's operator, who opens a network with custody admin bootstrap --chain."


@dataclass(frozen=True)
class Founded:
    """A workspace and its administrator role. Give the role to a user in the same transaction."""

    workspace: WorkspaceRow
    administrator: RoleRow


def found_organisation(db: Session, clock: Clock, name: str) -> OrganisationRow:
    organisation = OrganisationRow(name=name, created_at=clock())
    db.add(organisation)
    db.flush()
    return organisation


def found_workspace(
    db: Session, clock: Clock, organisation: OrganisationRow, *, name: str, description: str, chain: Network
) -> Founded:
    """A workspace with the first roles and no member: call ``people.add_membership`` next.

    Raises StateConflict where the organisation has a workspace with this name, or the platform's network is
    on another chain.
    """
    _require_chain(db, chain)
    require_free_workspace_name(db, organisation.id, name)
    workspace = WorkspaceRow(
        organisation_id=organisation.id,
        name=name,
        description=description,
        network=chain.api_name,
        chain=chain.value,
        created_at=clock(),
    )
    is_first = (
        db.scalars(select(WorkspaceRow.id).where(WorkspaceRow.network == chain.api_name)).first() is None
    )
    db.add(workspace)
    db.flush()
    if is_first:
        watch_profiles(db, workspace.network, workspace.chain)
    administrator, *_ = [add_first_role(db, clock, workspace, template) for template in FIRST_ROLES]
    return Founded(workspace, administrator)


def add_first_role(db: Session, clock: Clock, workspace: WorkspaceRow, template: RoleTemplate) -> RoleRow:
    now = clock()
    role = RoleRow(
        workspace_id=workspace.id,
        name=template.name,
        description=template.description,
        limit_sats=template.limit,
        cycle_period=FIRST_CYCLE.period,
        cycle_day=FIRST_CYCLE.day,
        created_at=now,
        updated_at=now,
    )
    db.add(role)
    db.flush()
    db.add_all(RolePermissionRow(role_id=role.id, permission=name.value) for name in template.permissions)
    db.flush()
    return role


def chain_for(db: Session, network: str) -> Network:
    """The chain of a new workspace on an API network: that of the platform's other workspaces. Raises
    NoChainYet.
    """
    if network == Network.MAINNET.api_name:
        return Network.MAINNET
    try:
        return chain_of_network(db, network)
    except NotFound as error:
        raise NoChainYet(f"No workspace of this platform is on {network} yet.") from error


def record_founding(
    db: Session, audit: AuditLog, caller: Caller, access: WorkspaceAccess, founded: Founded
) -> None:
    """Records the first event of the workspace's chain. ``access``: the founder's, or `system.place_of`."""
    workspace = founded.workspace
    facts = {"workspace": workspace.id, "name": workspace.name, "network": workspace.network}
    audit.record(db, caller, CREATED, access, **facts)


def record_organisation(
    db: Session, audit: AuditLog, caller: Caller, organisation: OrganisationRow, user_id: int | None = None
) -> None:
    """Records the first event of the organisation's chain. ``user_id``: who had asked for it."""
    facts = {"organisation": organisation.id, "name": organisation.name, "user": user_id}
    audit.record(db, caller, ORGANISATION_CREATED, None, None, organisation.id, **facts)


def require_free_workspace_name(db: Session, organisation_id: int, name: str, *, besides: int = 0) -> None:
    """Names that look the same count as equal. Raises StateConflict."""
    others = WorkspaceRow.organisation_id == organisation_id, WorkspaceRow.id != besides
    for taken in db.scalars(select(WorkspaceRow.name).where(*others)):
        if name_key(taken) == name_key(name):
            raise StateConflict(f"The organisation has a workspace called {taken} already.")


def _require_chain(db: Session, chain: Network) -> None:
    """``testnet`` means one chain on one platform, because profile addresses name no workspace."""
    other = db.scalars(
        select(WorkspaceRow.chain).where(
            WorkspaceRow.network == chain.api_name, WorkspaceRow.chain != chain.value
        )
    ).first()
    if other is not None:
        raise StateConflict(
            f"On this platform, {chain.api_name} always means {other}. "
            f"Create it on {other}, or start another platform."
        )
