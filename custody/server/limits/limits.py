"""Spending limits: checking movements, and showing usage.

A movement is checked and reserved in one transaction, and the database has one writer at a time (ADR 13): of
two movements that would breach a limit together, the second is checked with the first in the sum (P17).
Policies may be stored elsewhere, behind `PolicyStore`.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Protocol, cast

from sqlalchemy import bindparam, select
from sqlalchemy.orm import Session

from custody.common.limit_words import bounds, until
from custody.schemas import limits as wire
from custody.schemas.common import format_time
from custody.server.errors import RoleLimitExceeded, VaultLimitExceeded
from custody.server.limits.usage import (
    OutgoingTokens,
    VaultTokenUsage,
    token_usage_of_member,
    token_usage_of_vault,
    token_usages_of_vaults,
    usage_of_member,
    usage_of_vault,
    usages_of_vaults,
)
from custody.server.rules.credentials import Caller, WorkspaceAccess
from custody.server.rules.limits import (
    Cycle,
    CyclePeriod,
    SpendingPolicy,
    Usage,
    fits,
    in_btc,
    in_tokens,
    of_token,
    unused_of,
)
from custody.server.rules.ports import Clock
from custody.server.store.models import RoleRow, VaultRow
from custody.server.store.store import read_once
from custody.server.tokens.status import token_families
from multisig import Sats, sats


class PolicyStore(Protocol):
    """Every call raises PolicyUnavailable where the store cannot be reached; then nothing moves.

    It is called inside the movement's transaction, which holds the write lock: an implementation that
    talks to another machine must answer or give up within a second. A role or vault whose policy was
    never replaced has the one of its row.
    """

    def of_role(self, db: Session, role_id: int) -> SpendingPolicy: ...

    def of_roles(self, db: Session, role_ids: Sequence[int]) -> Mapping[int, SpendingPolicy]: ...

    def of_vaults(self, db: Session, vault_ids: Sequence[str]) -> Mapping[str, SpendingPolicy]: ...

    def of_movement(self, db: Session, role_id: int, vault_id: str) -> tuple[SpendingPolicy, SpendingPolicy]:
        """The policies of the role and of the vault."""
        ...

    def replace_of_role(self, db: Session, role_id: int, policy: SpendingPolicy) -> None: ...

    def replace_of_vault(self, db: Session, vault_id: str, policy: SpendingPolicy) -> None: ...


class StoredPolicies:
    """Policies in columns of the role and of the vault."""

    def of_role(self, db: Session, role_id: int) -> SpendingPolicy:
        return self.of_roles(db, [role_id])[role_id]

    def of_roles(self, db: Session, role_ids: Sequence[int]) -> Mapping[int, SpendingPolicy]:
        roles = db.execute(_OF_ROLES, {"role_ids": role_ids})
        return {role_id: _policy(limit, period, day) for role_id, limit, period, day in roles}

    def of_vaults(self, db: Session, vault_ids: Sequence[str]) -> Mapping[str, SpendingPolicy]:
        vaults = db.execute(_OF_VAULTS, {"vault_ids": vault_ids})
        return {
            vault_id: _policy(limit, period, day, is_per_cycle)
            for vault_id, limit, period, day, is_per_cycle in vaults
        }

    def of_movement(self, db: Session, role_id: int, vault_id: str) -> tuple[SpendingPolicy, SpendingPolicy]:
        row = db.execute(_OF_MOVEMENT, {"role_id": role_id, "vault_id": vault_id}).one()
        return _policy(*row[:3]), _policy(*row[3:])

    def replace_of_role(self, db: Session, role_id: int, policy: SpendingPolicy) -> None:
        _replace(db.get_one(RoleRow, role_id), policy)

    def replace_of_vault(self, db: Session, vault_id: str, policy: SpendingPolicy) -> None:
        vault = db.get_one(VaultRow, vault_id)
        _replace(vault, policy)
        vault.is_per_cycle = policy.is_per_cycle


_OF_ROLES = select(RoleRow.id, RoleRow.limit_sats, RoleRow.cycle_period, RoleRow.cycle_day).where(
    RoleRow.id.in_(bindparam("role_ids", expanding=True))
)
_OF_VAULTS = select(
    VaultRow.id, VaultRow.limit_sats, VaultRow.cycle_period, VaultRow.cycle_day, VaultRow.is_per_cycle
).where(VaultRow.id.in_(bindparam("vault_ids", expanding=True)))
_OF_MOVEMENT = (
    select(
        RoleRow.limit_sats,
        RoleRow.cycle_period,
        RoleRow.cycle_day,
        VaultRow.limit_sats,
        VaultRow.cycle_period,
        VaultRow.cycle_day,
        VaultRow.is_per_cycle,
    )
    .join_from(RoleRow, VaultRow, VaultRow.id == bindparam("vault_id"))
    .where(RoleRow.id == bindparam("role_id"))
)


def _policy(limit: int, period: str, day: int, is_per_cycle: bool = True) -> SpendingPolicy:
    return SpendingPolicy(sats(limit), _cycle(period, day), is_per_cycle)


def _cycle(period: str, day: int) -> Cycle:
    return Cycle(cast("CyclePeriod", period), day)


def _replace(row: RoleRow | VaultRow, policy: SpendingPolicy) -> None:
    row.limit_sats = policy.limit
    row.cycle_period, row.cycle_day = policy.cycle.period, policy.cycle.day


@dataclass(frozen=True)
class OutgoingAmount:
    """An amount that would leave a vault, the fee included. ``proposed_at``: the proposal's ``created_at``.
    ``family_id``: the family that it is another version of, if any; versions share a coin, so at most one of
    them is mined.
    """

    amount: Sats
    proposed_at: datetime
    family_id: str | None = None


@dataclass(frozen=True)
class Room:
    """What the role's and the vault's limit leave for one more movement, its fee included."""

    role: Sats
    vault: Sats

    @property
    def least(self) -> Sats:
        return min(self.role, self.vault)


@dataclass(frozen=True)
class VaultFigures:
    """A vault's usage in bitcoin, and of each token that it moved in the cycle."""

    main: wire.VaultLimits
    assets: list[wire.AssetLimits]


