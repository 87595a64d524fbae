"""Reading, checking and replacing the limits of a workspace's roles and vaults.

PolicyUnavailable is raised where policies cannot be read or replaced; `vault_limits` answers it instead.
"""

from collections.abc import Sequence

from sqlalchemy import select

from custody.schemas.changes import Json
from custody.schemas.common import VaultQuery, WorkspaceQuery
from custody.schemas.limits import (
    CHECK_USER_ROLE_LIMIT,
    CHECK_VAULT_LIMIT,
    MY_LIMITS,
    ROLE_LIMIT,
    UPDATE_ROLE_POLICIES,
    UPDATE_VAULT,
    VAULT_LIMITS,
    CheckRoleQuery,
    CheckVaultQuery,
    LimitCheck,
    LimitError,
    MyLimits,
    RoleLimit,
    RoleQuery,
    UpdateRolePoliciesRequest,
    UpdateVaultRequest,
    VaultLimits,
)
from custody.server.calls import ChangeApproval, Ctx, serves
from custody.server.errors import Invalid, PolicyUnavailable
from custody.server.limits.limits import limit_fields, limits_of_vaults, read_amount, usage_fields
from custody.server.limits.stored import role_of, usage_of_member, usage_of_vault
from custody.server.people.staff import membership_in, role_in
from custody.server.rules.audit import Category, Event
from custody.server.rules.limits import Cycle, SpendingPolicy, fits, in_btc, policy_facts
from custody.server.store.models import RoleRow, VaultRow
from custody.server.vaults.stored import vault_in
from multisig import parse_btc

ROLE_REPLACED = Event(
    "ROLE_POLICY_REPLACED",
    "role {role}: {limit}; now {new_limit}",
    "changed the limit of each member of the role {role} from {limit} to {new_limit}",
)
VAULT_REPLACED = Event(
    "VAULT_POLICY_REPLACED",
    "vault {vault}: {limit}; now {new_limit}",
    "changed the limit of the vault {vault} from {limit} to {new_limit}",
    Category.VAULTS,
)


@serves(MY_LIMITS)
def my_limits(ctx: Ctx, _: WorkspaceQuery) -> MyLimits:
    """The limit of the caller's role, and what they used of it in the current cycle."""
    access, policy = ctx.access, ctx.tools.policies.of(role_of(ctx.db, ctx.access))
    since = policy.cycle.start(ctx.now)
    usage = usage_of_member(ctx.db, access.workspace_id, ctx.caller.user_id, since)
    fields = limit_fields(policy, ctx.now) | usage_fields(policy, usage)
    return MyLimits(role_id=access.role_id, workspace_id=access.workspace_id, **fields)


@serves(ROLE_LIMIT)
def role_limit(ctx: Ctx, query: RoleQuery) -> RoleLimit:
    return _role_limit(ctx, role_in(ctx.db, ctx.access, query.role_id))


def _role_limit(ctx: Ctx, role: RoleRow) -> RoleLimit:
    fields = limit_fields(ctx.tools.policies.of(role), ctx.now)
    return RoleLimit(role_id=role.id, workspace_id=role.workspace_id, **fields)


@serves(CHECK_USER_ROLE_LIMIT)
def check_user_role_limit(ctx: Ctx, query: CheckRoleQuery) -> LimitCheck:
    """Whether the member could move the amount now. Invalid where they hold another role."""
    role = role_in(ctx.db, ctx.access, query.role_id)
    amount = read_amount("amount_to_check", query.amount_to_check)
    if membership_in(ctx.db, ctx.access, query.uuid).role_id != role.id:
        raise Invalid.at("/role_id", f"User {query.uuid} holds another role in this workspace.")
    policy = ctx.tools.policies.of(role)
    usage = usage_of_member(ctx.db, role.workspace_id, query.uuid, policy.cycle.start(ctx.now))
    return LimitCheck(success=fits(policy, usage, amount))


def _raises(before: SpendingPolicy, limit: str, cycle: Cycle) -> bool:
    return parse_btc(limit) > before.limit or cycle != before.cycle


def _raises_of_role(ctx: Ctx, request: UpdateRolePoliciesRequest) -> bool:
    before = ctx.tools.policies.of(role_in(ctx.db, ctx.access, request.role_id))
    return _raises(before, request.new_transaction_limit, Cycle(request.cycle_period, request.cycle_day))


