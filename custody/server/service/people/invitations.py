"""Inviting people to a workspace by e-mail, and their answers.

To answer, a user must be signed in with the invited address. The first sign-in needs a code that is mailed to
that address, so registering another person's address is not enough.
"""

from collections.abc import Sequence
from datetime import datetime
from math import ceil
from typing import Any

from sqlalchemy import ColumnElement, Select, func, select
from sqlalchemy.orm import Session

from custody.schemas import invitations as wire
from custody.schemas.common import Listed
from custody.schemas.invitations import InvitationStatus as Status
from custody.schemas.users import PermissionName
from custody.server.domain.audit import Category
from custody.server.domain.credentials import PLATFORM, Caller, WorkspaceAccess, new_id
from custody.server.domain.errors import NotFound, RateLimited, StateConflict
from custody.server.domain.invitations import (
    ADDRESS_RATE,
    INVITATION_LIFETIME,
    MAX_PENDING_IN_WORKSPACE,
    ORGANISATION_RATE,
    AlreadyInvited,
    Event,
    NoLongerGranted,
    NotTheInvitee,
    Rate,
    TooManyPending,
    next_status,
    status_at,
)
from custody.server.domain.ports import Clock, RandomBytes
from custody.server.domain.roles import require_grantable
from custody.server.service.audit.log import AuditLog
from custody.server.service.jobs.tidying import Expiry
from custody.server.service.mail.jobs import Template, queue_mail
from custody.server.service.people.grants import LimitGrants
from custody.server.service.people.people import add_membership
from custody.server.service.people.staff import permissions_of, role_in
from custody.server.service.shown import shown
from custody.server.service.sign_in.accounts import find_user
from custody.server.service.stored_vaults import place_of
from custody.server.store import Store
from custody.server.store.models import Invitation, Membership, Organisation, Role, User, Workspace


