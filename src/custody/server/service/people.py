"""Who belongs where: a caller's place in a workspace, user records, members and memberships."""

from collections.abc import Iterable

from sqlalchemy import select
from sqlalchemy.orm import Session

from custody.schemas import users as wire
from custody.schemas.common import NullString, NullTime
from custody.schemas.users import PermissionName
from custody.server.domain.audit import Category
from custody.server.domain.caller import Caller, WorkspaceAccess
from custody.server.domain.errors import NotFound, PermissionDenied, StateConflict
from custody.server.domain.permissions import PERMISSION_UIDS, permissions_not_held
from custody.server.domain.ports import Clock
from custody.server.service.audit import AuditLog
from custody.server.store.models import Key, Membership, Organisation, Role, RolePermission, User, Workspace
from multisig import Network


class People:
    def __init__(self, clock: Clock, audit: AuditLog) -> None:
        self._clock = clock
        self._audit = audit

    def enter(
        self, db: Session, caller: Caller, workspace_id: int, needs: frozenset[PermissionName]
    ) -> WorkspaceAccess:
        """The caller's place in a workspace, who must hold one of ``needs`` there, or just be a member if it is empty.

        Raises NotFound for a workspace of an organisation that the caller has no part in (P24), and
        PermissionDenied where the role does not carry the permission in this workspace (P25). Asked on every call,
        so that a change of roles counts at once (P23).
        """
        access = _access(db, caller.user_id, workspace_id)
        if access is None:
            raise _no_entry(db, caller.user_id, workspace_id)
        if needs and not access.holds_any(needs):
            wanted = " or ".join(sorted(needs))
            raise PermissionDenied(f"Your role in this workspace does not carry {wanted}.")
        return access

    def user_info(self, db: Session, user_id: int) -> wire.User:
        user = db.get_one(User, user_id)
        return wire.User(
            uuid=user.id,
            email=user.email,
            first_name=NullString.of(user.first_name),
            surname=NullString.of(user.surname),
            last_login=NullTime.of(user.last_login_at),
            phone_number=NullString.of(user.phone_number),
            default_org=user.default_org_id or 0,
            default_workspace=user.default_workspace_id or 0,
            organisations_info=wire.OrganisationList(organisations=_organisations(db, user.id)),
        )

    def members(self, db: Session, access: WorkspaceAccess) -> list[wire.Member]:
        """The workspace's members, in order of joining."""
        rows = db.execute(
            select(User, Role)
            .join(Membership, Membership.user_id == User.id)
            .join(Role, Role.id == Membership.role_id)
            .where(Membership.workspace_id == access.workspace_id)
            .order_by(Membership.id)
        ).all()
        signers = set(
            db.scalars(select(Key.user_id).where(Key.network == access.network, Key.status == "active"))
        )
        roles = _role_shapes(db, (role for _, role in rows))
        return [
            wire.Member(
                uuid=user.id,
                email=user.email,
                first_name=NullString.of(user.first_name),
                surname=NullString.of(user.surname),
                role=roles[role.id],
                can_sign=user.id in signers,
            )
            for user, role in rows
        ]

    def add_to_workspace(
        self, db: Session, caller: Caller, access: WorkspaceAccess, request: wire.AddWorkspaceToUserRequest
    ) -> int:
        """A membership without an invitation, for a colleague: someone of the same organisation. Its id.

        Raises NotFound (user, role or the workspace the request is made from), PermissionDenied, StateConflict.
        """
        self._check_origin(db, caller, access, request)
        if not _is_colleague(db, request.user_uuid, access.organisation_id):
            raise NotFound("There is no such user in your organisation.")
        role = _role_of(db, request.role_uid, access.workspace_id)
        missing = permissions_not_held(permissions_of(db, role.id), access.permissions)
        if missing:
            raise PermissionDenied(f"You cannot grant what you do not hold: {', '.join(sorted(missing))}.")
        membership_id = add_membership(db, self._clock, request.user_uuid, access.workspace_id, role.id)
        description = f"user {request.user_uuid} with role {role.id}"
        self._audit.record(db, caller, Category.PEOPLE, "MEMBER_ADDED", description, access=access)
        return membership_id

    def _check_origin(
        self, db: Session, caller: Caller, access: WorkspaceAccess, request: wire.AddWorkspaceToUserRequest
    ) -> None:
        origin = self.enter(db, caller, request.creator_workspace_id, frozenset())
        if not origin.organisation_id == access.organisation_id == request.creator_org_uuid:
            raise NotFound("The workspaces and the organisation named do not belong together.")


