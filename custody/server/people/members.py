"""Members of a workspace: listing, adding, changing the role, removing, leaving.

A removed member loses access from the next request on: every call reads the membership (P23). Their earlier
approvals stay, and so do they as signers of vaults, which are fixed; but without a membership they cannot
sign. And a person's own record: who they are, which workspace is shown first, and what they are mailed.
"""

from collections.abc import Sequence
from functools import partial
from typing import Any, Final

from sqlalchemy import bindparam, select

from custody.schemas import users as wire
from custody.schemas.call import ANY_MEMBER, PermissionName
from custody.schemas.common import Done, Listed, NullTime, WorkspaceQuery, WorkspaceRequest
from custody.server.calls import Ctx, serves
from custody.server.errors import NotFound
from custody.server.keys.quorums import SHORT, left_short_by
from custody.server.people import people, staff
from custody.server.people.invitations import withdraw_offer
from custody.server.people.service_accounts import end_service_accounts
from custody.server.rules.audit import Event
from custody.server.rules.roles import Staff, require_administrators, require_reach
from custody.server.second_person.requirement import require_two
from custody.server.shown import shape_of, shown
from custody.server.sign_in.identity_providers import end_link
from custody.server.store.models import KeyRow, MembershipRow, RoleRow, UserRow

ROLE_CHANGED = Event("MEMBER_ROLE_CHANGED", "changed the role of {user} from {role} to {new_role}" + SHORT)
_SAYS_MORE: Final = SHORT + "[; their programs were revoked: {accounts}]"
REMOVED = Event("MEMBER_REMOVED", "removed {user}, who had the role {role}" + _SAYS_MORE)
LEFT = Event("MEMBER_LEFT", "left the workspace" + _SAYS_MORE + " // {user}, role {role}")
# The names of the changed fields, not their values, which are personal.
UPDATED = Event("USER_INFO_UPDATED", "// {fields}")
DEFAULT_CHANGED = Event("DEFAULT_WORKSPACE_CHANGED", "// workspace {workspace}")
MAILS_CHANGED = Event(
    "MAIL_SETTINGS_CHANGED",
    "// mailed [{waiting}when something waits|never when something waits], [{amounts}with|without] amounts",
)


@serves(wire.MEMBERS)
def members(ctx: Ctx, _: WorkspaceQuery) -> Listed[wire.Member]:
    """In order of joining."""
    rows = ctx.db.execute(_MEMBERS, {"workspace_id": ctx.access.workspace_id}).all()
    return shown(rows, partial(_details, ctx), "UUID", lambda row: int(row[0].id))


@serves(wire.ADD_WORKSPACE_TO_USER)
def add_workspace_to_user(ctx: Ctx, request: wire.AddWorkspaceToUserRequest) -> wire.AllocationResponse:
    db, access = ctx.db, ctx.access
    origin = people.enter(db, ctx.caller, request.creator_workspace_id, ANY_MEMBER, ctx.now)
    if not origin.organisation_id == access.organisation_id == request.creator_org_uuid:
        raise NotFound("The workspaces and the organisation named do not belong together.")
    if not people.is_colleague(db, request.user_uuid, access.organisation_id):
        raise NotFound("There is no such user in your organisation.")
    role = ctx.find(RoleRow, request.role_uid, "role")
    staff.require_may_give(db, ctx.tools.policies, access, role.id, staff.permissions_of(db, role.id))
    allocation_id = people.add_membership(db, ctx.now, request.user_uuid, access.workspace_id, role.id)
    payload = {"user_id": request.user_uuid, "role_id": role.id}
    ctx.event(people.MEMBER_ADDED, payload, user=request.user_uuid, role=role.id)
    return wire.AllocationResponse(allocation_id=allocation_id)


@serves(wire.CHANGE_USER_ROLE)
def change_user_role(ctx: Ctx, request: wire.ChangeUserRoleRequest) -> wire.Member:
    """A change to the role that the member holds already is not recorded."""
    db, access = ctx.db, ctx.access
    membership = staff.membership_in(db, access, request.user_uuid)
    role = ctx.find(RoleRow, request.role_id, "role")
    before = staff.staff_of(db, access.workspace_id)
    require_reach(before.roles[membership.role_id], access.permissions)
    if membership.role_id == role.id:
        return _member(ctx, request.user_uuid)
    staff.require_may_give(db, ctx.tools.policies, access, role.id, before.roles[role.id])
    after = before.with_member(membership.user_id, role.id)
    short = _vaults_short(ctx, membership, before, after, is_forced=request.force)
    role_before, membership.role_id = membership.role_id, role.id
    db.flush()
    member = _member(ctx, request.user_uuid)
    payload = {"user_id": request.user_uuid, "role_id": role.id}
    facts = {"user": request.user_uuid, "role": role_before, "new_role": role.id}
    ctx.event(ROLE_CHANGED, payload, **facts, short_vaults=short)
    return member


@serves(wire.REMOVE_USER_FROM_WORKSPACE)
def remove_user_from_workspace(ctx: Ctx, request: wire.RemoveUserRequest) -> Done:
    membership = staff.membership_in(ctx.db, ctx.access, request.user_uuid)
    require_reach(staff.permissions_of(ctx.db, membership.role_id), ctx.access.permissions)
    _end(ctx, membership, REMOVED, is_forced=request.force)
    return Done()


@serves(wire.LEAVE_WORKSPACE)
def leave_workspace(ctx: Ctx, request: wire.LeaveWorkspaceRequest) -> Done:
    membership = staff.membership_in(ctx.db, ctx.access, ctx.caller.user_id)
    _end(ctx, membership, LEFT, is_forced=request.force)
    require_two(ctx.db, ctx.access.organisation_id)
    return Done()


