"""Inviting people to a workspace by e-mail, and their answers.

To answer, a user must be signed in with the invited address. The first sign-in needs a code that is mailed to
that address, so registering another person's address is not enough.
"""

from collections.abc import Sequence
from datetime import datetime
from functools import partial
from typing import Any

from sqlalchemy import ColumnElement, Select, func, select
from sqlalchemy.orm import Session

from custody.schemas.common import Listed, WorkspaceQuery
from custody.schemas.invitations import (
    ACCEPT_INVITE,
    INVITE_TO_WORKSPACE,
    OWN_INVITATIONS,
    REVOKE_INVITE,
    WORKSPACE_INVITATIONS,
    AcceptInviteQuery,
    Invitation,
    InviteResponse,
    InviteToWorkspaceRequest,
    RevokeInviteRequest,
)
from custody.schemas.invitations import InvitationStatus as Status
from custody.schemas.permissions import PermissionName
from custody.server.audit.log import AuditLog
from custody.server.calls import Ctx, serves
from custody.server.errors import NotFound, StateConflict
from custody.server.jobs.tidying import Sweep, end_due
from custody.server.mail.jobs import Template, queue_mail
from custody.server.people.grants import is_within_limits, require_within_limits
from custody.server.people.people import add_membership
from custody.server.people.staff import permissions_of, role_in
from custody.server.requests.rates import require_few
from custody.server.rules.audit import Event
from custody.server.rules.credentials import PLATFORM, Caller, WorkspaceAccess, new_id
from custody.server.rules.invitations import (
    ADDRESS_RATE,
    INVITATION_LIFETIME,
    MAX_PENDING_IN_WORKSPACE,
    ORGANISATION_RATE,
    AlreadyInvited,
    NoLongerGranted,
    NotTheInvitee,
    Rate,
    TooManyPending,
    require_pending,
    status_at,
)
from custody.server.rules.ports import Clock
from custody.server.rules.roles import require_grantable
from custody.server.shown import shape_of, shown
from custody.server.sign_in.accounts import find_user
from custody.server.store import Store, models
from custody.server.store.models import MembershipRow, OrganisationRow, RoleRow, UserRow, WorkspaceRow
from custody.server.vaults.stored import place_of

INVITATION = "invitation {invitation} for {email}, with role {role}"


SENT = Event("INVITATION_SENT", INVITATION, "invited {email} with the role {role}")
ACCEPTED = Event("INVITATION_ACCEPTED", INVITATION, "accepted the invitation, with the role {role}")
DECLINED = Event("INVITATION_DECLINED", INVITATION, "declined the invitation of {email}")
REVOKED = Event("INVITATION_REVOKED", INVITATION, "took back the invitation of {email}")
EXPIRED = Event("INVITATION_EXPIRED", INVITATION, "The invitation of {email} expired")


@serves(INVITE_TO_WORKSPACE)
def invite_to_workspace(ctx: Ctx, request: InviteToWorkspaceRequest) -> InviteResponse:
    """Mails the address, whether it has an account or not."""
    if request.org_id != ctx.access.organisation_id:
        raise NotFound("The workspace and the organisation named do not belong together.")
    role = role_in(ctx.db, ctx.access, request.role_id)
    require_grantable(permissions_of(ctx.db, role.id), ctx.access.permissions)
    held = ctx.access.permissions
    require_within_limits(ctx.db, ctx.tools.policies, role.id, ctx.access.role_id, held)
    _require_new(ctx, request.invited_email)
    _require_room(ctx, request.invited_email)
    now = ctx.now
    invitation = models.InvitationRow(
        id=new_id(ctx.tools.random),
        organisation_id=ctx.access.organisation_id,
        workspace_id=ctx.access.workspace_id,
        role_id=request.role_id,
        invited_email=request.invited_email,
        invited_by=ctx.caller.user_id,
        status=Status.PENDING.value,
        created_at=now,
        expires_at=now + INVITATION_LIFETIME,
    )
    ctx.db.add(invitation)
    _mail(ctx, invitation)
    _record(ctx.db, ctx.tools.audit, ctx.caller, ctx.access, SENT, invitation)
    return InviteResponse(invite_id=invitation.id)


@serves(WORKSPACE_INVITATIONS)
def workspace_invitations(ctx: Ctx, _: WorkspaceQuery) -> Listed[Invitation]:
    return _listed(ctx, models.InvitationRow.workspace_id == ctx.access.workspace_id)


@serves(OWN_INVITATIONS)
def own_invitations(ctx: Ctx, _: None) -> Listed[Invitation]:
    address = ctx.db.get_one(UserRow, ctx.caller.user_id).email
    return _listed(ctx, models.InvitationRow.invited_email == address)


