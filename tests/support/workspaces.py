"""Rows of workspaces where only their existence matters."""

from sqlalchemy.orm import Session

from custody.server.store.models import OrganisationRow, WorkspaceRow
from tests.support.platform import START


def found_workspace(db: Session, name: str, chain: str = "regtest") -> int:
    """The id of a workspace, in an organisation of its own."""
    organisation = OrganisationRow(name=f"Organisation of {name}", created_at=START)
    db.add(organisation)
    db.flush()
    workspace = WorkspaceRow(
        organisation_id=organisation.id,
        name=name,
        description="",
        network="mainnet" if chain == "mainnet" else "testnet",
        chain=chain,
        created_at=START,
    )
    db.add(workspace)
    db.flush()
    return workspace.id
