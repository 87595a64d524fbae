"""Spending limits: checking movements, and showing usage.

A movement is checked and reserved in one transaction, and the database has one writer at a time (ADR 13): of
two movements that would breach a limit together, the second is checked with the first in the sum (P17).
Every function raises PolicyUnavailable where the policies cannot be read; nothing is reserved then.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Any

from custody.common.limit_words import bounds, until
from custody.schemas import limits as wire
from custody.schemas.common import format_time
from custody.server.calls import Ctx
from custody.server.errors import Invalid, RoleLimitExceeded, VaultLimitExceeded
from custody.server.limits.stored import (
    OutgoingTokens,
    role_of,
    token_usage_of_member,
    token_usage_of_vault,
    token_usages_of_vaults,
    usage_of_member,
    usage_of_vault,
    usages_of_vaults,
)
from custody.server.rules.limits import SpendingPolicy, Usage, fits, in_btc, in_tokens, of_token, unused_of
from custody.server.store.models import VaultRow
from custody.server.tokens.status import token_families
from multisig import InvalidAmount, Sats, parse_btc


@dataclass(frozen=True)
class OutgoingAmount:
    """An amount that would leave a vault, the fee included. ``proposed_at``: the proposal's ``created_at``.
    ``family_id``: the family that it is another version of, if any; versions share a coin, so at most one of
    them is mined. ``for_role``: whether it counts for the member's role, too.
    """

    amount: Sats
    proposed_at: datetime
    family_id: str | None = None
    for_role: bool = True


@dataclass(frozen=True)
class Room:
    """What the role's and the vault's limit leave for one more movement, its fee included."""

    role: Sats
    vault: Sats

    @property
    def least(self) -> Sats:
        return min(self.role, self.vault)


def require(ctx: Ctx, vault: VaultRow, movement: OutgoingAmount | OutgoingTokens) -> None:
    """The caller's movements in this workspace and cycle must fit their role's limit; the movement, or the
    sum of the cycle where the limit is per cycle, the vault's. A movement of a token must fit both in whole
    tokens. Raises RoleLimitExceeded, VaultLimitExceeded.
    """
    db, policies, workspace_id = ctx.db, ctx.tools.policies, ctx.access.workspace_id
    if movement.for_role:
        policy = _in_units(policies.of(role_of(db, ctx.access)), movement)
        since = policy.cycle.start(movement.proposed_at)
        if isinstance(movement, OutgoingTokens):
            usage = token_usage_of_member(db, workspace_id, ctx.caller.user_id, since, movement)
        else:
            usage = usage_of_member(db, workspace_id, ctx.caller.user_id, since, movement.family_id)
        if not fits(policy, usage, movement.amount):
            raise RoleLimitExceeded(
                _refusal("your role's", policy, usage, movement), figures=_figures(policy, usage, movement)
            )
    policy = _in_units(policies.of(vault), movement)
    if not policy.is_per_cycle and movement.amount <= policy.limit:
        return
    since = policy.cycle.start(movement.proposed_at)
    if isinstance(movement, OutgoingTokens):
        usage = token_usage_of_vault(db, vault.id, since, movement)
    else:
        usage = usage_of_vault(db, vault.id, since, movement.family_id)
    if not fits(policy, usage, movement.amount):
        raise VaultLimitExceeded(
            _refusal("the vault's", policy, usage, movement), figures=_figures(policy, usage, movement)
        )


def room(ctx: Ctx, vault: VaultRow, *, after: int = 0) -> Room:
    """The largest movement that `require` accepts now, or after another one of ``after`` satoshis. Reserves
    nothing.
    """
    role, own = ctx.tools.policies.of(role_of(ctx.db, ctx.access)), ctx.tools.policies.of(vault)
    since = role.cycle.start(ctx.now)
    of_member = usage_of_member(ctx.db, ctx.access.workspace_id, ctx.caller.user_id, since)
    used = usage_of_vault(ctx.db, vault.id, own.cycle.start(ctx.now)).used + after if own.is_per_cycle else 0
    return Room(Sats(unused_of(role.limit, of_member.used + after)), Sats(unused_of(own.limit, used)))


def _in_units(policy: SpendingPolicy, movement: OutgoingAmount | OutgoingTokens) -> SpendingPolicy:
    return of_token(policy, movement.decimals) if isinstance(movement, OutgoingTokens) else policy


def _text_of(movement: OutgoingAmount | OutgoingTokens) -> Callable[[int], str]:
    """How its amounts are written."""
    return partial(in_tokens, decimals=movement.decimals) if isinstance(movement, OutgoingTokens) else in_btc


def _refusal(
    whose: str, policy: SpendingPolicy, usage: Usage, movement: OutgoingAmount | OutgoingTokens
) -> str:
    text = _text_of(movement)
    what, unit = f"payment of {text(movement.amount)} BTC, fee included,", "BTC"
    if isinstance(movement, OutgoingTokens):
        what, unit = f"movement of {text(movement.amount)} {movement.ticker} tokens", "whole tokens"
    limit = bounds(per_cycle=policy.is_per_cycle, period=policy.cycle.period, day=policy.cycle.day)
    sentence = f"The {what} does not fit {whose} limit: at most {text(policy.limit)} {unit} {limit}"
    if not policy.is_per_cycle:
        return f"{sentence}."
    reset = policy.cycle.next_reset(movement.proposed_at)
    return f"{sentence}, of which {text(usage.used)} {unit} are used until {until(reset)}."


def _figures(
    policy: SpendingPolicy, usage: Usage, movement: OutgoingAmount | OutgoingTokens
) -> dict[str, str]:
    """The figures of an error, in BTC or in whole tokens."""
    amounts = {"limit": policy.limit, "used": usage.used, "requested": movement.amount}
    reset = format_time(policy.cycle.next_reset(movement.proposed_at))
    return {name: _text_of(movement)(amount) for name, amount in amounts.items()} | {"next_reset": reset}


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
    return {
        "limit": in_btc(policy.limit),
        "cycle_period": policy.cycle.period,
        "cycle_day": policy.cycle.day,
        "next_reset": policy.cycle.next_reset(now),
    }


def usage_fields(policy: SpendingPolicy, usage: Usage) -> dict[str, str]:
    return {"used": in_btc(usage.used), "unused": in_btc(unused_of(policy.limit, usage.used))}


def assets_of_vaults(ctx: Ctx, vaults: Sequence[VaultRow]) -> dict[str, list[wire.AssetLimits]]:
    """``assets`` by vault id: the tokens that each moved in its cycle, the oldest token first."""
    policies = {vault.id: ctx.tools.policies.of(vault) for vault in vaults}
    starts = {vault_id: policy.cycle.start(ctx.now) for vault_id, policy in policies.items()}
    moved = token_usages_of_vaults(ctx.db, starts)
    families = token_families(ctx.db, ctx.access.chain, {each.deploy_family_id for each in moved})
    found: dict[str, list[wire.AssetLimits]] = {vault_id: [] for vault_id in policies}
    for each in moved:
        policy = of_token(policies[each.vault_id], each.decimals)
        text = partial(in_tokens, decimals=each.decimals)
        asset = wire.AssetLimits(
            contract_uid=each.contract_uid,
            contract_id=families[each.deploy_family_id].best.txid,
            ticker=each.ticker,
            decimals=each.decimals,
            limit=text(policy.limit),
            used=text(each.amount),
            unused=text(unused_of(policy.limit, each.amount)),
            next_reset=policy.cycle.next_reset(ctx.now),
        )
        found[each.vault_id].append(asset)
    return found


def read_amount(field: str, text: str) -> Sats:
    """The amount in BTC of a request's field. Raises Invalid."""
    try:
        return parse_btc(text)
    except InvalidAmount as error:
        raise Invalid.at(f"/{field}", str(error)) from error
