"""A caller's access to a workspace, the caller's own record, and creating and ending memberships."""

from datetime import datetime
from functools import lru_cache
from itertools import compress
from typing import Final

from sqlalchemy import bindparam, exists, func, select, text
from sqlalchemy.orm import Session

from custody.schemas import users as wire
from custody.schemas.call import PermissionName
from custody.schemas.common import NullTime
from custody.server.errors import NotFound, PermissionDenied, StateConflict, Unauthenticated
from custody.server.people.staff import is_owner_of, membership_of, organisations_of, role_shape
from custody.server.rules.audit import Event
from custody.server.rules.credentials import Caller, WorkspaceAccess
from custody.server.rules.roles import Permissions
from custody.server.second_person.requirement import confirms_in
from custody.server.shown import shape_of
from custody.server.sign_in.access_tokens import ENDED_MEANWHILE, LIVE_SESSION, narrowed
from custody.server.store import models
from custody.server.store.store import keep, read_once


def enter(
    db: Session, caller: Caller, workspace_id: int, needs: frozenset[PermissionName], now: datetime
) -> WorkspaceAccess:
    """The caller's access to a workspace. The caller must hold one of ``needs`` there, or be a member if
    it is empty. Every call checks this, so that a change of roles takes effect at once (P23).

    Raises NotFound for a workspace of an organisation that the caller does not belong to (P24), and
    PermissionDenied where the role lacks the permission in this workspace (P25). A program can enter only
    its own workspace, with a part of its maker's permissions (P67). An identity provider's session can
    enter only its organisation (P73). Where an organisation requires its provider, password sessions are
    refused except those of owners and, for pending changes, of members who confirm them (P77).
    Unauthenticated where the session was ended after the request was let in.
    """
    if caller.service is not None and caller.service.workspace_id != workspace_id:
        raise NotFound("There is no such workspace.")
    access, asks_for_provider, is_live = _access(db, caller, workspace_id)
    if caller.session_id and not is_live:
        raise Unauthenticated(ENDED_MEANWHILE)
    if access is None:
        raise _no_entry(db, caller, workspace_id)
    if caller.bound_to not in {None, access.organisation_id}:
        raise NotFound("There is no such workspace.")
    if caller.service is not None:
        access = narrowed(db, caller.service, caller.address, access, now)
    elif asks_for_provider and caller.bound_to is None and not caller.needs_no_provider:
        _require_owner(db, access, caller)
    if needs and not access.holds_any(needs):
        wanted = " or ".join(sorted(needs))
        whose = "Your role" if caller.service is None else "What this service account may do"
        raise PermissionDenied(f"{whose} in this workspace does not carry {wanted}.")
    return access


def user_record(db: Session, user_id: int, caller: Caller | None = None) -> wire.User:
    """``caller``: whose session it is, which may be bound to the one organisation that is shown."""
    bound_to, session_id = (None, 0) if caller is None else (caller.bound_to, caller.session_id)
    user = read_once(db, ("user", user_id), lambda: db.get_one(models.UserRow, user_id))
    shows_default = bound_to in {None, user.default_org_id}
    return shape_of(
        wire.User,
        user,
        uuid=user.id,
        last_login=NullTime.of(user.last_login_at),
        default_org=(user.default_org_id or 0) if shows_default else 0,
        default_workspace=(user.default_workspace_id or 0) if shows_default else 0,
        organisations_info=wire.OrganisationList(
            organisations=_organisations(db, user.id, bound_to, session_id)
        ),
    )


MEMBER_ADDED = Event("MEMBER_ADDED", "added {user} with the role {role}")