@serves(ACCEPT_INVITE)
def accept_invite(ctx: Ctx, request: AcceptInviteQuery) -> Invitation:
    invitation = ctx.db.get(models.InvitationRow, request.invite_id, with_for_update=True)
    if invitation is None:
        raise NotFound("There is no such invitation.")
    if ctx.db.get_one(UserRow, ctx.caller.user_id).email != invitation.invited_email:
        raise NotTheInvitee("This invitation was sent to another address than your account's.")
    _decide(ctx, invitation, Status.ACCEPTED if request.accept else Status.DECLINED)
    if request.accept:
        _join(ctx, invitation)
    access = place_of(ctx.db, invitation.workspace_id)
    event = ACCEPTED if request.accept else DECLINED
    _record(ctx.db, ctx.tools.audit, ctx.caller, access, event, invitation)
    return _details(ctx.db, invitation)


@serves(REVOKE_INVITE)
def revoke_invite(ctx: Ctx, request: RevokeInviteRequest) -> Invitation:
    invitation = ctx.db.get(models.InvitationRow, request.invite_id, with_for_update=True)
    if invitation is None or invitation.workspace_id != ctx.access.workspace_id:
        raise NotFound("There is no such invitation to this workspace.")
    _decide(ctx, invitation, Status.REVOKED)
    _record(ctx.db, ctx.tools.audit, ctx.caller, ctx.access, REVOKED, invitation)
    return _details(ctx.db, invitation)


def invited_address(db: Session, invite_id: str, now: datetime) -> str | None:
    """The address of a pending invitation, for a caller who has its link; else None."""
    is_it = _pending(models.InvitationRow.id == invite_id, now)
    return db.scalar(select(models.InvitationRow.invited_email).where(*is_it))


def _require_new(ctx: Ctx, address: str) -> None:
    user = find_user(ctx.db, address)
    if user is not None and _role_held(ctx.db, user.id, ctx.access.workspace_id) is not None:
        raise StateConflict(f"{address} is a member of this workspace already.")
    open_one = ctx.db.scalars(
        select(models.InvitationRow).where(
            models.InvitationRow.workspace_id == ctx.access.workspace_id,
            models.InvitationRow.invited_email == address,
            models.InvitationRow.status == Status.PENDING.value,
        )
    ).one_or_none()
    if open_one is None:
        return
    if _status(ctx, open_one) is Status.PENDING:
        raise AlreadyInvited(f"{address} has an open invitation to this workspace, {open_one.id}.")
    expire(ctx.db, ctx.tools.audit, open_one)


def _require_room(ctx: Ctx, address: str) -> None:
    pending = _pending(models.InvitationRow.workspace_id == ctx.access.workspace_id, ctx.now)
    if (ctx.db.scalar(select(func.count()).where(*pending)) or 0) >= MAX_PENDING_IN_WORKSPACE:
        raise TooManyPending(f"{MAX_PENDING_IN_WORKSPACE} invitations to this workspace are open.")
    same_organisation = models.InvitationRow.organisation_id == ctx.access.organisation_id
    _require_rate(ctx, ORGANISATION_RATE, "by your organisation", same_organisation)
    to_address = models.InvitationRow.invited_email == address
    _require_rate(ctx, ADDRESS_RATE, f"to {address}", same_organisation, to_address)


def _require_rate(ctx: Ctx, rate: Rate, whose: str, *of: ColumnElement[bool]) -> None:
    sentence = f"Too many invitations were sent {whose} of late."
    at = models.InvitationRow.created_at
    require_few(ctx.db, at, of, rate.limit, rate.window, ctx.now, sentence)


def _mail(ctx: Ctx, invitation: models.InvitationRow) -> None:
    details = _details(ctx.db, invitation)
    values = {
        "organisation": details.org_name,
        "workspace": details.workspace_name,
        "role": details.role_name,
        "inviter": details.invited_by,
        "invite_id": details.invite_uid,
        "expires_at": f"{details.expires_at:%d %B %Y, %H:%M} UTC",
    }
    queue_mail(ctx.db, Template.INVITATION, details.invited_email, values, now=ctx.now)


def _join(ctx: Ctx, invitation: models.InvitationRow) -> None:
    """Checks the grant again: since the invitation the role may have gained permissions, or the inviter may
    have lost some (P26).
    """
    inviter = _role_held(ctx.db, invitation.invited_by, invitation.workspace_id)
    if inviter is None or not _may_give(ctx, inviter, invitation.role_id):
        raise NoLongerGranted("The member who invited you may no longer grant this role.")
    add_membership(ctx.db, ctx.now, ctx.caller.user_id, invitation.workspace_id, invitation.role_id)


