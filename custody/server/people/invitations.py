"""Inviting people to a workspace by e-mail, and their answers.

To answer, a user must be signed in with the invited address. The first sign-in needs a code that is mailed to
that address, so registering another person's address is not enough.
"""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from functools import partial
from typing import Any

from sqlalchemy import ColumnElement, func, select
from sqlalchemy.orm import Session

from custody.schemas import users as wire
from custody.schemas.call import PermissionName
from custody.schemas.common import Listed, WorkspaceQuery
from custody.schemas.users import InvitationStatus as Status
from custody.server.audit.log import AuditLog
from custody.server.calls import Ctx, serves
from custody.server.errors import NotFound, PermissionDenied, StateConflict
from custody.server.jobs.tidying import Sweep, end_due
from custody.server.mail.jobs import Template, queue_mail
from custody.server.people.people import add_membership
from custody.server.people.staff import (
    membership_of,
    permissions_of,
    require_may_give,
    waiting_for_answer,
)
from custody.server.requests.rates import require_few
from custody.server.rules.audit import Event
from custody.server.rules.credentials import PLATFORM, WorkspaceAccess, new_id
from custody.server.rules.ports import Clock
from custody.server.shown import shape_of, shown
from custody.server.sign_in.accounts import find_user
from custody.server.store import Store, models
from custody.server.store.models import OrganisationRow, RoleRow, UserRow, WorkspaceRow
from custody.server.vaults.stored import place_of

# As long as GitHub's to an organisation.
INVITATION_LIFETIME = timedelta(days=7)
# Each one is a mail to a person who did not ask for it.
MAX_PENDING_IN_WORKSPACE = 100
# At most so many in any such time, whatever their status: for a whole organisation, so that more workspaces
# do not allow more mails; and to one address from one organisation: revoking and inviting again must not fill
# a mailbox.
ORGANISATION_RATE = (100, timedelta(hours=1))
ADDRESS_RATE = (5, timedelta(days=1))


SENT = Event("INVITATION_SENT", "invited {email} with the role {role} // invitation {invitation}")
ACCEPTED = Event(
    "INVITATION_ACCEPTED",
    "accepted the invitation, with the role {role} // invitation {invitation}, email {email}",
)
DECLINED = Event(
    "INVITATION_DECLINED", "declined the invitation of {email} // invitation {invitation}, role {role}"
)
REVOKED = Event(
    "INVITATION_REVOKED", "took back the invitation of {email} // invitation {invitation}, role {role}"
)
EXPIRED = Event(
    "INVITATION_EXPIRED", "The invitation of {email} expired // invitation {invitation}, role {role}"
)
_IN_WORDS = {
    Status.ACCEPTED: "was accepted already",
    Status.DECLINED: "was declined",
    Status.EXPIRED: "has expired",
    Status.REVOKED: "was revoked",
}


@serves(wire.INVITE_TO_WORKSPACE)
def invite_to_workspace(ctx: Ctx, request: wire.InviteToWorkspaceRequest) -> wire.InviteResponse:
    """Mails the address, whether it has an account or not."""
    if request.org_id != ctx.access.organisation_id:
        raise NotFound("The workspace and the organisation named do not belong together.")
    role = ctx.find(RoleRow, request.role_id, "role")
    require_may_give(ctx.db, ctx.tools.policies, ctx.access, role.id, permissions_of(ctx.db, role.id))
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
    ctx.event(SENT, **_facts(invitation))
    return wire.InviteResponse(invite_id=invitation.id)


@serves(wire.WORKSPACE_INVITATIONS)
def workspace_invitations(ctx: Ctx, _: WorkspaceQuery) -> Listed[wire.Invitation]:
    return _listed(ctx, models.InvitationRow.workspace_id == ctx.access.workspace_id)


@serves(wire.OWN_INVITATIONS)
def own_invitations(ctx: Ctx, _: None) -> Listed[wire.Invitation]:
    address = ctx.db.get_one(UserRow, ctx.caller.user_id).email
    return _listed(ctx, models.InvitationRow.invited_email == address)


@serves(wire.ACCEPT_INVITE)
def accept_invite(ctx: Ctx, request: wire.AcceptInviteQuery) -> wire.Invitation:
    invitation = ctx.db.get(models.InvitationRow, request.invite_id, with_for_update=True)
    if invitation is None:
        raise NotFound("There is no such invitation.")
    if ctx.db.get_one(UserRow, ctx.caller.user_id).email != invitation.invited_email:
        # P46. The answer does not tell the invited address.
        raise PermissionDenied(
            "This invitation was sent to another address than your account's.",
            hint="Sign in with the account of the address that the invitation was sent to.",
        )
    _decide(ctx, invitation, Status.ACCEPTED if request.accept else Status.DECLINED)
    access = place_of(ctx.db, invitation.workspace_id)
    if request.accept:
        _join(ctx, access, invitation)
    # An accepted one is a webhook's event: the caller is the new member.
    payload = {"user_id": ctx.caller.user_id, "role_id": invitation.role_id}
    replace(ctx, maybe_access=access).event(
        ACCEPTED if request.accept else DECLINED, payload, **_facts(invitation)
    )
    return _details(ctx.db, invitation)


@serves(wire.REVOKE_INVITE)
def revoke_invite(ctx: Ctx, request: wire.RevokeInviteRequest) -> wire.Invitation:
    invitation = ctx.find(models.InvitationRow, request.invite_id, "invitation", for_update=True)
    _decide(ctx, invitation, Status.REVOKED)
    ctx.event(REVOKED, **_facts(invitation))
    return _details(ctx.db, invitation)


def invited_address(db: Session, invite_id: str, now: datetime) -> str | None:
    """The address of a pending invitation, for a caller who has its link; else None."""
    is_it = waiting_for_answer(models.InvitationRow.id == invite_id, now)
    return db.scalar(select(models.InvitationRow.invited_email).where(*is_it))


