"""How a workspace comes into being: on a chain, with its first roles and the administrator who is the first member.

A workspace is founded from the command line, by an administrator of the same organisation, and where a request for an
organisation is approved: all three do it here, in their own transaction.
"""

from dataclasses import dataclass

from sqlalchemy import select
from sqlalchemy.orm import Session

from custody.server.domain.cycles import Cycle
from custody.server.domain.errors import StateConflict
from custody.server.domain.permissions import FIRST_ROLES, RoleTemplate
from custody.server.domain.ports import Clock
from custody.server.store.models import Organisation, Role, RolePermission, Workspace
from multisig import Network

# A new role's limit begins anew with each month.
FIRST_CYCLE = Cycle("M", 1)


class NoChainYet(StateConflict):
    """The first workspace of a network decides its chain, which only the operator can."""

    hint = "Ask the platform's operator, who opens a network with custody admin bootstrap --chain."


@dataclass(frozen=True)
class Founded:
    """A workspace and the role for its first administrator. Give it to somebody in the same transaction."""

    workspace: Workspace
    administrator: Role


def found_organisation(db: Session, clock: Clock, name: str) -> Organisation:
    organisation = Organisation(name=name, created_at=clock())
    db.add(organisation)
    db.flush()
    return organisation


def found_workspace(
    db: Session, clock: Clock, organisation: Organisation, *, name: str, description: str, chain: Network
) -> Founded:
    """A workspace with the first roles, and nobody in it yet: follow with ``people.add_membership``.

    Raises StateConflict where the organisation has one of that name, or the platform's network is on another chain.
    """
    _require_chain(db, chain)
    require_free_workspace_name(db, organisation.id, name)
    workspace = Workspace(
        organisation_id=organisation.id,
        name=name,
        description=description,
        network=chain.api_name,
        chain=chain.value,
        created_at=clock(),
    )
    db.add(workspace)
    db.flush()
    administrator, *_ = [add_first_role(db, clock, workspace, template) for template in FIRST_ROLES]
    return Founded(workspace, administrator)


def add_first_role(db: Session, clock: Clock, workspace: Workspace, template: RoleTemplate) -> Role:
    now = clock()
    role = Role(
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
    db.add_all(RolePermission(role_id=role.id, permission=name.value) for name in template.permissions)
    db.flush()
    return role


def chain_for(db: Session, network: str) -> Network:
    """The chain that a new workspace on an API network is on: the platform's other workspaces say it. Raises NoChainYet."""
    if network == Network.MAINNET.api_name:
        return Network.MAINNET
    chain = db.scalars(select(Workspace.chain).where(Workspace.network == network).limit(1)).one_or_none()
    if chain is None:
        raise NoChainYet(
            f"No workspace of this platform is on {network} yet, so that its chain is not known."
        )
    return Network(chain)


def require_free_workspace_name(db: Session, organisation_id: int, name: str) -> None:
    """Raises StateConflict."""
    taken = select(Workspace.id).where(Workspace.organisation_id == organisation_id, Workspace.name == name)
    if db.scalars(taken).first() is not None:
        raise StateConflict(f"The organisation has a workspace called {name} already.")


def _require_chain(db: Session, chain: Network) -> None:
    """What ``testnet`` means is one thing on one platform: profile addresses name no workspace."""
    other = db.scalars(
        select(Workspace.chain).where(Workspace.network == chain.api_name, Workspace.chain != chain.value)
    ).first()
    if other is not None:
        raise StateConflict(f"On this platform, {chain.api_name} means {other}.")