class Invitations:
    def __init__(self, clock: Clock, random: RandomBytes, audit: AuditLog, limits: LimitGrants) -> None:
        self._clock = clock
        self._random = random
        self._audit = audit
        self._limits = limits

    def invite(
        self, db: Session, caller: Caller, access: WorkspaceAccess, request: wire.InviteToWorkspaceRequest
    ) -> str:
        """Offers a role and mails the address, whether it has an account or not. Returns the invitation's id.

        Raises NotFound (organisation, role), PermissionDenied (P26), StateConflict (a member),
        AlreadyInvited, TooManyPending, RateLimited.
        """
        if request.org_id != access.organisation_id:
            raise NotFound("The workspace and the organisation named do not belong together.")
        role = role_in(db, access, request.role_id)
        require_grantable(permissions_of(db, role.id), access.permissions)
        self._limits.require(db, role.id, access.role_id, access.permissions)
        self._require_new(db, access, request.invited_email)
        self._require_room(db, access, request.invited_email)
        invitation = self._insert(db, caller, access, request)
        self._mail(db, invitation)
        record_event(db, self._audit, caller, access, "INVITATION_SENT", invitation)
        return invitation.id

    def pending_in(self, db: Session, access: WorkspaceAccess) -> Listed[wire.Invitation]:
        """The workspace's pending invitations, the oldest first."""
        return _listed(db, self._pending(Invitation.workspace_id == access.workspace_id))

    def pending_for(self, db: Session, caller: Caller) -> Listed[wire.Invitation]:
        """The caller's own pending invitations, from every workspace, the oldest first."""
        address = db.get_one(User, caller.user_id).email
        return _listed(db, self._pending(Invitation.invited_email == address))

    def invited_address(self, db: Session, invite_id: str) -> str | None:
        """The address of a pending invitation, for a caller who has its link; else None."""
        return db.scalar(select(Invitation.invited_email).where(*self._pending(Invitation.id == invite_id)))

    def answer(self, db: Session, caller: Caller, invite_id: str, *, accept: bool) -> wire.Invitation:
        """Accepts or declines, once and for good.

        Raises NotFound, NotTheInvitee (P46), InvitationDecided, NoLongerGranted, StateConflict (a member
        already).
        """
        invitation = db.get(Invitation, invite_id, with_for_update=True)
        if invitation is None:
            raise NotFound("There is no such invitation.")
        if db.get_one(User, caller.user_id).email != invitation.invited_email:
            raise NotTheInvitee("This invitation was sent to another address than your account's.")
        self._move(invitation, Event.ACCEPT if accept else Event.DECLINE)
        access = self._join(db, caller, invitation) if accept else place_of(db, invitation.workspace_id)
        action = "INVITATION_ACCEPTED" if accept else "INVITATION_DECLINED"
        record_event(db, self._audit, caller, access, action, invitation)
        return invitation_record(db, invitation)

    def revoke(self, db: Session, caller: Caller, access: WorkspaceAccess, invite_id: str) -> wire.Invitation:
        """Raises NotFound, InvitationDecided."""
        invitation = db.get(Invitation, invite_id, with_for_update=True)
        if invitation is None or invitation.workspace_id != access.workspace_id:
            raise NotFound("There is no such invitation to this workspace.")
        self._move(invitation, Event.REVOKE)
        record_event(db, self._audit, caller, access, "INVITATION_REVOKED", invitation)
        return invitation_record(db, invitation)

    def _require_new(self, db: Session, access: WorkspaceAccess, address: str) -> None:
        user = find_user(db, address)
        if user is not None and _role_held(db, user.id, access.workspace_id) is not None:
            raise StateConflict(f"{address} is a member of this workspace already.")
        open_one = db.scalars(
            select(Invitation).where(
                Invitation.workspace_id == access.workspace_id,
                Invitation.invited_email == address,
                Invitation.status == Status.PENDING.value,
            )
        ).one_or_none()
        if open_one is None:
            return
        if self._status(open_one) is Status.PENDING:
            raise AlreadyInvited(f"{address} has an open invitation to this workspace, {open_one.id}.")
        expire(db, self._audit, open_one)

    def _require_room(self, db: Session, access: WorkspaceAccess, address: str) -> None:
        pending = self._pending(Invitation.workspace_id == access.workspace_id)
        if (db.scalar(select(func.count()).where(*pending)) or 0) >= MAX_PENDING_IN_WORKSPACE:
            raise TooManyPending(f"{MAX_PENDING_IN_WORKSPACE} invitations to this workspace are open.")
        same_organisation = Invitation.organisation_id == access.organisation_id
        self._require_rate(db, ORGANISATION_RATE, "by your organisation", same_organisation)
        to_address = Invitation.invited_email == address
        self._require_rate(db, ADDRESS_RATE, f"to {address}", same_organisation, to_address)

    def _require_rate(self, db: Session, rate: Rate, whose: str, *of: ColumnElement[bool]) -> None:
        now = self._clock()
        sent = select(func.count(), func.min(Invitation.created_at)).where(
            *of, Invitation.created_at > now - rate.window
        )
        count, oldest = db.execute(sent).one()
        if count >= rate.limit:
            wait = oldest + rate.window - now
            raise RateLimited(
                f"Too many invitations were sent {whose} of late.", retry_after=ceil(wait.total_seconds())
            )

    def _insert(
        self, db: Session, caller: Caller, access: WorkspaceAccess, request: wire.InviteToWorkspaceRequest
    ) -> Invitation:
        now = self._clock()
        invitation = Invitation(
            id=new_id(self._random),
            organisation_id=access.organisation_id,
            workspace_id=access.workspace_id,
            role_id=request.role_id,
            invited_email=request.invited_email,
            invited_by=caller.user_id,
            status=Status.PENDING.value,
            created_at=now,
            expires_at=now + INVITATION_LIFETIME,
        )
        db.add(invitation)
        db.flush()
        return invitation

    def _mail(self, db: Session, invitation: Invitation) -> None:
        shown = invitation_record(db, invitation)
        values = {
            "organisation": shown.org_name,
            "workspace": shown.workspace_name,
            "role": shown.role_name,
            "inviter": shown.invited_by,
            "invite_id": shown.invite_uid,
            "expires_at": f"{shown.expires_at:%d %B %Y, %H:%M} UTC",
        }
        queue_mail(db, Template.INVITATION, shown.invited_email, values, now=self._clock())

    def _join(self, db: Session, caller: Caller, invitation: Invitation) -> WorkspaceAccess:
        """Checks the grant again: since the invitation the role may have gained permissions, or the inviter
        may have lost some (P26).
        """
        inviter = _role_held(db, invitation.invited_by, invitation.workspace_id)
        if inviter is None or not self._may_give(db, inviter, invitation.role_id):
            raise NoLongerGranted("The member who invited you may no longer grant this role.")
        add_membership(db, self._clock, caller.user_id, invitation.workspace_id, invitation.role_id)
        return place_of(db, invitation.workspace_id)

    def _may_give(self, db: Session, inviter_role_id: int, role_id: int) -> bool:
        held = permissions_of(db, inviter_role_id)
        if PermissionName.MANAGE_USERS not in held or permissions_of(db, role_id) - held:
            return False
        return self._limits.allow(db, role_id, inviter_role_id, held)

    def _move(self, invitation: Invitation, event: Event) -> None:
        invitation.status = next_status(self._status(invitation), event).value
        invitation.decided_at = self._clock()

    def _status(self, invitation: Invitation) -> Status:
        return status_at(Status(invitation.status), invitation.expires_at, self._clock())

    def _pending(self, of: ColumnElement[bool]) -> tuple[ColumnElement[bool], ...]:
        return of, Invitation.status == Status.PENDING.value, Invitation.expires_at > self._clock()


