"""Spending limits: checking movements, and reading, showing and replacing the limits of roles and vaults.

A movement is checked and reserved in one transaction, and the database has one writer at a time (ADR 13): of
two movements that would breach a limit together, the second is checked with the first in the sum (P17).
Every function raises PolicyUnavailable where policies cannot be read or replaced, and nothing is reserved
then; `vault_limits` answers it instead.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Any

from sqlalchemy import select

from custody.common.text import bounds, btc, until
from custody.schemas import limits as wire
from custody.schemas.changes import Json
from custody.schemas.common import VaultQuery, WorkspaceQuery, format_time
from custody.schemas.limits import (
    CHECK_USER_ROLE_LIMIT,
    CHECK_VAULT_LIMIT,
    MY_LIMITS,
    ROLE_LIMIT,
    UPDATE_ROLE_POLICIES,
    UPDATE_VAULT,
    VAULT_LIMITS,
)
from custody.server import errors
from custody.server.calls import ChangeApproval, Ctx, serves
from custody.server.limits.stored import (
    OutgoingAmount,
    role_of,
    token_usages_of_vaults,
    usage_of_member,
    usage_of_vault,
    usages_of_vaults,
)
from custody.server.people.staff import membership_in
from custody.server.rules.audit import Category, Event
from custody.server.rules.limits import (
    Cycle,
    SpendingPolicy,
    Usage,
    fits,
    in_tokens,
    of_token,
    policy_facts,
    unused_of,
)
from custody.server.shown import shape_of
from custody.server.store.models import RoleRow, VaultRow
from custody.server.tokens.status import token_families
from custody.server.vaults.stored import vault_in
from multisig import InvalidAmount, Sats, parse_btc

ROLE_REPLACED = Event(
    "ROLE_POLICY_REPLACED", "changed the limit of each member of the role {role} from {limit} to {new_limit}"
)
VAULT_REPLACED = Event(
    "VAULT_POLICY_REPLACED",
    "changed the limit of the vault {vault} from {limit} to {new_limit}",
    Category.VAULTS,
)


@serves(MY_LIMITS)
def my_limits(ctx: Ctx, _: WorkspaceQuery) -> wire.MyLimits:
    """The limit of the caller's role, and what they used of it in the current cycle."""
    access, policy = ctx.access, ctx.tools.policies.of(role_of(ctx.db, ctx.access))
    since = policy.cycle.start(ctx.now)
    usage = usage_of_member(ctx.db, access.workspace_id, ctx.caller.user_id, since)
    fields = limit_fields(policy, ctx.now) | usage_fields(policy, usage)
    return wire.MyLimits(role_id=access.role_id, workspace_id=access.workspace_id, **fields)


@serves(ROLE_LIMIT)
def role_limit(ctx: Ctx, query: wire.RoleQuery) -> wire.RoleLimit:
    return _role_limit(ctx, ctx.find(RoleRow, query.role_id, "role"))


def _role_limit(ctx: Ctx, role: RoleRow) -> wire.RoleLimit:
    fields = limit_fields(ctx.tools.policies.of(role), ctx.now)
    return wire.RoleLimit(role_id=role.id, workspace_id=role.workspace_id, **fields)


@serves(CHECK_USER_ROLE_LIMIT)
def check_user_role_limit(ctx: Ctx, query: wire.CheckRoleQuery) -> wire.LimitCheck:
    """Whether the member could move the amount now. Invalid where they hold another role."""
    role = ctx.find(RoleRow, query.role_id, "role")
    amount = read_amount("amount_to_check", query.amount_to_check)
    if membership_in(ctx.db, ctx.access, query.uuid).role_id != role.id:
        raise errors.Invalid.at("/role_id", f"User {query.uuid} holds another role in this workspace.")
    policy = ctx.tools.policies.of(role)
    usage = usage_of_member(ctx.db, role.workspace_id, query.uuid, policy.cycle.start(ctx.now))
    return wire.LimitCheck(success=fits(policy, usage, amount))


def _raises(before: SpendingPolicy, limit: str, cycle: Cycle) -> bool:
    return parse_btc(limit) > before.limit or cycle != before.cycle


def _raises_of_role(ctx: Ctx, request: wire.UpdateRolePoliciesRequest) -> bool:
    before = ctx.tools.policies.of(ctx.find(RoleRow, request.role_id, "role"))
    return _raises(before, request.new_transaction_limit, Cycle(request.cycle_period, request.cycle_day))


def _of_roles_now(ctx: Ctx, requests: Sequence[wire.UpdateRolePoliciesRequest]) -> list[dict[str, Json]]:
    rows = ctx.db.scalars(select(RoleRow).where(RoleRow.id.in_({each.role_id for each in requests})))
    policies = {row.id: ctx.tools.policies.of(row) for row in rows}
    return [policy_fields("new_transaction_limit", policies[each.role_id]) for each in requests]


def policy_fields(limit: str, policy: SpendingPolicy) -> dict[str, Json]:
    """As requests and answers have them. ``limit``: the field of the amount."""
    cycle = policy.cycle
    return {limit: btc(policy.limit), "cycle_period": cycle.period, "cycle_day": cycle.day}


