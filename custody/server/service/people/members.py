"""Members of a workspace: listing, adding, changing the role, removing, leaving.

A removed member loses access from the next request on: every call reads the membership (P23). Their earlier
approvals stay, and so do they as signers of vaults, which are fixed; but without a membership they cannot
sign.
"""

from collections.abc import Sequence
from typing import Any

from sqlalchemy import bindparam, select
from sqlalchemy.orm import Session

from custody.schemas import users as wire
from custody.schemas.common import Listed, NullString, NullTime
from custody.schemas.users import PermissionName
from custody.server.domain.audit import Category
from custody.server.domain.credentials import Caller, WorkspaceAccess
from custody.server.domain.errors import NotFound
from custody.server.domain.ports import Clock
from custody.server.domain.roles import Staff, require_administrators, require_grantable, require_reach
from custody.server.service.audit.log import AuditLog
from custody.server.service.keys.quorums import require_quorums, vaults_left_short
from custody.server.service.people.grants import LimitGrants, shortage
from custody.server.service.people.invitations import withdraw_offer
from custody.server.service.people.people import People, add_membership, is_colleague, settle_default
from custody.server.service.people.service_accounts import end_service_accounts
from custody.server.service.people.staff import (
    permissions_of,
    place_in,
    require_owner,
    role_in,
    role_shapes,
    staff_of,
)
from custody.server.service.shown import shown
from custody.server.service.sign_in.identity import end_link
from custody.server.store.models import Key, Membership, Role, User, Vault


class Members:
    def __init__(self, clock: Clock, audit: AuditLog, people: People, limits: LimitGrants) -> None:
        self._clock = clock
        self._audit = audit
        self._people = people
        self._limits = limits

    def listed(self, db: Session, access: WorkspaceAccess) -> Listed[wire.Member]:
        """The workspace's members, in order of joining."""
        rows = db.execute(_MEMBERS, {"workspace_id": access.workspace_id}).all()
        return shown(rows, lambda some: _records(db, access, some), "UUID", lambda row: int(row[0].id))

    def add(
        self, db: Session, caller: Caller, access: WorkspaceAccess, request: wire.AddWorkspaceToUserRequest
    ) -> int:
        """Adds a user of the same organisation, without an invitation. Returns the membership's id.

        Raises NotFound (user, role or the workspace that the request is made from), PermissionDenied,
        StateConflict.
        """
        self._check_origin(db, caller, access, request)
        if not is_colleague(db, request.user_uuid, access.organisation_id):
            raise NotFound("There is no such user in your organisation.")
        role = role_in(db, access, request.role_uid)
        require_grantable(permissions_of(db, role.id), access.permissions)
        self._limits.require(db, role.id, access.role_id, access.permissions)
        membership_id = add_membership(db, self._clock, request.user_uuid, access.workspace_id, role.id)
        what = f"user {request.user_uuid} with role {role.id}"
        self._audit.record(
            db,
            caller,
            Category.PEOPLE,
            "MEMBER_ADDED",
            what,
            access=access,
            told={"user_id": request.user_uuid, "role_id": role.id},
        )
        return membership_id

    def change_role(
        self, db: Session, caller: Caller, access: WorkspaceAccess, request: wire.ChangeUserRoleRequest
    ) -> wire.Member:
        """A change to the role that the member holds already is not recorded.

        Raises NotFound (member, role), PermissionDenied (P26), LastAdmin (P27), VaultsLeftShort (unless
        forced).
        """
        place, role = place_in(db, access, request.user_uuid), role_in(db, access, request.role_id)
        before = staff_of(db, access.workspace_id)
        require_reach(before.roles[place.role_id], access.permissions)
        require_grantable(before.roles[role.id], access.permissions)
        if place.role_id == role.id:
            return self._shown(db, access, place.user_id)
        self._limits.require(db, role.id, access.role_id, access.permissions)
        after = before.with_member(place.user_id, role.id)
        short = _check_loss(db, caller, place, before, after, is_forced=request.force)
        what = f"user {place.user_id} from role {place.role_id} to role {role.id}{shortage(short)}"
        place.role_id = role.id
        db.flush()
        shown = self._shown(db, access, place.user_id)
        self._audit.record(
            db,
            caller,
            Category.PEOPLE,
            "MEMBER_ROLE_CHANGED",
            what,
            access=access,
            told={"user_id": place.user_id, "role_id": role.id},
        )
        return shown

    def remove(
        self, db: Session, caller: Caller, access: WorkspaceAccess, request: wire.RemoveUserRequest
    ) -> None:
        """Raises NotFound, PermissionDenied, LastAdmin (P27), VaultsLeftShort (unless forced)."""
        place = place_in(db, access, request.user_uuid)
        require_reach(permissions_of(db, place.role_id), access.permissions)
        self._take_away(db, caller, access, place, "MEMBER_REMOVED", is_forced=request.force)

    def leave(self, db: Session, caller: Caller, access: WorkspaceAccess, *, force: bool) -> None:
        """Raises LastAdmin (P27), VaultsLeftShort (unless forced)."""
        place = place_in(db, access, caller.user_id)
        self._take_away(db, caller, access, place, "MEMBER_LEFT", is_forced=force)

    def _take_away(
        self,
        db: Session,
        caller: Caller,
        access: WorkspaceAccess,
        place: Membership,
        action: str,
        *,
        is_forced: bool,
    ) -> None:
        before = staff_of(db, access.workspace_id)
        short = _check_loss(db, caller, place, before, before.without(place.user_id), is_forced=is_forced)
        db.delete(place)
        db.flush()
        settle_default(db, place.user_id)
        withdraw_offer(db, self._clock, self._audit, caller, access, place.user_id)
        if not is_colleague(db, place.user_id, access.organisation_id):
            end_link(db, access.organisation_id, place.user_id, self._clock())
        ended = end_service_accounts(db, place.user_id, access.workspace_id, self._clock())
        programs = f"; service accounts revoked: {', '.join(map(str, ended))}" if ended else ""
        what = f"user {place.user_id} with role {place.role_id}{shortage(short)}{programs}"
        self._audit.record(
            db, caller, Category.PEOPLE, action, what, access=access, told={"user_id": place.user_id}
        )

    def _check_origin(
        self, db: Session, caller: Caller, access: WorkspaceAccess, request: wire.AddWorkspaceToUserRequest
    ) -> None:
        origin = self._people.enter(db, caller, request.creator_workspace_id, frozenset())
        if not origin.organisation_id == access.organisation_id == request.creator_org_uuid:
            raise NotFound("The workspaces and the organisation named do not belong together.")

    def _shown(self, db: Session, access: WorkspaceAccess, user_id: int) -> wire.Member:
        row = db.execute(_MEMBERS.where(User.id == user_id), {"workspace_id": access.workspace_id}).one()
        return _records(db, access, [row])[0]