def add_membership(db: Session, now: datetime, user_id: int, workspace_id: int, role_id: int) -> int:
    """Raises StateConflict for a member. A user's first membership becomes the default."""
    if membership_of(db, user_id, workspace_id) is not None:
        raise StateConflict("The user is a member of this workspace already.")
    membership = models.MembershipRow(
        user_id=user_id, workspace_id=workspace_id, role_id=role_id, created_at=now
    )
    db.add(membership)
    user = db.get_one(models.UserRow, user_id)
    if user.default_workspace_id is None:
        user.default_workspace_id = workspace_id
        user.default_org_id = db.get_one(models.WorkspaceRow, workspace_id).organisation_id
    db.flush()
    return membership.id


def settle_default(db: Session, user_id: int) -> None:
    """After a membership has ended: the default must be a workspace that the user is in, or none."""
    user = db.get_one(models.UserRow, user_id)
    places = (
        select(models.WorkspaceRow)
        .join(models.MembershipRow, models.MembershipRow.workspace_id == models.WorkspaceRow.id)
        .where(models.MembershipRow.user_id == user_id)
        .order_by(models.MembershipRow.id)
    )
    left = list(db.scalars(places))
    if user.default_workspace_id not in {workspace.id for workspace in left}:
        user.default_workspace_id = left[0].id if left else None
        user.default_org_id = left[0].organisation_id if left else None


def is_colleague(db: Session, user_id: int, organisation_id: int) -> bool:
    there = organisations_of(user_id).where(models.WorkspaceRow.organisation_id == organisation_id)
    return db.scalars(there.limit(1)).first() is not None


def workspace_info(workspace: models.WorkspaceRow) -> wire.WorkspaceInfo:
    return shape_of(wire.WorkspaceInfo, workspace, uid=workspace.id, net=workspace.network)


def _access(db: Session, caller: Caller, workspace_id: int) -> tuple[WorkspaceAccess | None, bool, bool]:
    """The access, whether the organisation requires its identity provider, and whether the session lives."""
    whose = {"user_id": caller.user_id, "workspace_id": workspace_id, "session_id": caller.session_id}
    row = read_once(db, ("place", *whose.values()), lambda: db.execute(_PLACE, whose).one_or_none())
    if row is None:
        return None, False, caller.session_id == 0 or db.scalar(LIVE_SESSION, whose) is not None
    organisation_id, network, chain, role, carried, asks_for_provider, session_id, has_webhooks, *_ = row
    # Held to the end of the transaction: whoever gets the role reads it no second time.
    db.info["role"] = role
    access = WorkspaceAccess(
        workspace_id=workspace_id,
        organisation_id=organisation_id,
        network=network,
        chain=chain,
        role_id=role.id,
        permissions=_permissions(carried),
        has_webhooks=has_webhooks,
    )
    return access, asks_for_provider is not None, session_id is not None


@lru_cache(maxsize=1_000)
def _permissions(carried: str | None) -> Permissions:
    """``carried``: comma-separated, None for no permission. Cached: building the set takes longer than the
    query.
    """
    return frozenset(() if carried is None else map(PermissionName, carried.split(_BETWEEN)))


_BETWEEN = ","
# One row with all permissions, because every call reads it.
_CARRIED = (
    select(func.aggregate_strings(models.RolePermissionRow.permission, _BETWEEN))
    .where(models.RolePermissionRow.role_id == models.MembershipRow.role_id)
    .scalar_subquery()
)
# A provider without a secret cannot be used yet, and is not required.
_ASKING = (
    select(models.IdentityProviderRow.id)
    .where(
        models.IdentityProviderRow.organisation_id == models.WorkspaceRow.organisation_id,
        models.IdentityProviderRow.is_required,
        models.IdentityProviderRow.sealed_secret.is_not(None),
    )
    .scalar_subquery()
)
_HAS_WEBHOOKS = (
    exists()
    .where(models.WebhookRow.workspace_id == models.WorkspaceRow.id, models.WebhookRow.disabled_at.is_(None))
    .correlate(models.WorkspaceRow)
)
_PLACES = (
    select(
        models.WorkspaceRow.organisation_id,
        models.WorkspaceRow.network,
        models.WorkspaceRow.chain,
        models.RoleRow,
        _CARRIED,
        _ASKING,
        LIVE_SESSION.scalar_subquery(),
        _HAS_WEBHOOKS,
    )
    .join(models.MembershipRow, models.MembershipRow.workspace_id == models.WorkspaceRow.id)
    .join(models.RoleRow, models.RoleRow.id == models.MembershipRow.role_id)
    .where(models.MembershipRow.user_id == bindparam("user_id"))
)
_PLACE = _PLACES.where(models.WorkspaceRow.id == bindparam("workspace_id"))


