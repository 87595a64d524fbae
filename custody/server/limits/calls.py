"""Reading, checking and replacing the limits of a workspace's roles and vaults.

PolicyUnavailable is raised where policies cannot be read or replaced; `vault_limits` answers it instead.
"""

from collections.abc import Sequence
from dataclasses import replace

from sqlalchemy.orm import Session

from custody.schemas.changes import Json
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
    VaultQuery,
)
from custody.schemas.queries import WorkspaceQuery
from custody.server.calls import ChangeApproval, Ctx, serves
from custody.server.errors import Invalid, NotFound, PolicyUnavailable
from custody.server.people.staff import membership_in, role_in
from custody.server.rules.audit import Category, Event
from custody.server.rules.credentials import OPERATOR, Caller, WorkspaceAccess
from custody.server.rules.limits import Cycle, SpendingPolicy, in_btc, policy_facts
from custody.server.services import Tools
from custody.server.store.models import VaultRow
from custody.server.vaults.stored import place_of, vault_in
from multisig import InvalidAmount, Sats, parse_btc

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
    return ctx.tools.limits.of_caller(ctx.db, ctx.caller, ctx.access)


@serves(ROLE_LIMIT)
def role_limit(ctx: Ctx, query: RoleQuery) -> RoleLimit:
    role = role_in(ctx.db, ctx.access, query.role_id)
    return ctx.tools.limits.of_role(ctx.db, role.workspace_id, role.id)


@serves(CHECK_USER_ROLE_LIMIT)
def check_user_role_limit(ctx: Ctx, query: CheckRoleQuery) -> LimitCheck:
    """Invalid where the member holds another role."""
    role = role_in(ctx.db, ctx.access, query.role_id)
    amount = _amount("amount_to_check", query.amount_to_check)
    if membership_in(ctx.db, ctx.access, query.uuid).role_id != role.id:
        raise Invalid.at("/role_id", f"User {query.uuid} holds another role in this workspace.")
    fits = ctx.tools.limits.fits_role(ctx.db, role.workspace_id, role.id, query.uuid, amount)
    return LimitCheck(success=fits)


def _raises(before: SpendingPolicy, limit: str, cycle: Cycle) -> bool:
    return parse_btc(limit) > before.limit or cycle != before.cycle


def _raises_of_role(ctx: Ctx, request: UpdateRolePoliciesRequest) -> bool:
    before = ctx.tools.policies.of_role(ctx.db, role_in(ctx.db, ctx.access, request.role_id).id)
    return _raises(before, request.new_transaction_limit, Cycle(request.cycle_period, request.cycle_day))


def _of_roles_now(ctx: Ctx, requests: Sequence[UpdateRolePoliciesRequest]) -> list[dict[str, Json]]:
    policies = ctx.tools.policies.of_roles(ctx.db, sorted({each.role_id for each in requests}))
    return [_in_force("new_transaction_limit", policies[each.role_id]) for each in requests]


def _in_force(limit: str, policy: SpendingPolicy) -> dict[str, Json]:
    cycle = policy.cycle
    return {limit: in_btc(policy.limit), "cycle_period": cycle.period, "cycle_day": cycle.day}


@serves(UPDATE_ROLE_POLICIES, ChangeApproval(_raises_of_role, _of_roles_now))
def update_role_policies(ctx: Ctx, request: UpdateRolePoliciesRequest) -> RoleLimit:
    """Applies from the next movement of each member with the role (P22)."""
    role, policies = role_in(ctx.db, ctx.access, request.role_id), ctx.tools.policies
    limit = _amount("new_transaction_limit", request.new_transaction_limit)
    before = policies.of_role(ctx.db, role.id)
    after = SpendingPolicy(limit, Cycle(request.cycle_period, request.cycle_day))
    policies.replace_of_role(ctx.db, role.id, after)
    role.updated_at = ctx.now
    ctx.db.flush()
    answer = ctx.tools.limits.of_role(ctx.db, role.workspace_id, role.id)
    limits = {"limit": policy_facts(before), "new_limit": policy_facts(after)}
    ctx.event(ROLE_REPLACED, {"role_id": role.id}, role=role.id, **limits)
    return answer