def _may_give(ctx: Ctx, inviter_role_id: int, role_id: int) -> bool:
    held = permissions_of(ctx.db, inviter_role_id)
    if PermissionName.MANAGE_USERS not in held or permissions_of(ctx.db, role_id) - held:
        return False
    return is_within_limits(ctx.db, ctx.tools.policies, role_id, inviter_role_id, held)


def _decide(ctx: Ctx, invitation: models.InvitationRow, status: Status) -> None:
    """Raises InvitationDecided."""
    require_pending(_status(ctx, invitation))
    invitation.status, invitation.decided_at = status.value, ctx.now


def _status(ctx: Ctx, invitation: models.InvitationRow) -> Status:
    return status_at(Status(invitation.status), invitation.expires_at, ctx.now)


def _pending(of: ColumnElement[bool], now: datetime) -> tuple[ColumnElement[bool], ...]:
    return of, models.InvitationRow.status == Status.PENDING.value, models.InvitationRow.expires_at > now


def withdraw_offer(ctx: Ctx, user_id: int) -> None:
    """Revokes a former member's open invitations, which would let them in again."""
    address = ctx.db.get_one(UserRow, user_id).email
    in_workspace = models.InvitationRow.workspace_id == ctx.access.workspace_id
    pending = _pending(models.InvitationRow.invited_email == address, ctx.now)
    for invitation in ctx.db.scalars(select(models.InvitationRow).where(in_workspace, *pending)).all():
        _decide(ctx, invitation, Status.REVOKED)
        _record(ctx.db, ctx.tools.audit, ctx.caller, ctx.access, REVOKED, invitation)


def _role_held(db: Session, user_id: int, workspace_id: int) -> int | None:
    query = select(MembershipRow.role_id).where(
        MembershipRow.user_id == user_id, MembershipRow.workspace_id == workspace_id
    )
    return db.scalars(query).one_or_none()


def _listed(ctx: Ctx, of: ColumnElement[bool]) -> Listed[Invitation]:
    """Those that are pending."""
    rows = _rows(ctx.db, _pending(of, ctx.now))
    return shown(rows, lambda some: [_shape(*row) for row in some], "InviteUID", lambda row: row[0].id)


def _rows(db: Session, wanted: tuple[ColumnElement[bool], ...]) -> Sequence[Any]:
    """Those that ``wanted`` selects, the oldest first."""
    query = (
        select(models.InvitationRow, OrganisationRow.name, WorkspaceRow.name, RoleRow.name, UserRow.email)
        .join(OrganisationRow, OrganisationRow.id == models.InvitationRow.organisation_id)
        .join(WorkspaceRow, WorkspaceRow.id == models.InvitationRow.workspace_id)
        .join(RoleRow, RoleRow.id == models.InvitationRow.role_id)
        .join(UserRow, UserRow.id == models.InvitationRow.invited_by)
        .where(*wanted)
        .order_by(models.InvitationRow.created_at, models.InvitationRow.id)
    )
    return db.execute(query).all()


def _details(db: Session, invitation: models.InvitationRow) -> Invitation:
    """As it is now."""
    db.flush()
    (found,) = _rows(db, (models.InvitationRow.id == invitation.id,))
    return _shape(*found)


def _record(
    db: Session,
    audit: AuditLog,
    caller: Caller,
    access: WorkspaceAccess,
    event: Event,
    invitation: models.InvitationRow,
) -> None:
    # An accepted invitation is a webhook event: the caller is the new member.
    payload = {"user_id": caller.user_id, "role_id": invitation.role_id}
    facts = {"invitation": invitation.id, "email": invitation.invited_email, "role": invitation.role_id}
    audit.record(db, caller, event, access, payload, **facts)


def _shape(
    invitation: models.InvitationRow, organisation: str, workspace: str, role: str, inviter: str
) -> Invitation:
    return shape_of(
        Invitation,
        invitation,
        invite_uid=invitation.id,
        org_id=invitation.organisation_id,
        org_name=organisation,
        workspace_name=workspace,
        role_name=role,
        invited_by=inviter,
    )


def invitation_expiry(store: Store, clock: Clock, audit: AuditLog) -> Sweep:
    def due(now: datetime) -> Select[models.InvitationRow]:
        is_over = models.InvitationRow.status == Status.PENDING.value, models.InvitationRow.expires_at <= now
        return select(models.InvitationRow).where(*is_over).order_by(models.InvitationRow.expires_at)

    return partial(end_due, store, clock, due, lambda db, invitation: expire(db, audit, invitation))


def expire(db: Session, audit: AuditLog, invitation: models.InvitationRow) -> None:
    """Marks an invitation that has expired, in the caller's transaction."""
    require_pending(Status(invitation.status))
    invitation.status = Status.EXPIRED.value
    invitation.decided_at = invitation.expires_at
    db.flush()
    place = place_of(db, invitation.workspace_id)
    _record(db, audit, PLATFORM, place, EXPIRED, invitation)
