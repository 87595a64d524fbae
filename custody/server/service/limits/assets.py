"""The tokens of a vault's record: what it moved of each in its current cycle, beside the limit (docs/limits.md)."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from datetime import datetime

from sqlalchemy.orm import Session

from custody.schemas import limits as wire
from custody.server.domain.limits import SpendingPolicy, in_tokens, of_token, unused_of
from custody.server.service.limits.token_usage import VaultTokenUsage, token_usages_of_vaults
from custody.server.service.token_status import standings


def assets_of_vaults(
    db: Session, policies: Mapping[str, SpendingPolicy], now: datetime
) -> dict[str, list[wire.AssetLimits]]:
    """By vault id, for every vault that has a policy here; the oldest token first, and none that the vault did not move."""
    moved = _moved(db, policies, now)
    contract_ids = _contract_ids(db, moved)
    found: dict[str, list[wire.AssetLimits]] = {vault_id: [] for vault_id in policies}
    for each in moved:
        contract_id = contract_ids[each.deploy_family_id]
        found[each.vault_id].append(_asset(each, contract_id, policies[each.vault_id], now))
    return found


def _moved(db: Session, policies: Mapping[str, SpendingPolicy], now: datetime) -> list[VaultTokenUsage]:
    """One question for all vaults whose cycles began together, however many vaults and tokens there are."""
    began: dict[datetime, list[str]] = defaultdict(list)
    for vault_id, policy in policies.items():
        began[policy.cycle.start(now)].append(vault_id)
    return [each for since, ids in began.items() for each in token_usages_of_vaults(db, ids, since)]


def _contract_ids(db: Session, moved: Iterable[VaultTokenUsage]) -> dict[str, str | None]:
    """By the family of the deployment, as the token's own record has it."""
    families: dict[str, set[str]] = defaultdict(set)
    for each in moved:
        families[each.chain].add(each.deploy_family_id)
    return {
        family_id: standing.best.txid
        for chain, family_ids in families.items()
        for family_id, standing in standings(db, chain, family_ids).items()
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