def _end(ctx: Ctx, membership: MembershipRow, event: Event, *, is_forced: bool) -> None:
    """Raises LastAdmin (P27), StateConflict (unless forced)."""
    db, access, user_id = ctx.db, ctx.access, membership.user_id
    before = staff.staff_of(db, access.workspace_id)
    short = _vaults_short(ctx, membership, before, before.without(user_id), is_forced=is_forced)
    db.delete(membership)
    db.flush()
    people.settle_default(db, user_id)
    withdraw_offer(ctx, user_id)
    if not people.is_colleague(db, user_id, access.organisation_id):
        end_link(db, access.organisation_id, user_id, ctx.now)
    ended = end_service_accounts(db, user_id, access.workspace_id, ctx.now)
    ctx.event(
        event,
        {"user_id": user_id},
        user=user_id,
        role=membership.role_id,
        short_vaults=short,
        accounts=list(ended),
    )


def _vaults_short(
    ctx: Ctx, membership: MembershipRow, before: Staff, after: Staff, *, is_forced: bool
) -> list[str]:
    """The vaults that a forced change leaves with too few signers, or without one whose approval they need.
    Raises LastAdmin, StateConflict.
    """
    require_administrators(before, after)
    staff.require_owner(ctx.db, membership.workspace_id, before, after)
    role_after = after.members.get(membership.user_id)
    if role_after is not None and PermissionName.PAYMENT_APPROVE not in after.roles[role_after]:
        role_after = None
    lost = MembershipRow.id == membership.id
    return left_short_by(ctx.db, ctx.now, ctx.caller.user_id, lost, is_forced=is_forced, new_role=role_after)


_MEMBERS = (
    select(UserRow, RoleRow)
    .join(MembershipRow, MembershipRow.user_id == UserRow.id)
    .join(RoleRow, RoleRow.id == MembershipRow.role_id)
    .where(MembershipRow.workspace_id == bindparam("workspace_id"))
    .order_by(MembershipRow.id)
)


def _member(ctx: Ctx, user_id: int) -> wire.Member:
    query = _MEMBERS.where(UserRow.id == user_id)
    return _details(ctx, [ctx.db.execute(query, {"workspace_id": ctx.access.workspace_id}).one()])[0]


def _details(ctx: Ctx, rows: Sequence[Any]) -> list[wire.Member]:
    """Of rows of `_MEMBERS`."""
    own = select(KeyRow.user_id).where(
        KeyRow.user_id.in_([user.id for user, _ in rows]),
        KeyRow.network == ctx.access.network,
        KeyRow.status == "active",
    )
    signers, roles = set(ctx.db.scalars(own)), staff.role_shapes(ctx.db, (role for _, role in rows))
    return [
        shape_of(
            wire.Member,
            user,
            uuid=user.id,
            role=roles[role.id],
            can_sign=user.id in signers,
            last_login=NullTime.of(user.last_login_at),
        )
        for user, role in rows
    ]


# --- one's own record ---------------------------------------------------------------------------------------


@serves(wire.USER_INFO)
def user_info(ctx: Ctx, _: None) -> wire.User:
    return people.user_record(ctx.db, ctx.caller.user_id, ctx.caller)


@serves(wire.UPDATE_USER_INFO)
def update_user_info(ctx: Ctx, request: wire.UpdateUserInfoRequest) -> wire.User:
    user = ctx.db.get_one(UserRow, ctx.caller.user_id)
    given = request.model_dump(exclude_none=True)
    changed = [name for name, value in given.items() if getattr(user, name) != (value or None)]
    for name in changed:
        setattr(user, name, given[name] or None)
    ctx.db.flush()
    record = people.user_record(ctx.db, user.id)
    if changed:
        ctx.event(UPDATED, fields=changed)
    return record


@serves(wire.SET_DEFAULT_WORKSPACE)
def set_default_workspace(ctx: Ctx, _: WorkspaceRequest) -> wire.User:
    """And its organisation."""
    user, access = ctx.db.get_one(UserRow, ctx.caller.user_id), ctx.access
    is_same = user.default_workspace_id == access.workspace_id
    user.default_workspace_id, user.default_org_id = access.workspace_id, access.organisation_id
    ctx.db.flush()
    record = people.user_record(ctx.db, user.id, ctx.caller)
    if not is_same:
        # Of the person, not of the workspace.
        ctx.tools.audit.record(ctx.db, ctx.caller, DEFAULT_CHANGED, None, workspace=access.workspace_id)
    return record


@serves(wire.MAIL_SETTINGS)
def mail_settings(ctx: Ctx, _: None) -> wire.MailSettings:
    user = ctx.db.get_one(UserRow, ctx.caller.user_id)
    return wire.MailSettings(waiting=user.mails_waiting, amounts=user.mails_amounts)


@serves(wire.UPDATE_MAIL_SETTINGS)
def update_mail_settings(ctx: Ctx, request: wire.UpdateMailSettingsRequest) -> wire.MailSettings:
    """An update without effect is not recorded."""
    user, before = ctx.db.get_one(UserRow, ctx.caller.user_id), mail_settings(ctx, None)
    user.mails_waiting = before.waiting if request.waiting is None else request.waiting
    user.mails_amounts = before.amounts if request.amounts is None else request.amounts
    ctx.db.flush()
    settings = mail_settings(ctx, None)
    if settings != before:
        ctx.event(MAILS_CHANGED, waiting=settings.waiting, amounts=settings.amounts)
    return settings