class SpendingLimits:
    """Every call raises PolicyUnavailable where the policies cannot be read; nothing is reserved then."""

    def __init__(self, clock: Clock, policies: PolicyStore) -> None:
        self._clock = clock
        self._policies = policies

    def require(
        self,
        db: Session,
        caller: Caller,
        access: WorkspaceAccess,
        vault: VaultRow,
        movement: OutgoingAmount,
        *,
        for_role: bool = True,
    ) -> None:
        """The caller's movements in this workspace and cycle must fit their role's limit; the movement, or
        the sum of the cycle where the limit is per cycle, the vault's. ``for_role``: whether it counts for
        the role, too. Raises RoleLimitExceeded, VaultLimitExceeded.
        """
        if for_role:
            role, own = self._of_movement(db, access, vault)
            _require_role(db, caller, access, role, movement)
        else:
            own = self._of(db, vault)
        _require_vault(db, vault, own, movement)

    def room(
        self, db: Session, caller: Caller, access: WorkspaceAccess, vault: VaultRow, *, after: int = 0
    ) -> Room:
        """The largest movement that `require` accepts now, or after another one of ``after`` satoshis.
        Reserves nothing.
        """
        role, own = self._of_movement(db, access, vault)
        now = self._clock()
        of_member = usage_of_member(db, access.workspace_id, caller.user_id, role.cycle.start(now))
        used = usage_of_vault(db, vault.id, own.cycle.start(now)).used + after if own.is_per_cycle else 0
        return Room(Sats(unused_of(role.limit, of_member.used + after)), Sats(unused_of(own.limit, used)))

    def _of_movement(
        self, db: Session, access: WorkspaceAccess, vault: VaultRow
    ) -> tuple[SpendingPolicy, SpendingPolicy]:
        of = access.role_id, vault.id
        return read_once(db, ("policies", *of), lambda: self._policies.of_movement(db, *of))

    def _of(self, db: Session, vault: VaultRow) -> SpendingPolicy:
        return self._policies.of_vaults(db, [vault.id])[vault.id]

    def require_token(
        self, db: Session, caller: Caller, access: WorkspaceAccess, vault: VaultRow, movement: OutgoingTokens
    ) -> None:
        """A movement of a token must fit the limits in whole tokens. Raises RoleLimitExceeded,
        VaultLimitExceeded.
        """
        if movement.for_role:
            policy = of_token(self._policies.of_role(db, access.role_id), movement.decimals)
            since = policy.cycle.start(movement.proposed_at)
            usage = token_usage_of_member(db, access.workspace_id, caller.user_id, since, movement)
            if not fits(policy, usage, movement.amount):
                raise RoleLimitExceeded(
                    f"{_of_token(movement)} does not fit your role's limit: at most "
                    f"{in_tokens(policy.limit, movement.decimals)} whole tokens {_bounds(policy)}.",
                    figures=_token_figures(policy, usage, movement),
                )
        policy = of_token(self._of(db, vault), movement.decimals)
        usage = token_usage_of_vault(db, vault.id, policy.cycle.start(movement.proposed_at), movement)
        if not fits(policy, usage, movement.amount):
            raise VaultLimitExceeded(
                f"{_of_token(movement)} does not fit the vault's limit: at most "
                f"{in_tokens(policy.limit, movement.decimals)} whole tokens {_bounds(policy)}.",
                figures=_token_figures(policy, usage, movement),
            )

    def of_role(self, db: Session, workspace_id: int, role_id: int) -> wire.RoleLimit:
        policy = self._policies.of_role(db, role_id)
        return wire.RoleLimit(role_id=role_id, workspace_id=workspace_id, **_shown(policy, self._clock()))

    def of_caller(self, db: Session, caller: Caller, access: WorkspaceAccess) -> wire.MyLimits:
        """The limit of the caller's role, and what they used of it in the current cycle."""
        now, policy = self._clock(), self._policies.of_role(db, access.role_id)
        usage = usage_of_member(db, access.workspace_id, caller.user_id, policy.cycle.start(now))
        return wire.MyLimits(
            role_id=access.role_id,
            workspace_id=access.workspace_id,
            **_shown(policy, now),
            **_used(policy, usage),
        )

    def of_vaults(self, db: Session, vaults: Sequence[VaultRow]) -> Mapping[str, wire.VaultLimits]:
        """``detailed_vault_limits`` by vault id."""
        now, policies = self._clock(), self._policies.of_vaults(db, [vault.id for vault in vaults])
        return _of_vaults(db, policies, now)

    def figures_of_vaults(self, db: Session, vaults: Sequence[VaultRow]) -> Mapping[str, VaultFigures]:
        """The same with ``assets``."""
        now, policies = self._clock(), self._policies.of_vaults(db, [vault.id for vault in vaults])
        main, assets = _of_vaults(db, policies, now), assets_of_vaults(db, policies, now)
        return {vault_id: VaultFigures(main[vault_id], assets[vault_id]) for vault_id in policies}

    def fits_role(self, db: Session, workspace_id: int, role_id: int, user_id: int, amount: Sats) -> bool:
        """Whether a member who holds the role could move the amount now. Reserves nothing."""
        now, policy = self._clock(), self._policies.of_role(db, role_id)
        return fits(policy, usage_of_member(db, workspace_id, user_id, policy.cycle.start(now)), amount)

    def fits_vault(self, db: Session, vault: VaultRow, amount: Sats) -> bool:
        """Whether a movement, fee included, would fit the vault's limit now. Reserves nothing."""
        now, policy = self._clock(), self._of(db, vault)
        return fits(policy, usage_of_vault(db, vault.id, policy.cycle.start(now)), amount)


