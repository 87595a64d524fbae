"""Roles of a workspace: what they carry, their spending policy, and how many members hold them."""

from typing import Annotated

from pydantic import Field, StrictBool

from custody.schemas.common import (
    Count,
    CyclePeriod,
    DecimalText,
    Int64,
    IntId,
    Label,
    Line,
    Name,
    Prose,
    Request,
)
from custody.schemas.limits import CycleFields
from custody.schemas.users import PermissionName, Role


def _is_absent(value: object) -> bool:
    return value is None


class RoleDetails(Role):
    """A row of ``GET /api/v1/get-roles-and-perms-detailed``. ``TransactionLimit`` is in BTC, for each member and cycle.

    ``limit_error`` stands in the place of the policy while spending policies cannot be read. ``Members``: how many hold it.
    """  # noqa: E501

    workspace_id: Int64 = Field(alias="WorkspaceId")
    transaction_limit: Label | None = Field(default=None, alias="TransactionLimit", exclude_if=_is_absent)
    cycle_period: CyclePeriod | None = Field(default=None, alias="CyclePeriod", exclude_if=_is_absent)
    cycle_day: Count | None = Field(default=None, alias="CycleDay", exclude_if=_is_absent)
    limit_error: Prose | None = Field(default=None, exclude_if=_is_absent)
    members: Count = Field(alias="Members")


class CreateRoleRequest(CycleFields):
    """``POST /api/v1/create-role``."""

    workspace_id: IntId
    name: Name
    description: Line = ""
    permissions: Annotated[tuple[PermissionName, ...], Field(max_length=len(PermissionName))] = ()
    transaction_limit: DecimalText


class UpdateRoleRequest(Request):
    """``POST /api/v1/update-role``. What is left out stays; permissions and policy have calls of their own."""  # noqa: E501

    role_id: IntId
    workspace_id: IntId
    name: Name | None = None
    description: Line | None = None


class DeleteRoleRequest(Request):
    """``POST /api/v1/delete-role``: of one that nobody holds or is offered."""

    role_id: IntId
    workspace_id: IntId


class AddPermissionRequest(Request):
    """``POST /api/v1/add-perm-to-role``."""

    role_id: IntId
    workspace_id: IntId
    rule_name: PermissionName


class RemovePermissionRequest(AddPermissionRequest):
    """``POST /api/v1/remove-perm-from-role``. ``force``: even where a vault keeps too few signers."""

    force: StrictBool = False
