"""Callers that are no member, for the audit log: the platform itself, and its operator at the command
line.
"""

from sqlalchemy.orm import Session

from custody.server.domain.credentials import Caller, WorkspaceAccess
from custody.server.store.models import Workspace

PLATFORM = Caller(user_id=0, session_id=0, name="platform", trace_id="")
OPERATOR = Caller(user_id=0, session_id=0, name="operator", trace_id="")


def place_of(db: Session, workspace_id: int) -> WorkspaceAccess:
    """The workspace that an event of the platform itself belongs to, without any permission."""
    place = db.get_one(Workspace, workspace_id)
    return WorkspaceAccess(
        workspace_id=place.id,
        organisation_id=place.organisation_id,
        network=place.network,
        chain=place.chain,
        role_id=0,
        permissions=frozenset(),
    )
