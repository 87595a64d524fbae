"""Roles of a workspace: what they carry, their spending policy, how many members hold them, and the calls
about them. Their limits are changed by a call of ``limits``.
"""

from typing import Annotated, Final

from pydantic import Field, StrictBool

from custody.schemas.call import (
    ROLE_MANAGERS,
    USER_MANAGERS,
    WORKSPACE_MANAGERS,
    Call,
    PermissionName,
    Way,
    few,
)
from custody.schemas.common import (
    Count,
    CyclePeriod,
    DecimalText,
    Done,
    Int64,
    IntId,
    Label,
    Line,
    Name,
    Prose,
    WorkspaceQuery,
    WorkspaceRequest,
    is_absent,
)
from custody.schemas.errors import ErrorCode
from custody.schemas.limits import CycleFields
from custody.schemas.users import Role

# Inviting or adding a member needs the list of roles; and the log names them.
READERS: Final = ROLE_MANAGERS | USER_MANAGERS | WORKSPACE_MANAGERS | {PermissionName.VIEW_LOGS}


class RoleDetails(Role):
    """``TransactionLimit`` is in BTC, for each member and cycle.

    ``limit_error`` stands in the place of the policy while spending policies cannot be read. ``Members``: how many hold it.
    """  # noqa: E501

    workspace_id: Int64 = Field(alias="WorkspaceId")
    transaction_limit: Label | None = Field(default=None, alias="TransactionLimit", exclude_if=is_absent)
    cycle_period: CyclePeriod | None = Field(default=None, alias="CyclePeriod", exclude_if=is_absent)
    cycle_day: Count | None = Field(default=None, alias="CycleDay", exclude_if=is_absent)
    limit_error: Prose | None = Field(default=None, exclude_if=is_absent)
    members: Count = Field(alias="Members")


class CreateRoleRequest(CycleFields):
    name: Name
    description: Line = ""
    permissions: Annotated[tuple[PermissionName, ...], Field(max_length=len(PermissionName))] = ()
    transaction_limit: DecimalText


class RoleRequest(WorkspaceRequest):
    """A body about a role. Alone: where the call needs no more."""

    role_id: IntId


class UpdateRoleRequest(RoleRequest):
    """What is left out stays; permissions and policy have calls of their own."""

    name: Name | None = None
    description: Line | None = None


class AddPermissionRequest(RoleRequest):
    rule_name: PermissionName


class RemovePermissionRequest(AddPermissionRequest):
    """``force``: even where a vault is left with too few signers."""

    force: StrictBool = False


ROLES = Call(
    "GET", "/api/v1/get-roles-and-perms-detailed", WorkspaceQuery, few(RoleDetails),
    "The workspace's roles, with what they carry, their spending policy, and how many members hold them.",
    READERS, attempt="see the roles", open_to=frozenset({Way.DECIDER}),
)  # fmt: skip
CREATE_ROLE = Call(
    "POST", "/api/v1/create-role", CreateRoleRequest, RoleDetails,
    "A role that carries no more than the caller's.",
    ROLE_MANAGERS, creates=True, second_person="Make a role", cools=True, refuses=(ErrorCode.STATE_CONFLICT,),
)  # fmt: skip
UPDATE_ROLE = Call(
    "POST", "/api/v1/update-role", UpdateRoleRequest, RoleDetails,
    "Changes a role's name and description.",
    ROLE_MANAGERS, second_person="Change a role's name", refuses=(ErrorCode.STATE_CONFLICT,),
)  # fmt: skip
DELETE_ROLE = Call(
    "POST", "/api/v1/delete-role", RoleRequest, Done,
    "Deletes a role that no member holds and no open invitation offers.",
    ROLE_MANAGERS, second_person="Delete a role", refuses=(ErrorCode.STATE_CONFLICT,),
)  # fmt: skip
ADD_PERMISSION_TO_ROLE = Call(
    "POST", "/api/v1/add-perm-to-role", AddPermissionRequest, RoleDetails,
    "Adds a permission, which the caller must hold; counts at once for every member who holds the role.",
    ROLE_MANAGERS, second_person="Add a permission to a role", cools=True,
    refuses=(ErrorCode.STATE_CONFLICT,),
)  # fmt: skip
REMOVE_PERMISSION_FROM_ROLE = Call(
    "POST", "/api/v1/remove-perm-from-role", RemovePermissionRequest, RoleDetails,
    "Takes a permission away, at once. The last administrator keeps what the workspace is run with, and a "
    "vault the\nsigners that it needs, unless forced.",
    ROLE_MANAGERS, second_person="Take a permission from a role",
    refuses=(ErrorCode.LAST_ADMIN, ErrorCode.STATE_CONFLICT),
)  # fmt: skip