def withdraw_offer(
    db: Session, clock: Clock, audit: AuditLog, caller: Caller, access: WorkspaceAccess, user_id: int
) -> None:
    """Revokes a former member's open invitations, which would let them in again."""
    query = select(Invitation).where(
        Invitation.workspace_id == access.workspace_id,
        Invitation.invited_email == db.get_one(User, user_id).email,
        Invitation.status == Status.PENDING.value,
        Invitation.expires_at > clock(),
    )
    for invitation in db.scalars(query).all():
        invitation.status = next_status(Status.PENDING, Event.REVOKE).value
        invitation.decided_at = clock()
        record_event(db, audit, caller, access, "INVITATION_REVOKED", invitation)


def _role_held(db: Session, user_id: int, workspace_id: int) -> int | None:
    query = select(Membership.role_id).where(
        Membership.user_id == user_id, Membership.workspace_id == workspace_id
    )
    return db.scalars(query).one_or_none()


def _listed(db: Session, wanted: tuple[ColumnElement[bool], ...]) -> Listed[wire.Invitation]:
    return shown(
        _rows(db, wanted), lambda some: [_shape(*row) for row in some], "InviteUID", lambda row: row[0].id
    )


def _rows(db: Session, wanted: tuple[ColumnElement[bool], ...]) -> Sequence[Any]:
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
    return db.execute(query).all()


def invitation_record(db: Session, invitation: Invitation) -> wire.Invitation:
    """One invitation, as it is now."""
    db.flush()
    (found,) = _rows(db, (Invitation.id == invitation.id,))
    return _shape(*found)


def record_event(
    db: Session, audit: AuditLog, caller: Caller, access: WorkspaceAccess, action: str, invitation: Invitation
) -> None:
    description = f"invitation {invitation.id} for {invitation.invited_email}, with role {invitation.role_id}"
    # An accepted invitation is a webhook event: the caller is the new member.
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
        status=Status(invitation.status),
        created_at=invitation.created_at,
        expires_at=invitation.expires_at,
    )


def invitation_expiry(store: Store, clock: Clock, audit: AuditLog) -> Expiry[Invitation]:
    def due(now: datetime) -> Select[Invitation]:
        is_over = Invitation.status == Status.PENDING.value, Invitation.expires_at <= now
        return select(Invitation).where(*is_over).order_by(Invitation.expires_at)

    return Expiry(store, clock, due, lambda db, invitation: expire(db, audit, invitation))


def expire(db: Session, audit: AuditLog, invitation: Invitation) -> None:
    """Marks an invitation that has expired, in the caller's transaction."""
    invitation.status = next_status(Status(invitation.status), Event.EXPIRE).value
    invitation.decided_at = invitation.expires_at
    db.flush()
    place = place_of(db, invitation.workspace_id)
    record_event(db, audit, PLATFORM, place, "INVITATION_EXPIRED", invitation)