def _require_role(
    db: Session, caller: Caller, access: WorkspaceAccess, policy: SpendingPolicy, movement: OutgoingAmount
) -> None:
    since = policy.cycle.start(movement.proposed_at)
    usage = usage_of_member(db, access.workspace_id, caller.user_id, since, movement.family_id)
    if not fits(policy, usage, movement.amount):
        raise RoleLimitExceeded(
            _refusal("your role's", policy, usage, movement),
            figures=_figures(policy, usage, movement),
        )


def _require_vault(db: Session, vault: VaultRow, policy: SpendingPolicy, movement: OutgoingAmount) -> None:
    if not policy.is_per_cycle and movement.amount <= policy.limit:
        return
    since = policy.cycle.start(movement.proposed_at)
    usage = usage_of_vault(db, vault.id, since, movement.family_id)
    if not fits(policy, usage, movement.amount):
        raise VaultLimitExceeded(
            _refusal("the vault's", policy, usage, movement),
            figures=_figures(policy, usage, movement),
        )


def _refusal(whose: str, policy: SpendingPolicy, usage: Usage, movement: OutgoingAmount) -> str:
    sentence = (
        f"The payment of {in_btc(movement.amount)} BTC, fee included, does not fit {whose} limit: at most "
        f"{in_btc(policy.limit)} BTC {_bounds(policy)}"
    )
    if not policy.is_per_cycle:
        return f"{sentence}."
    reset = policy.cycle.next_reset(movement.proposed_at)
    return f"{sentence}, of which {in_btc(usage.used)} BTC are used until {until(reset)}."