def _of_roles_now(ctx: Ctx, requests: Sequence[UpdateRolePoliciesRequest]) -> list[dict[str, Json]]:
    rows = ctx.db.scalars(select(RoleRow).where(RoleRow.id.in_({each.role_id for each in requests})))
    policies = {row.id: ctx.tools.policies.of(row) for row in rows}
    return [_in_force("new_transaction_limit", policies[each.role_id]) for each in requests]


def _in_force(limit: str, policy: SpendingPolicy) -> dict[str, Json]:
    cycle = policy.cycle
    return {limit: in_btc(policy.limit), "cycle_period": cycle.period, "cycle_day": cycle.day}


@serves(UPDATE_ROLE_POLICIES, ChangeApproval(_raises_of_role, _of_roles_now))
def update_role_policies(ctx: Ctx, request: UpdateRolePoliciesRequest) -> RoleLimit:
    """Applies from the next movement of each member with the role (P22)."""
    role = role_in(ctx.db, ctx.access, request.role_id)
    limit = read_amount("new_transaction_limit", request.new_transaction_limit)
    before = ctx.tools.policies.of(role)
    after = SpendingPolicy(limit, Cycle(request.cycle_period, request.cycle_day))
    ctx.tools.policies.replace(role, after)
    role.updated_at = ctx.now
    ctx.db.flush()
    answer = _role_limit(ctx, role)
    limits = {"limit": policy_facts(before), "new_limit": policy_facts(after)}
    ctx.event(ROLE_REPLACED, {"role_id": role.id}, role=role.id, **limits)
    return answer


@serves(VAULT_LIMITS)
def vault_limits(ctx: Ctx, query: VaultQuery) -> VaultLimits | LimitError:
    vault = vault_in(ctx.db, ctx.access, query.vault_id)
    try:
        return limits_of_vaults(ctx, [vault])[vault.id]
    except PolicyUnavailable as error:
        return LimitError(limit_error=error.detail)


@serves(CHECK_VAULT_LIMIT)
def check_vault_limit(ctx: Ctx, query: CheckVaultQuery) -> LimitCheck:
    """Whether a movement, fee included, would fit the vault's limit now. Reserves nothing."""
    vault = vault_in(ctx.db, ctx.access, query.vault_id)
    amount, policy = read_amount("amount_to_check", query.amount_to_check), ctx.tools.policies.of(vault)
    usage = usage_of_vault(ctx.db, vault.id, policy.cycle.start(ctx.now))
    return LimitCheck(success=fits(policy, usage, amount))


def _raises_of_vault(ctx: Ctx, request: UpdateVaultRequest) -> bool:
    """Also where the limit bounds each payment from now on, no more their sum."""
    before = ctx.tools.policies.of(vault_in(ctx.db, ctx.access, request.vault_id))
    is_split = before.is_per_cycle and request.per_cycle is False
    cycle = Cycle(request.cycle_period, request.cycle_day)
    return is_split or _raises(before, request.transaction_limit, cycle)


def _of_vaults_now(ctx: Ctx, requests: Sequence[UpdateVaultRequest]) -> list[dict[str, Json]]:
    rows = ctx.db.scalars(select(VaultRow).where(VaultRow.id.in_({each.vault_id for each in requests})))
    policies = {row.id: ctx.tools.policies.of(row) for row in rows}
    in_order = [policies[each.vault_id] for each in requests]
    return [_in_force("transaction_limit", each) | {"per_cycle": each.is_per_cycle} for each in in_order]


@serves(UPDATE_VAULT, ChangeApproval(_raises_of_vault, _of_vaults_now))
def update_vault(ctx: Ctx, request: UpdateVaultRequest) -> VaultLimits:
    vault = vault_in(ctx.db, ctx.access, request.vault_id)
    limit = read_amount("transaction_limit", request.transaction_limit)
    before = ctx.tools.policies.of(vault)
    per_cycle = before.is_per_cycle if request.per_cycle is None else request.per_cycle
    after = SpendingPolicy(limit, Cycle(request.cycle_period, request.cycle_day), per_cycle)
    ctx.tools.policies.replace(vault, after)
    vault.updated_at = ctx.now
    ctx.db.flush()
    answer = limits_of_vaults(ctx, [vault])[vault.id]
    limits = {"limit": policy_facts(before), "new_limit": policy_facts(after)}
    ctx.event(VAULT_REPLACED, {"vault_id": vault.id}, vault=vault.id, **limits)
    return answer