_MEMBERS = (
    select(User, Role)
    .join(Membership, Membership.user_id == User.id)
    .join(Role, Role.id == Membership.role_id)
    .where(Membership.workspace_id == bindparam("workspace_id"))
    .order_by(Membership.id)
)


def _records(db: Session, access: WorkspaceAccess, rows: Sequence[Any]) -> list[wire.Member]:
    """Of rows of `_MEMBERS`."""
    own = select(Key.user_id).where(
        Key.user_id.in_([user.id for user, _ in rows]), Key.network == access.network, Key.status == "active"
    )
    signers, roles = set(db.scalars(own)), role_shapes(db, (role for _, role in rows))
    return [_record(user, roles[role.id], can_sign=user.id in signers) for user, role in rows]


def _check_loss(
    db: Session, caller: Caller, place: Membership, before: Staff, after: Staff, *, is_forced: bool
) -> list[Vault]:
    """The vaults that a forced change leaves with too few signers. Raises LastAdmin, VaultsLeftShort."""
    require_administrators(before, after)
    require_owner(db, place.workspace_id, before, after)
    role_after = after.members.get(place.user_id)
    if role_after is not None and PermissionName.PAYMENT_APPROVE in after.roles[role_after]:
        return []
    short = vaults_left_short(db, without_member=place.id)
    if not is_forced:
        require_quorums(db, caller.user_id, short)
    return short


def _record(user: User, role: wire.Role, *, can_sign: bool) -> wire.Member:
    return wire.Member(
        uuid=user.id,
        email=user.email,
        first_name=NullString.of(user.first_name),
        surname=NullString.of(user.surname),
        role=role,
        can_sign=can_sign,
        last_login=NullTime.of(user.last_login_at),
    )