def _bounds(policy: SpendingPolicy) -> str:
    return bounds(per_cycle=policy.is_per_cycle, period=policy.cycle.period, day=policy.cycle.day)


def _of_vaults(
    db: Session, policies: Mapping[str, SpendingPolicy], now: datetime
) -> dict[str, wire.VaultLimits]:
    starts = {vault_id: policy.cycle.start(now) for vault_id, policy in policies.items()}
    usages = usages_of_vaults(db, starts)
    return {
        vault_id: wire.VaultLimits(
            **_shown(policy, now), **_used(policy, usages[vault_id]), per_cycle=policy.is_per_cycle
        )
        for vault_id, policy in policies.items()
    }


def _shown(policy: SpendingPolicy, now: datetime) -> dict[str, Any]:
    return {
        "limit": in_btc(policy.limit),
        "cycle_period": policy.cycle.period,
        "cycle_day": policy.cycle.day,
        "next_reset": policy.cycle.next_reset(now),
    }


def _used(policy: SpendingPolicy, usage: Usage) -> dict[str, str]:
    return {"used": in_btc(usage.used), "unused": in_btc(unused_of(policy.limit, usage.used))}


def _of_token(movement: OutgoingTokens) -> str:
    return f"The movement of {in_tokens(movement.amount, movement.decimals)} {movement.ticker} tokens"


def _token_figures(policy: SpendingPolicy, usage: Usage, movement: OutgoingTokens) -> dict[str, str]:
    """The figures of an error, in whole tokens."""
    amounts = {"limit": policy.limit, "used": usage.used, "requested": movement.amount}
    figures = {name: in_tokens(amount, movement.decimals) for name, amount in amounts.items()}
    return figures | {"next_reset": format_time(policy.cycle.next_reset(movement.proposed_at))}


def _figures(policy: SpendingPolicy, usage: Usage, movement: OutgoingAmount) -> dict[str, str]:
    """The figures of an error, in BTC."""
    return {
        "limit": in_btc(policy.limit),
        "used": in_btc(usage.used),
        "requested": in_btc(movement.amount),
        "next_reset": format_time(policy.cycle.next_reset(movement.proposed_at)),
    }


def assets_of_vaults(
    db: Session, policies: Mapping[str, SpendingPolicy], now: datetime
) -> dict[str, list[wire.AssetLimits]]:
    """By vault, the tokens that it moved in its cycle, the oldest token first."""
    moved = _moved(db, policies, now)
    contract_ids = _contract_ids(db, moved)
    found: dict[str, list[wire.AssetLimits]] = {vault_id: [] for vault_id in policies}
    for each in moved:
        contract_id = contract_ids[each.deploy_family_id]
        found[each.vault_id].append(_asset(each, contract_id, policies[each.vault_id], now))
    return found


def _moved(db: Session, policies: Mapping[str, SpendingPolicy], now: datetime) -> list[VaultTokenUsage]:
    """One query for all vaults whose cycles began together."""
    began: dict[datetime, list[str]] = defaultdict(list)
    for vault_id, policy in policies.items():
        began[policy.cycle.start(now)].append(vault_id)
    return [each for since, ids in began.items() for each in token_usages_of_vaults(db, ids, since)]


def _contract_ids(db: Session, moved: Iterable[VaultTokenUsage]) -> dict[str, str | None]:
    """The tokens' ids (the deployment's txid), by the deployment's family."""
    families: dict[str, set[str]] = defaultdict(set)
    for each in moved:
        families[each.chain].add(each.deploy_family_id)
    return {
        family_id: family.best.txid
        for chain, family_ids in families.items()
        for family_id, family in token_families(db, chain, family_ids).items()
    }


def _asset(
    moved: VaultTokenUsage, contract_id: str | None, main: SpendingPolicy, now: datetime
) -> wire.AssetLimits:
    limit, used = of_token(main, moved.decimals).limit, moved.usage.used
    return wire.AssetLimits(
        contract_uid=moved.contract_uid,
        contract_id=contract_id,
        ticker=moved.ticker,
        decimals=moved.decimals,
        limit=in_tokens(limit, moved.decimals),
        used=in_tokens(used, moved.decimals),
        unused=in_tokens(unused_of(limit, used), moved.decimals),
        next_reset=main.cycle.next_reset(now),
    )