def add_membership(db: Session, clock: Clock, user_id: int, workspace_id: int, role_id: int) -> int:
    """Raises StateConflict for a member. The first membership becomes the user's default."""
    held = select(Membership.id).where(Membership.user_id == user_id, Membership.workspace_id == workspace_id)
    if db.scalars(held).first() is not None:
        raise StateConflict("The user is a member of this workspace already.")
    membership = Membership(user_id=user_id, workspace_id=workspace_id, role_id=role_id, created_at=clock())
    db.add(membership)
    user = db.get_one(User, user_id)
    if user.default_workspace_id is None:
        user.default_workspace_id = workspace_id
        user.default_org_id = db.get_one(Workspace, workspace_id).organisation_id
    db.flush()
    return membership.id


def permissions_of(db: Session, role_id: int) -> frozenset[PermissionName]:
    query = select(RolePermission.permission).where(RolePermission.role_id == role_id)
    return frozenset(PermissionName(name) for name in db.scalars(query))


def chain_of_network(db: Session, network: str) -> Network:
    """The chain behind an API network: one for the whole platform. Raises NotFound while no workspace is on it."""
    chain = db.scalars(select(Workspace.chain).where(Workspace.network == network).limit(1)).one_or_none()
    if chain is None:
        raise NotFound(f"No workspace of this platform is on {network}.")
    return Network(chain)


def _access(db: Session, user_id: int, workspace_id: int) -> WorkspaceAccess | None:
    row = db.execute(
        select(Workspace, Membership.role_id)
        .join(Membership, Membership.workspace_id == Workspace.id)
        .where(Workspace.id == workspace_id, Membership.user_id == user_id)
    ).one_or_none()
    if row is None:
        return None
    workspace, role_id = row
    return WorkspaceAccess(
        workspace_id=workspace.id,
        organisation_id=workspace.organisation_id,
        network=workspace.network,
        chain=workspace.chain,
        role_id=role_id,
        permissions=permissions_of(db, role_id),
    )


def _no_entry(db: Session, user_id: int, workspace_id: int) -> NotFound | PermissionDenied:
    workspace = db.get(Workspace, workspace_id)
    if workspace is not None and _is_colleague(db, user_id, workspace.organisation_id):
        return PermissionDenied("You are not a member of this workspace.")
    return NotFound("There is no such workspace.")


def _is_colleague(db: Session, user_id: int, organisation_id: int) -> bool:
    query = (
        select(Membership.id)
        .join(Workspace, Workspace.id == Membership.workspace_id)
        .where(Membership.user_id == user_id, Workspace.organisation_id == organisation_id)
    )
    return db.scalars(query.limit(1)).first() is not None


def _role_of(db: Session, role_id: int, workspace_id: int) -> Role:
    role = db.get(Role, role_id)
    if role is None or role.workspace_id != workspace_id:
        raise NotFound("There is no such role in this workspace.")
    return role


def _role_shapes(db: Session, roles: Iterable[Role]) -> dict[int, wire.Role]:
    by_id = {role.id: role for role in roles}
    granted: dict[int, list[PermissionName]] = {role_id: [] for role_id in by_id}
    for row in db.scalars(select(RolePermission).where(RolePermission.role_id.in_(by_id))):
        granted[row.role_id].append(PermissionName(row.permission))
    return {
        role.id: wire.Role(
            role_id=role.id,
            name=role.name,
            description=role.description,
            perm=[
                wire.Permission(uid=PERMISSION_UIDS[name], rule_name=name)
                for name in sorted(granted[role.id], key=PERMISSION_UIDS.__getitem__)
            ],
        )
        for role in by_id.values()
    }


def _organisations(db: Session, user_id: int) -> list[wire.Organisation]:
    rows = db.execute(
        select(Organisation, Workspace, Role)
        .join(Workspace, Workspace.organisation_id == Organisation.id)
        .join(Membership, Membership.workspace_id == Workspace.id)
        .join(Role, Role.id == Membership.role_id)
        .where(Membership.user_id == user_id)
        .order_by(Organisation.id, Workspace.id)
    ).all()
    roles = _role_shapes(db, (role for _, _, role in rows))
    found: dict[int, tuple[Organisation, list[wire.WorkspaceEntry]]] = {}
    for organisation, workspace, role in rows:
        info = wire.WorkspaceInfo.model_validate(
            {
                "uid": workspace.id,
                "name": workspace.name,
                "description": workspace.description,
                "net": workspace.network,
            }
        )
        _, entries = found.setdefault(organisation.id, (organisation, []))
        entries.append(wire.WorkspaceEntry(workspace_info=info, role=roles[role.id]))
    return [
        wire.Organisation(
            org_id=organisation.id,
            org_name=organisation.name,
            workspaces=wire.WorkspaceList(workspaces=entries),
        )
        for organisation, entries in found.values()
    ]