@serves(UPDATE_ROLE_POLICIES, ChangeApproval(_raises_of_role, _of_roles_now))
def update_role_policies(ctx: Ctx, request: wire.UpdateRolePoliciesRequest) -> wire.RoleLimit:
    """Applies from the next movement of each member with the role (P22)."""
    role = ctx.find(RoleRow, request.role_id, "role")
    limit = read_amount("new_transaction_limit", request.new_transaction_limit)
    after = SpendingPolicy(limit, Cycle(request.cycle_period, request.cycle_day))
    _replace(ctx, role, after, ROLE_REPLACED, "role")
    return _role_limit(ctx, role)


def _replace(ctx: Ctx, row: RoleRow | VaultRow, after: SpendingPolicy, event: Event, kind: str) -> None:
    before = ctx.tools.policies.of(row)
    ctx.tools.policies.replace(row, after)
    row.updated_at = ctx.now
    ctx.db.flush()
    limits = {"limit": policy_facts(before), "new_limit": policy_facts(after)}
    ctx.event(event, {f"{kind}_id": row.id}, **{kind: row.id}, **limits)


@serves(VAULT_LIMITS)
def vault_limits(ctx: Ctx, query: VaultQuery) -> wire.VaultLimits | wire.LimitError:
    vault = vault_in(ctx.db, ctx.access, query.vault_id)
    try:
        return limits_of_vaults(ctx, [vault])[vault.id]
    except errors.PolicyUnavailable as error:
        return wire.LimitError(limit_error=error.detail)


@serves(CHECK_VAULT_LIMIT)
def check_vault_limit(ctx: Ctx, query: wire.CheckVaultQuery) -> wire.LimitCheck:
    """Whether a movement, fee included, would fit the vault's limit now. Reserves nothing."""
    vault = vault_in(ctx.db, ctx.access, query.vault_id)
    amount, policy = read_amount("amount_to_check", query.amount_to_check), ctx.tools.policies.of(vault)
    usage = usage_of_vault(ctx.db, vault.id, policy.cycle.start(ctx.now))
    return wire.LimitCheck(success=fits(policy, usage, amount))


def _raises_of_vault(ctx: Ctx, request: wire.UpdateVaultRequest) -> bool:
    """Also where the limit bounds each payment from now on, no more their sum."""
    before = ctx.tools.policies.of(vault_in(ctx.db, ctx.access, request.vault_id))
    is_split = before.is_per_cycle and request.per_cycle is False
    cycle = Cycle(request.cycle_period, request.cycle_day)
    return is_split or _raises(before, request.transaction_limit, cycle)


def _of_vaults_now(ctx: Ctx, requests: Sequence[wire.UpdateVaultRequest]) -> list[dict[str, Json]]:
    rows = ctx.db.scalars(select(VaultRow).where(VaultRow.id.in_({each.vault_id for each in requests})))
    policies = {row.id: ctx.tools.policies.of(row) for row in rows}
    in_order = [policies[each.vault_id] for each in requests]
    return [policy_fields("transaction_limit", each) | {"per_cycle": each.is_per_cycle} for each in in_order]


@serves(UPDATE_VAULT, ChangeApproval(_raises_of_vault, _of_vaults_now))
def update_vault(ctx: Ctx, request: wire.UpdateVaultRequest) -> wire.VaultLimits:
    vault = vault_in(ctx.db, ctx.access, request.vault_id)
    limit = read_amount("transaction_limit", request.transaction_limit)
    is_sum = ctx.tools.policies.of(vault).is_per_cycle if request.per_cycle is None else request.per_cycle
    after = SpendingPolicy(limit, Cycle(request.cycle_period, request.cycle_day), is_sum)
    _replace(ctx, vault, after, VAULT_REPLACED, "vault")
    return limits_of_vaults(ctx, [vault])[vault.id]


@dataclass(frozen=True)
class Room:
    """What the role's and the vault's limit leave for one more movement, its fee included."""

    role: Sats
    vault: Sats

    @property
    def least(self) -> Sats:
        return min(self.role, self.vault)


def require_in_limits(ctx: Ctx, vault: VaultRow, movement: OutgoingAmount) -> None:
    """The caller's movements in this workspace and cycle must fit their role's limit; the movement, or the
    sum of the cycle where the limit is per cycle, the vault's. A movement of a token must fit both in whole
    tokens. Raises RoleLimitExceeded, VaultLimitExceeded.
    """
    db, policies, workspace_id = ctx.db, ctx.tools.policies, ctx.access.workspace_id
    if movement.for_role:
        policy = _in_units(policies.of(role_of(db, ctx.access)), movement)
        since = policy.cycle.start(movement.proposed_at)
        enough = policy.limit - movement.amount
        usage = usage_of_member(db, workspace_id, ctx.caller.user_id, since, movement, enough=enough)
        if not fits(policy, usage, movement.amount):
            raise _refused(errors.RoleLimitExceeded, "your role's", policy, usage, movement)
    policy = _in_units(policies.of(vault), movement)
    if not policy.is_per_cycle and movement.amount <= policy.limit:
        return
    since, enough = policy.cycle.start(movement.proposed_at), policy.limit - movement.amount
    usage = usage_of_vault(db, vault.id, since, movement, enough=enough)
    if not fits(policy, usage, movement.amount):
        raise _refused(errors.VaultLimitExceeded, "the vault's", policy, usage, movement)


