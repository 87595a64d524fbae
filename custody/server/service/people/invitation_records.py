"""Stored invitations as their record, and as events of the audit log."""

from sqlalchemy import ColumnElement, select
from sqlalchemy.orm import Session

from custody.schemas import invitations as wire
from custody.schemas.invitations import InvitationStatus
from custody.server.domain.audit import Category
from custody.server.domain.caller import Caller, WorkspaceAccess
from custody.server.service.audit.log import AuditLog
from custody.server.store.models import Invitation, Organisation, Role, User, Workspace


def invitation_records(db: Session, wanted: tuple[ColumnElement[bool], ...]) -> list[wire.Invitation]:
    """Those that ``wanted`` selects, the oldest first."""
    query = (
        select(Invitation, Organisation.name, Workspace.name, Role.name, User.email)
        .join(Organisation, Organisation.id == Invitation.organisation_id)
        .join(Workspace, Workspace.id == Invitation.workspace_id)
        .join(Role, Role.id == Invitation.role_id)
        .join(User, User.id == Invitation.invited_by)
        .where(*wanted)
        .order_by(Invitation.created_at, Invitation.id)
    )
    return [_shape(*row) for row in db.execute(query)]


def invitation_record(db: Session, invitation: Invitation) -> wire.Invitation:
    """One, as it is now."""
    db.flush()
    (found,) = invitation_records(db, (Invitation.id == invitation.id,))
    return found


def record_event(
    db: Session,
    audit: AuditLog,
    caller: Caller,
    access: WorkspaceAccess,
    action: str,
    invitation: Invitation,
) -> None:
    description = f"invitation {invitation.id} for {invitation.invited_email}, with role {invitation.role_id}"
    # Of one that is accepted, webhooks are told: whoever was invited is a member now, and is who accepts.
    told = {"user_id": caller.user_id, "role_id": invitation.role_id}
    audit.record(db, caller, Category.PEOPLE, action, description, access=access, told=told)


def _shape(
    invitation: Invitation, organisation: str, workspace: str, role: str, inviter: str
) -> wire.Invitation:
    return wire.Invitation(
        invite_uid=invitation.id,
        invited_email=invitation.invited_email,
        org_id=invitation.organisation_id,
        org_name=organisation,
        workspace_id=invitation.workspace_id,
        workspace_name=workspace,
        role_id=invitation.role_id,
        role_name=role,
        invited_by=inviter,
        status=InvitationStatus(invitation.status),
        created_at=invitation.created_at,
        expires_at=invitation.expires_at,
    )
