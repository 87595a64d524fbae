"""Who acts where no signed-in person does, for the audit log."""

from sqlalchemy.orm import Session

from custody.server.domain.caller import Caller, WorkspaceAccess
from custody.server.store.models import Workspace

PLATFORM = Caller(user_id=0, session_id=0, name="platform", trace_id="")
OPERATOR = Caller(user_id=0, session_id=0, name="operator", trace_id="")


def place_of(db: Session, workspace_id: int) -> WorkspaceAccess:
    """The workspace an event of the platform's own belongs to; it carries no permission."""
    place = db.get_one(Workspace, workspace_id)
    return WorkspaceAccess(
        workspace_id=place.id,
        organisation_id=place.organisation_id,
        network=place.network,
        chain=place.chain,
        role_id=0,
        permissions=frozenset(),
    )