def _require_new(ctx: Ctx, address: str) -> None:
    user = find_user(ctx.db, address)
    if user is not None and membership_of(ctx.db, user.id, ctx.access.workspace_id) is not None:
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
    if _status(open_one, ctx.now) is Status.PENDING:
        raise StateConflict(
            f"{address} has an open invitation to this workspace, {open_one.id}.",
            hint="Wait for the answer, or take the invitation back before you invite again.",
        )
    expire(ctx.db, open_one, ctx.tools.audit)


def _require_room(ctx: Ctx, address: str) -> None:
    pending = waiting_for_answer(models.InvitationRow.workspace_id == ctx.access.workspace_id, ctx.now)
    if (ctx.db.scalar(select(func.count()).where(*pending)) or 0) >= MAX_PENDING_IN_WORKSPACE:
        raise StateConflict(
            f"{MAX_PENDING_IN_WORKSPACE} invitations to this workspace are open.",
            hint="Revoke what is no longer wanted with POST /api/v1/revoke-invite.",
        )
    ours = models.InvitationRow.organisation_id == ctx.access.organisation_id
    to_address = models.InvitationRow.invited_email == address
    for (limit, window), whose, of in (
        (ORGANISATION_RATE, "by your organisation", [ours]),
        (ADDRESS_RATE, f"to {address}", [ours, to_address]),
    ):
        sentence = f"Too many invitations were sent {whose} of late."
        require_few(ctx.db, models.InvitationRow.created_at, of, limit, window, ctx.now, sentence)


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


def _join(ctx: Ctx, access: WorkspaceAccess, invitation: models.InvitationRow) -> None:
    """Checks the grant again: since the invitation the role may have gained permissions, or the inviter may
    have lost some (P26).
    """
    inviter, role_id = membership_of(ctx.db, invitation.invited_by, access.workspace_id), invitation.role_id
    held = frozenset() if inviter is None else permissions_of(ctx.db, inviter.role_id)
    refusal = StateConflict(
        "The member who invited you may no longer grant this role.",
        hint="Ask an administrator of the workspace for a new invitation.",
    )
    if inviter is None or PermissionName.MANAGE_USERS not in held:
        raise refusal
    giver = replace(access, role_id=inviter.role_id, permissions=held)
    try:
        require_may_give(ctx.db, ctx.tools.policies, giver, role_id, permissions_of(ctx.db, role_id))
    except PermissionDenied:
        raise refusal from None
    add_membership(ctx.db, ctx.now, ctx.caller.user_id, invitation.workspace_id, invitation.role_id)


def _decide(ctx: Ctx, invitation: models.InvitationRow, status: Status) -> None:
    """An answer, a revocation or an end is final. Raises StateConflict."""
    present = _status(invitation, ctx.now)
    if present is not Status.PENDING:
        raise StateConflict(
            f"This invitation {_IN_WORDS[present]}.",
            hint="Ask an administrator of the workspace for a new one, if it is still wanted.",
        )
    invitation.status, invitation.decided_at = status.value, ctx.now


def _status(invitation: models.InvitationRow, now: datetime) -> Status:
    """The effective status: a pending one is expired at ``expires_at``, even before that is stored."""
    stored = Status(invitation.status)
    return Status.EXPIRED if stored is Status.PENDING and now >= invitation.expires_at else stored


def withdraw_offer(ctx: Ctx, user_id: int) -> None:
    """Revokes a former member's open invitations, which would let them in again."""
    address = ctx.db.get_one(UserRow, user_id).email
    in_workspace = models.InvitationRow.workspace_id == ctx.access.workspace_id
    pending = waiting_for_answer(models.InvitationRow.invited_email == address, ctx.now)
    for invitation in ctx.db.scalars(select(models.InvitationRow).where(in_workspace, *pending)).all():
        _decide(ctx, invitation, Status.REVOKED)
        ctx.event(REVOKED, **_facts(invitation))


def _listed(ctx: Ctx, of: ColumnElement[bool]) -> Listed[wire.Invitation]:
    """Those that are pending."""
    rows = _rows(ctx.db, waiting_for_answer(of, ctx.now))
    return shown(rows, _shapes, "InviteUID", lambda row: row[0].id)


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


def _details(db: Session, invitation: models.InvitationRow) -> wire.Invitation:
    """As it is now."""
    db.flush()
    return _shapes(_rows(db, (models.InvitationRow.id == invitation.id,)))[0]


def _facts(invitation: models.InvitationRow) -> dict[str, Any]:
    return {"invitation": invitation.id, "email": invitation.invited_email, "role": invitation.role_id}


def _shapes(rows: Sequence[Any]) -> list[wire.Invitation]:
    return [
        shape_of(
            wire.Invitation,
            invitation,
            invite_uid=invitation.id,
            org_id=invitation.organisation_id,
            org_name=organisation,
            workspace_name=workspace,
            role_name=role,
            invited_by=inviter,
        )
        for invitation, organisation, workspace, role, inviter in rows
    ]


def invitation_expiry(store: Store, clock: Clock, audit: AuditLog) -> Sweep:
    table, end = models.InvitationRow, partial(expire, audit=audit)
    return partial(end_due, store, clock, table.expires_at, table.status == Status.PENDING.value, end)


def expire(db: Session, invitation: models.InvitationRow, audit: AuditLog) -> None:
    """Marks an invitation that has expired, in the caller's transaction."""
    invitation.status = Status.EXPIRED.value
    invitation.decided_at = invitation.expires_at
    db.flush()
    place = place_of(db, invitation.workspace_id)
    audit.record(db, PLATFORM, EXPIRED, place, **_facts(invitation))