@serves(VAULT_LIMITS)
def vault_limits(ctx: Ctx, query: VaultQuery) -> VaultLimits | LimitError:
    vault = vault_in(ctx.db, ctx.access, query.vault_id)
    try:
        return ctx.tools.limits.of_vaults(ctx.db, [vault])[vault.id]
    except PolicyUnavailable as error:
        return LimitError(limit_error=error.detail)


@serves(CHECK_VAULT_LIMIT)
def check_vault_limit(ctx: Ctx, query: CheckVaultQuery) -> LimitCheck:
    vault = vault_in(ctx.db, ctx.access, query.vault_id)
    amount = _amount("amount_to_check", query.amount_to_check)
    return LimitCheck(success=ctx.tools.limits.fits_vault(ctx.db, vault, amount))


def _raises_of_vault(ctx: Ctx, request: UpdateVaultRequest) -> bool:
    """Also where the limit bounds each payment from now on, no more their sum."""
    vault = vault_in(ctx.db, ctx.access, request.vault_id)
    before = ctx.tools.policies.of_vaults(ctx.db, [vault.id])[vault.id]
    is_split = before.is_per_cycle and request.per_cycle is False
    cycle = Cycle(request.cycle_period, request.cycle_day)
    return is_split or _raises(before, request.transaction_limit, cycle)


def _of_vaults_now(ctx: Ctx, requests: Sequence[UpdateVaultRequest]) -> list[dict[str, Json]]:
    policies = ctx.tools.policies.of_vaults(ctx.db, sorted({each.vault_id for each in requests}))
    in_order = [policies[each.vault_id] for each in requests]
    return [_in_force("transaction_limit", each) | {"per_cycle": each.is_per_cycle} for each in in_order]


@serves(UPDATE_VAULT, ChangeApproval(_raises_of_vault, _of_vaults_now))
def update_vault(ctx: Ctx, request: UpdateVaultRequest) -> VaultLimits:
    vault = vault_in(ctx.db, ctx.access, request.vault_id)
    limit = _amount("transaction_limit", request.transaction_limit)
    before = ctx.tools.policies.of_vaults(ctx.db, [vault.id])[vault.id]
    per_cycle = before.is_per_cycle if request.per_cycle is None else request.per_cycle
    after = SpendingPolicy(limit, Cycle(request.cycle_period, request.cycle_day), per_cycle)
    return _replace(ctx.tools, ctx.db, ctx.caller, ctx.access, vault, before, after)


def bound_cycle(tools: Tools, db: Session, vault_id: str, *, is_per_cycle: bool) -> VaultLimits:
    """For the operator: whether the vault's limit bounds the sum of a cycle, or each movement. Raises
    NotFound.
    """
    vault = db.get(VaultRow, vault_id)
    if vault is None:
        raise NotFound(f"There is no vault {vault_id}.")
    before = tools.policies.of_vaults(db, [vault.id])[vault.id]
    after = replace(before, is_per_cycle=is_per_cycle)
    return _replace(tools, db, OPERATOR, place_of(db, vault.workspace_id), vault, before, after)


def _replace(
    tools: Tools,
    db: Session,
    caller: Caller,
    access: WorkspaceAccess,
    vault: VaultRow,
    before: SpendingPolicy,
    after: SpendingPolicy,
) -> VaultLimits:
    tools.policies.replace_of_vault(db, vault.id, after)
    vault.updated_at = tools.clock()
    db.flush()
    answer = tools.limits.of_vaults(db, [vault])[vault.id]
    limits = {"limit": policy_facts(before), "new_limit": policy_facts(after)}
    payload = {"vault_id": vault.id}
    tools.audit.record(db, caller, VAULT_REPLACED, access, payload, vault=vault.id, **limits)
    return answer


def _amount(field: str, text: str) -> Sats:
    try:
        return parse_btc(text)
    except InvalidAmount as error:
        raise Invalid.at(f"/{field}", str(error)) from error