# Whether a workspace has anything of a section that many use nothing of.
_USED: Final = {
    "proofs": exists().where(models.ProposalRow.workspace_id == models.WorkspaceRow.id, text(models.PROOFS)),
    "tokens": exists().where(models.ContractRow.workspace_id == models.WorkspaceRow.id),
    "programs": exists().where(models.ServiceAccountRow.workspace_id == models.WorkspaceRow.id),
    "webhooks": exists().where(models.WebhookRow.workspace_id == models.WorkspaceRow.id),
    "identity": exists().where(
        models.IdentityProviderRow.organisation_id == models.WorkspaceRow.organisation_id
    ),
}


def used_sections(db: Session, workspace_id: int) -> frozenset[str]:
    here = select(*_USED.values()).where(models.WorkspaceRow.id == workspace_id)
    return read_once(db, ("used", workspace_id), lambda: frozenset(compress(_USED, db.execute(here).one())))


def _require_owner(db: Session, access: WorkspaceAccess, caller: Caller) -> None:
    """Owners, and members who confirm changes, can sign in with a password, so that the organisation is never
    locked out by its provider. Raises PermissionDenied.
    """
    decides = caller.decides and confirms_in(db, access.organisation_id, caller.user_id)
    if not decides and not is_owner_of(db, access.organisation_id, caller.user_id):
        raise PermissionDenied(
            "This organisation asks its members to sign in through its identity provider. Link it once, "
            "under Your account on the console, and sign in through it from then on."
        )


def _no_entry(db: Session, caller: Caller, workspace_id: int) -> NotFound | PermissionDenied:
    workspace, nothing = db.get(models.WorkspaceRow, workspace_id), NotFound("There is no such workspace.")
    if workspace is None or caller.bound_to not in {None, workspace.organisation_id}:
        return nothing
    is_known = is_colleague(db, caller.user_id, workspace.organisation_id)
    return PermissionDenied("You are not a member of this workspace.") if is_known else nothing


def _organisations(
    db: Session, user_id: int, bound_to: int | None, session_id: int
) -> list[wire.Organisation]:
    """What tells the access to each workspace is read with it: a page shows them all, and enters one. So is
    which sections it has used.
    """
    places = (
        _PLACES.add_columns(*_USED.values(), models.OrganisationRow, models.WorkspaceRow)
        .join(models.OrganisationRow, models.OrganisationRow.id == models.WorkspaceRow.organisation_id)
        .order_by(models.OrganisationRow.id, models.WorkspaceRow.id)
    )
    organisations: dict[int, tuple[models.OrganisationRow, list[wire.WorkspaceEntry]]] = {}
    for place in db.execute(places, {"user_id": user_id, "session_id": session_id}):
        *_, organisation, workspace = place
        keep(db, ("place", user_id, workspace.id, session_id), place)
        keep(db, ("used", workspace.id), frozenset(compress(_USED, place[-2 - len(_USED) : -2])))
        if bound_to in {None, organisation.id}:
            _, entries = organisations.setdefault(organisation.id, (organisation, []))
            held = role_shape(place[3], _permissions(place[4]))
            entries.append(wire.WorkspaceEntry(workspace_info=workspace_info(workspace), role=held))
    return [
        wire.Organisation(
            org_id=organisation.id,
            org_name=organisation.name,
            workspaces=wire.WorkspaceList(workspaces=entries),
        )
        for organisation, entries in organisations.values()
    ]
