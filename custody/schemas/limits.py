"""Spending limits: those of a role, for each member and cycle, and those of a vault. Amounts are decimal
strings in BTC.
"""

from typing import Annotated, Final

from pydantic import Field, StrictBool, StrictInt, ValidationInfo, field_validator

from custody.schemas.call import (
    ANY_MEMBER,
    ROLE_MANAGERS,
    VAULT_READERS,
    WORKSPACE_MANAGERS,
    Call,
    Way,
    either,
)
from custody.schemas.common import (
    Count,
    CyclePeriod,
    DecimalText,
    Int64,
    IntId,
    Label,
    Prose,
    QueryId,
    Shape,
    TextId,
    Timestamp,
    VaultQuery,
    WorkspaceQuery,
    WorkspaceRequest,
)
from custody.schemas.errors import ErrorCode

CycleDay = Annotated[StrictInt, Field(ge=1, le=31)]


class CycleFields(WorkspaceRequest):
    """When the counters begin anew, at 00:00 UTC. ``cycle_day``: 1 (Monday) to 7 for W; 1 to 31 for M, where a day that
    a month does not have is its last.
    """  # noqa: E501

    cycle_period: CyclePeriod
    cycle_day: CycleDay

    @field_validator("cycle_day")
    @classmethod
    def _day_of_period(cls, day: int, info: ValidationInfo) -> int:
        if info.data.get("cycle_period") == "W" and day > 7:
            raise ValueError("a weekly cycle starts on a day from 1 (Monday) to 7 (Sunday)")
        return day


class UpdateRolePoliciesRequest(CycleFields):
    role_id: IntId
    new_transaction_limit: DecimalText


class UpdateVaultRequest(CycleFields):
    """``per_cycle``: whether it bounds the sum of a cycle, or each payment; as before where it is not sent."""  # noqa: E501

    vault_id: TextId
    transaction_limit: DecimalText
    per_cycle: StrictBool | None = None


class RoleQuery(WorkspaceQuery):
    role_id: QueryId


class CheckRoleQuery(RoleQuery):
    """``uuid`` is the member's user id; ``role_id`` the role that the member holds."""

    uuid: QueryId
    amount_to_check: DecimalText


class CheckVaultQuery(VaultQuery):
    amount_to_check: DecimalText


class Limited(Shape):
    """A limit, and when its cycle begins anew."""

    limit: Label = Field(alias="Limit")
    cycle_period: CyclePeriod = Field(alias="CyclePeriod")
    cycle_day: Count = Field(alias="CycleDay")
    next_reset: Timestamp = Field(alias="NextReset")


class RoleLimit(Limited):
    """A role's policy in one workspace. What is used of it differs by member: see ``MyLimits``."""

    role_id: Int64
    workspace_id: Int64


class MyLimits(RoleLimit):
    """``Unused`` is ``Limit - Used``, and zero where the limit was lowered under what was used already."""

    used: Label = Field(alias="Used")
    unused: Label = Field(alias="Unused")


class VaultLimits(Limited):
    """``detailed_vault_limits``. ``Limit`` is the maximum of a single movement, and ``Used`` informs; where ``PerCycle``
    is true, it is the limit of the cycle's sum.
    """  # noqa: E501

    used: Label = Field(alias="Used")
    unused: Label = Field(alias="Unused")
    per_cycle: bool = Field(default=False, alias="PerCycle")


class AssetLimits(Shape):
    """One token in a vault's ``assets``: what the vault moved of it in the current cycle, in whole tokens with all its decimals.

    Until a token has limits of its own, ``Limit`` is the vault's main figure, rounded down to what the token can be divided into.
    ``contract_id`` as in the token's own record: null until its deployment is broadcast.
    """  # noqa: E501

    contract_uid: Int64
    contract_id: Label | None
    ticker: Label
    decimals: Count
    limit: Label = Field(alias="Limit")
    used: Label = Field(alias="Used")
    unused: Label = Field(alias="Unused")
    next_reset: Timestamp = Field(alias="NextReset")


class LimitError(Shape):
    """Stands in the place of a vault's limits while spending policies cannot be read; nothing moves meanwhile."""  # noqa: E501

    limit_error: Prose


class LimitCheck(Shape):
    """Whether an amount would fit now. It reserves nothing."""

    success: bool = Field(alias="Success")


_AWAY: Final = (ErrorCode.POLICY_UNAVAILABLE,)
UPDATE_ROLE_POLICIES = Call(
    "POST", "/api/v1/update-role-policies", UpdateRolePoliciesRequest, RoleLimit,
    "Replaces what each member who holds the role may move in a cycle; counts from now on. Pending "
    "proposals stay.",
    ROLE_MANAGERS, second_person="Change a role's spending limit", refuses=_AWAY,
)  # fmt: skip
ROLE_LIMIT = Call(
    "GET", "/api/v1/get-role-limit", RoleQuery, RoleLimit, "A role's limit and cycle.",
    ROLE_MANAGERS, attempt="see the limits", refuses=_AWAY,
)  # fmt: skip
CHECK_USER_ROLE_LIMIT = Call(
    "GET", "/api/v1/check-user-role-limit", CheckRoleQuery, LimitCheck,
    "Whether an amount, fee included, fits what is left of a member's role limit. Reserves nothing.",
    ROLE_MANAGERS, attempt="see the limits", refuses=_AWAY,
)  # fmt: skip
MY_LIMITS = Call(
    "GET", "/api/v1/get-my-limits", WorkspaceQuery, MyLimits,
    "The caller's own limit in the workspace, and what is used of it in this cycle.",
    ANY_MEMBER, attempt="see the limits", open_to=frozenset({Way.PROGRAM}), refuses=_AWAY,
)  # fmt: skip
UPDATE_VAULT = Call(
    "POST", "/api/v1/update-vault", UpdateVaultRequest, VaultLimits,
    "Replaces a vault's limit and cycle; counts for the next movement. Pending proposals stay.",
    WORKSPACE_MANAGERS, second_person="Change a vault's spending limit",
    refuses=_AWAY,
)  # fmt: skip
VAULT_LIMITS = Call(
    "GET", "/api/v1/get-vault-limits", VaultQuery, either(VaultLimits, LimitError),
    "A vault's limit and what left in this cycle, or why they cannot be told.",
    VAULT_READERS, attempt="see the limits", open_to=frozenset({Way.PROGRAM}),
)  # fmt: skip
CHECK_VAULT_LIMIT = Call(
    "GET", "/api/v1/check-vault-limit", CheckVaultQuery, LimitCheck,
    "Whether a movement of an amount, fee included, fits the vault's limit. Reserves nothing.",
    VAULT_READERS, attempt="see the limits", open_to=frozenset({Way.PROGRAM}), refuses=_AWAY,
)  # fmt: skip
