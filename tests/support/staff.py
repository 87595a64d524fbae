"""Members with exactly the permissions that a test needs."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import httpx
from sqlalchemy import select

from custody.schemas.call import PermissionName
from custody.server.people.staff import store_role
from custody.server.rules.roles import RoleTemplate
from custody.server.store.models import KeyRow, MembershipRow
from multisig import Sats
from tests.support.custody import Desk, ok
from tests.support.platform import As, World

SIGNER_ROLE = 2


@dataclass(frozen=True)
class Someone:
    """A member, their role, and calls in their name."""

    user_id: int
    role_id: int
    calls: As


def add_role(
    world: World, name: str, permissions: Iterable[PermissionName] = (), workspace_id: int = 1
) -> int:
    """Writes a role to the database, without the API's rules. Returns its id."""
    template = RoleTemplate(name, "", frozenset(permissions), Sats(0))
    with world.platform.services.store.write() as db:
        return store_role(db, world.clock(), workspace_id, template).id


def add_someone(
    world: World, name: str, permissions: Iterable[PermissionName] = (), workspace_id: int = 1
) -> Someone:
    """Adds a member with a new role of exactly these permissions."""
    role_id = add_role(world, name, permissions, workspace_id)
    email = f"{name.lower()}@example.org"
    placed = world.member(workspace_id, email, name)
    return Someone(placed.user_id, role_id, world.as_user(email))


def roles(user: As, workspace_id: int = 1) -> dict[str, dict]:
    """By name."""
    listed = ok(user.get("/api/v1/get-roles-and-perms-detailed", workspace_id=workspace_id))
    return {role["Name"]: role for role in listed}


def carried(role: dict) -> list[str]:
    return [permission["RuleName"] for permission in role["Perm"]]


def add_permission(user: As, role_id: int, rule_name: str, workspace_id: int = 1) -> httpx.Response:
    body = {"role_id": role_id, "workspace_id": workspace_id, "rule_name": rule_name}
    return user.post("/api/v1/add-perm-to-role", body)


def remove_permission(
    user: As, role_id: int, rule_name: str, workspace_id: int = 1, **more: object
) -> httpx.Response:
    body = {"role_id": role_id, "workspace_id": workspace_id, "rule_name": rule_name}
    return user.post("/api/v1/remove-perm-from-role", {**body, **more})


def admit(user: As, user_id: int, role_id: int, workspace_id: int = 1, **named: object) -> httpx.Response:
    """Admits a colleague of the first organisation to a workspace."""
    body = {"workspace_id": workspace_id, "user_uuid": user_id, "role_uid": role_id}
    first = {"creator_workspace_id": 1, "creator_org_uuid": 1}
    return user.post("/api/v1/add-workspace-to-user", {**body, **first, **named})


def invite(user: As, email: str, role_id: int = 2, **changes: object) -> httpx.Response:
    """Invites to the first workspace: as a signer, where no other role is named."""
    body = {"invited_email": email, "workspace_context": 1, "org_id": 1, "role_id": role_id}
    return user.post("/api/v1/invite-to-workspace", {**body, **changes})


def create_workspace(user: As, **changes: object) -> httpx.Response:
    """Another one of the first organisation."""
    body = {"workspace_id": 1, "org_id": 1, "name": "Second", "network": "testnet"}
    return user.post("/api/v1/create-workspace", {**body, **changes})


def change_role(
    user: As, user_id: int, role_id: int, workspace_id: int = 1, **more: object
) -> httpx.Response:
    body = {"workspace_id": workspace_id, "user_uuid": user_id, "role_id": role_id}
    return user.post("/api/v1/change-user-role", {**body, **more})


def remove(user: As, user_id: int, workspace_id: int = 1, **more: object) -> httpx.Response:
    body = {"workspace_id": workspace_id, "user_uuid": user_id}
    return user.post("/api/v1/remove-user-from-workspace", {**body, **more})


def set_states(desk: Desk, states: Mapping[str, str], silent: int) -> None:
    """What has become of each signer's key and role, written to the database: active, superseded, lost, or
    silent, which is the role of that id.
    """
    with desk.store.write() as db:
        for name, state in states.items():
            user_id = desk.user_ids[name]
            key = db.scalars(select(KeyRow).where(KeyRow.user_id == user_id)).one()
            key.status = "revoked" if state in {"superseded", "lost"} else "active"
            key.revoked_reason = state if key.status == "revoked" else None
            member = db.scalars(select(MembershipRow).where(MembershipRow.user_id == user_id)).one()
            member.role_id = silent if state == "silent" else SIGNER_ROLE