def room(ctx: Ctx, vault: VaultRow, *, after: int = 0) -> Room:
    """The largest movement that `require_in_limits` accepts now, or after another one of ``after`` satoshis.
    Reserves nothing.
    """
    role, own = ctx.tools.policies.of(role_of(ctx.db, ctx.access)), ctx.tools.policies.of(vault)
    since = role.cycle.start(ctx.now)
    of_member = usage_of_member(ctx.db, ctx.access.workspace_id, ctx.caller.user_id, since)
    used = usage_of_vault(ctx.db, vault.id, own.cycle.start(ctx.now)).used + after if own.is_per_cycle else 0
    return Room(Sats(unused_of(role.limit, of_member.used + after)), Sats(unused_of(own.limit, used)))


def _in_units(policy: SpendingPolicy, movement: OutgoingAmount) -> SpendingPolicy:
    return policy if movement.token is None else of_token(policy, movement.token.decimals)


def _refused(
    error: type[errors.CustodyError],
    whose: str,
    policy: SpendingPolicy,
    usage: Usage,
    movement: OutgoingAmount,
) -> errors.CustodyError:
    """In words, and with its figures in BTC or in whole tokens."""
    text: Callable[[int], str] = btc
    what, unit = f"payment of {text(movement.amount)} BTC, fee included,", "BTC"
    if (token := movement.token) is not None:
        text = partial(in_tokens, decimals=token.decimals)
        what, unit = f"movement of {text(movement.amount)} {token.ticker} tokens", "whole tokens"
    limit = bounds(per_cycle=policy.is_per_cycle, period=policy.cycle.period, day=policy.cycle.day)
    sentence = f"The {what} does not fit {whose} limit: at most {text(policy.limit)} {unit} {limit}"
    reset = policy.cycle.next_reset(movement.proposed_at)
    if policy.is_per_cycle:
        sentence += f", of which {text(usage.used)} {unit} are used until {until(reset)}"
    amounts = {"limit": policy.limit, "used": usage.used, "requested": movement.amount}
    figures = {name: text(amount) for name, amount in amounts.items()} | {"next_reset": format_time(reset)}
    return error(f"{sentence}.", figures=figures)


def limits_of_vaults(ctx: Ctx, vaults: Sequence[VaultRow]) -> dict[str, wire.VaultLimits]:
    """``detailed_vault_limits`` by vault id."""
    policies = {vault.id: ctx.tools.policies.of(vault) for vault in vaults}
    usages = usages_of_vaults(
        ctx.db, {each: policy.cycle.start(ctx.now) for each, policy in policies.items()}
    )
    return {
        vault_id: wire.VaultLimits(
            **limit_fields(policy, ctx.now),
            **usage_fields(policy, usages[vault_id]),
            per_cycle=policy.is_per_cycle,
        )
        for vault_id, policy in policies.items()
    }


def limit_fields(policy: SpendingPolicy, now: datetime) -> dict[str, Any]:
    """The fields that every shown limit has."""
    return {**policy_fields("limit", policy), "next_reset": policy.cycle.next_reset(now)}


def usage_fields(policy: SpendingPolicy, usage: Usage) -> dict[str, str]:
    return {"used": btc(usage.used), "unused": btc(unused_of(policy.limit, usage.used))}


def assets_of_vaults(ctx: Ctx, vaults: Sequence[VaultRow]) -> dict[str, list[wire.AssetLimits]]:
    """``assets`` by vault id: the tokens that each moved in its cycle, the oldest token first."""
    policies = {vault.id: ctx.tools.policies.of(vault) for vault in vaults}
    starts = {vault_id: policy.cycle.start(ctx.now) for vault_id, policy in policies.items()}
    moved = token_usages_of_vaults(ctx.db, starts)
    families = token_families(ctx.db, ctx.access.chain, {each.deploy_family_id for each in moved})
    by_vault: dict[str, list[wire.AssetLimits]] = {vault_id: [] for vault_id in policies}
    for each in moved:
        policy = of_token(policies[each.vault_id], each.decimals)
        text = partial(in_tokens, decimals=each.decimals)
        asset = shape_of(
            wire.AssetLimits,
            each,
            contract_id=families[each.deploy_family_id].best.txid,
            limit=text(policy.limit),
            used=text(each.amount),
            unused=text(unused_of(policy.limit, each.amount)),
            next_reset=policy.cycle.next_reset(ctx.now),
        )
        by_vault[each.vault_id].append(asset)
    return by_vault


def read_amount(field: str, text: str) -> Sats:
    """The amount in BTC of a request's field. Raises Invalid."""
    try:
        return parse_btc(text)
    except InvalidAmount as error:
        raise errors.Invalid.at(f"/{field}", str(error)) from error
