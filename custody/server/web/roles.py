"""Roles of a workspace and the permissions that they carry. Their spending policy is in ``web.limits``."""

from custody.schemas.common import Done
from custody.schemas.queries import WorkspaceQuery
from custody.schemas.roles import (
    AddPermissionRequest,
    CreateRoleRequest,
    DeleteRoleRequest,
    RemovePermissionRequest,
    RoleDetails,
    UpdateRoleRequest,
)
from custody.schemas.users import PermissionName
from custody.server.domain.errors import LastAdmin, StateConflict, VaultsLeftShort
from custody.server.web.endpoint import Call, Endpoint, Unit

MANAGERS = frozenset({PermissionName.MANAGE_ROLE})
# Whoever invites or adds somebody must pick a role.
READERS = MANAGERS | {PermissionName.MANAGE_USERS, PermissionName.MANAGE_WORKSPACE}


def get_roles_and_perms_detailed(call: Call[WorkspaceQuery]) -> list[RoleDetails]:
    """The workspace's roles, with what they carry, their spending policy, and how many members hold them."""
    return call.services.roles.detailed(call.db, call.access)


def create_role(call: Call[CreateRoleRequest]) -> RoleDetails:
    """A role that carries no more than the caller's."""
    return call.services.roles.create(call.db, call.caller, call.access, call.body)


def update_role(call: Call[UpdateRoleRequest]) -> RoleDetails:
    """Changes a role's name and description."""
    return call.services.roles.update(call.db, call.caller, call.access, call.body)


def delete_role(call: Call[DeleteRoleRequest]) -> Done:
    """Deletes a role that no member holds and no open invitation offers."""
    call.services.roles.delete(call.db, call.caller, call.access, call.body.role_id)
    return Done()


def add_perm_to_role(call: Call[AddPermissionRequest]) -> RoleDetails:
    """Adds a permission, which the caller must hold; counts at once for every member who holds the role."""
    return call.services.roles.add_permission(call.db, call.caller, call.access, call.body)


def remove_perm_from_role(call: Call[RemovePermissionRequest]) -> RoleDetails:
    """Takes a permission away, at once. The last administrator keeps what the workspace is run with, and a vault the
    signers that it needs, unless forced.
    """
    return call.services.roles.remove_permission(call.db, call.caller, call.access, call.body)


ENDPOINTS = (
    Endpoint(
        "GET",
        "/api/v1/get-roles-and-perms-detailed",
        get_roles_and_perms_detailed,
        list[RoleDetails],
        READERS,
        Unit.READ,
        WorkspaceQuery,
    ),
    Endpoint(
        "POST",
        "/api/v1/create-role",
        create_role,
        RoleDetails,
        MANAGERS,
        Unit.WRITE,
        CreateRoleRequest,
        creates=True,
        refuses=(StateConflict,),
    ),
    Endpoint(
        "POST",
        "/api/v1/update-role",
        update_role,
        RoleDetails,
        MANAGERS,
        Unit.WRITE,
        UpdateRoleRequest,
        refuses=(StateConflict,),
    ),
    Endpoint(
        "POST",
        "/api/v1/delete-role",
        delete_role,
        Done,
        MANAGERS,
        Unit.WRITE,
        DeleteRoleRequest,
        refuses=(StateConflict,),
    ),
    Endpoint(
        "POST",
        "/api/v1/add-perm-to-role",
        add_perm_to_role,
        RoleDetails,
        MANAGERS,
        Unit.WRITE,
        AddPermissionRequest,
        refuses=(StateConflict,),
    ),
    Endpoint(
        "POST",
        "/api/v1/remove-perm-from-role",
        remove_perm_from_role,
        RoleDetails,
        MANAGERS,
        Unit.WRITE,
        RemovePermissionRequest,
        refuses=(LastAdmin, VaultsLeftShort),
    ),
)
