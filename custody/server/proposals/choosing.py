"""Which coins pay for an intent: a random choice, all that one transaction takes, and what nodes would take
beside the unconfirmed transactions that it hangs together with. Everything here only reads.

Bitcoin Core before release 31 takes 25 ancestors and 25 descendants of each (the transaction included), of
101 kvB together; release 31 takes 64 transactions of 101 kvB that hang together in any way. What is within 25
and 101 kvB in any way is taken by both.
"""

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import cache

from sqlalchemy import select
from sqlalchemy.orm import Session

from custody.server.errors import InsufficientFunds, LockedFunds, StateConflict
from custody.server.network.backends import Quote
from custody.server.proposals.coins import (
    SpendableCoins,
    Utxo,
    coins_to_spend,
    size_of_previous,
)
from custody.server.proposals.lifecycle import IS_INPUT, holds_coins_clause
from custody.server.proposals.payments import Intent
from custody.server.rules.fees import MAX_FEE
from custody.server.rules.selection import (
    BY_PLACE,
    MAX_INPUTS,
    SEQUENCE,
    Plan,
    RandomSource,
    Selection,
    Tier,
    economic,
    select_fewest,
    select_from,
    spent_at_once,
)
from custody.server.store.models import ChainCoinRow, ProposalInputRow, ProposalRow, VaultRow
from custody.server.vaults.stored import policy_of
from multisig import (
    CHANGE,
    FeeRate,
    PsbtLimits,
    PsbtTooLarge,
    Sats,
    built_psbt,
    dust_threshold,
    estimate_vsize,
)
from multisig import Vault as Policy

# Bytes: an upper bound of one map of a PSBT with 15 keys, without the previous transaction.
LARGEST_MAP = 2_000
MAX_TOGETHER = 25
MAX_TOGETHER_VSIZE = 101_000
WAITS_FOR_A_BLOCK = (
    f"coins wait for transactions that are in no block yet. Nodes take {MAX_TOGETHER} that hang together, of "
    f"{MAX_TOGETHER_VSIZE} vB"
)
_COLUMNS = select(
    ProposalRow.id,
    ProposalRow.family_id,
    ProposalRow.txid_expected,
    ProposalRow.fee_sats,
    ProposalRow.fee_rate_sat_per_kvb,
).where(ProposalRow.block_height.is_(None))


def largest_that_fit(
    db: Session, vault: VaultRow, intent: Intent, plan: Plan, quote: Quote, kept: Utxo | None
) -> Sequence[Utxo]:
    """The vault's largest coins except ``kept``, as many as one transaction can spend within the limits
    of inputs, fee and PSBT size. Where nodes would not take them together, the confirmed ones.
    """
    _, coins = taken_together(db, vault, plan, quote, kept)
    if _is_small(db, vault, intent, coins):
        return coins
    spent = coins_to_spend(db, vault.chain, coins)
    # The amounts do not change a PSBT's size.
    outputs = tuple(replace(output, amount=Sats(0)) for output in intent.outputs)

    def is_too_large(count: int) -> bool:
        try:
            built_psbt(policy_of(vault), tuple(spent[:count]), outputs, 0, SEQUENCE)
        except PsbtTooLarge:
            return True
        return False

    if not coins or not is_too_large(len(coins)):
        return coins
    return coins[: bisect_left(range(1, len(coins)), True, key=is_too_large)]  # noqa: FBT003 - what it finds


def taken_together(
    db: Session, vault: VaultRow, plan: Plan, quote: Quote, kept: Utxo | None
) -> tuple[Sequence[Utxo], Sequence[Utxo]]:
    """The vault's largest coins, as many as one transaction can spend; and the same, or where nodes would not
    take them together, of the confirmed ones.
    """
    pool = _without(kept, SpendableCoins(vault.id, quote.tip.height).pool(db, Tier.OWN_UNCONFIRMED, plan))
    coins = spent_at_once(economic(pool, plan), plan, MAX_FEE)
    if is_taken_by_nodes(db, vault.chain, coins, plan.vsize(len(coins), True)):  # noqa: FBT003 - the shape Plan asks for
        return coins, coins
    confirmed = [coin for coin in pool if coin.height is not None]
    return coins, spent_at_once(economic(confirmed, plan), plan, MAX_FEE)


def _is_small(db: Session, vault: VaultRow, intent: Intent, coins: Sequence[Utxo]) -> bool:
    """Whether a PSBT of these coins is surely within the limit, by an estimate without building it."""
    # Two more maps: the change output and the global map.
    maps = len(coins) + len(intent.outputs) + 2
    return maps * LARGEST_MAP + size_of_previous(db, vault.chain, coins) < PsbtLimits().max_bytes


Choice = tuple[list[Utxo], Selection[Utxo]]


def choose(db: Session, source: SpendableCoins, plan: Plan, rng: RandomSource, kept: Utxo | None) -> Choice:
    """Coins to choose from, and the choice. Where one is kept, avoids the coins at the vault's address where
    possible, and never takes that one. Raises LockedFunds, InsufficientFunds.
    """
    pools = (source,) if kept is None else (replace(source, avoids_address=True), source)
    for each in pools:
        if chosen := _try_to_choose(db, each, plan, rng, kept):
            return chosen
    if kept is None or _try_to_choose(db, source, plan, rng, None) is None:
        raise _too_little(db, source, plan)
    raise InsufficientFunds(
        f"{plan.target} sat and the fee can only be paid with {kept.outpoint}, the coin of {kept.amount} "
        "sat that the vault keeps at its address for its tokens. Send less, or pay something back to that "
        "address in the same send."
    )


def _try_to_choose(
    db: Session, source: SpendableCoins, plan: Plan, rng: RandomSource, kept: Utxo | None
) -> Choice | None:
    for tier in Tier:
        for pool in source.pools(db, tier, plan):
            ours = _without(kept, pool)
            selection = select_from(ours, plan, rng)
            if selection is not None:
                return ours, selection
    return None


def _without(kept: Utxo | None, pool: list[Utxo]) -> list[Utxo]:
    return pool if kept is None else [utxo for utxo in pool if BY_PLACE(utxo) != BY_PLACE(kept)]


def plan_of(policy: Policy, intent: Intent, rate: FeeRate) -> Plan:
    scripts = [output.script_pubkey for output in intent.outputs]
    # All addresses of a vault have one length.
    change_script = policy.script_pubkey(CHANGE, 0)

    @cache
    def vsize(inputs: int, with_change: bool) -> int:
        return estimate_vsize(policy, inputs, [*scripts, change_script] if with_change else scripts)

    one_input, two_inputs = (vsize(count, False) for count in (1, 2))  # noqa: FBT003 - as Plan calls it
    cost_of_spending = rate.fee_for(two_inputs - one_input)
    return Plan(
        target=intent.total,
        rate=rate,
        vsize=vsize,
        minimum_change=Sats(max(dust_threshold(change_script), cost_of_spending)),
    )


def _too_little(db: Session, source: SpendableCoins, plan: Plan) -> LockedFunds | InsufficientFunds:
    everything = source.pool(db, Tier.OWN_UNCONFIRMED, plan, with_locked=True)
    if select_fewest(everything, plan) is not None:
        return LockedFunds(f"The coins for {plan.target} sat are locked by other proposals.")
    spendable = source.spendable(db)
    if spendable < plan.target:
        return InsufficientFunds(
            f"{plan.target} sat and the fee are more than the {spendable} sat that can be spent; unconfirmed "
            "deposits do not count."
        )
    return InsufficientFunds(
        f"{plan.target} sat and the fee are more than one transaction can spend of the {spendable} sat in "
        f"the vault: it takes at most {MAX_INPUTS} coins, and none that is worth less than its fee."
    )


def nothing_to_sweep(
    db: Session, source: SpendableCoins, plan: Plan, kept: Utxo | None
) -> LockedFunds | InsufficientFunds:
    if _without(kept, source.pool(db, Tier.OWN_UNCONFIRMED, plan, with_locked=True)):
        return LockedFunds("Every coin that could be sent is locked by other proposals.")
    return InsufficientFunds(
        "The vault has no coin to send; unconfirmed deposits, coins below their own fee and the coin for its "
        "tokens do not count."
    )


def require_taken_by_nodes(db: Session, chain: str, spent: Iterable[Utxo], vsize: int) -> None:
    """Raises StateConflict where a transaction of ``vsize`` vB that spends these coins would be refused."""
    if not is_taken_by_nodes(db, chain, spent, vsize):
        raise StateConflict(
            f"Its {WAITS_FOR_A_BLOCK} in all, and this would be more: wait for the next block."
        )


def is_taken_by_nodes(db: Session, chain: str, spent: Iterable[Utxo], vsize: int) -> bool:
    """Counts what the platform knows: of strangers' transactions those that it spends of, and none that
    strangers made from its own.
    """
    new = {utxo.txid for utxo in spent if utxo.height is None}
    seen: set[str] = set()
    # By family, for at most one of its versions is in a mempool; of a stranger, by txid.
    sizes: dict[str, int] = {}
    while new and len(sizes) < MAX_TOGETHER:
        ids, txids = set(), set()
        spends_one = select(ProposalInputRow.proposal_id).where(ProposalInputRow.txid.in_(new))
        for which in (
            ProposalRow.txid_expected.in_(new),
            ProposalRow.id.in_(spends_one) & holds_coins_clause(),
        ):
            for each in db.execute(_COLUMNS.where(which)):
                # The rate is rounded down, so this is its size or a little more.
                size = each.fee_sats * 1000 // max(1, each.fee_rate_sat_per_kvb)
                sizes[each.family_id] = max(size, sizes.get(each.family_id, 0))
                ids.add(each.id)
                txids.add(each.txid_expected)
        sizes |= dict.fromkeys(new - txids, 0)
        seen |= new
        new = (txids | _unconfirmed_parents(db, chain, ids)) - seen
    return len(sizes) < MAX_TOGETHER and sum(sizes.values()) + vsize <= MAX_TOGETHER_VSIZE


def _unconfirmed_parents(db: Session, chain: str, proposal_ids: Iterable[str]) -> set[str]:
    return set(
        db.scalars(
            select(ChainCoinRow.txid)
            .join(ProposalInputRow, IS_INPUT)
            .where(
                ChainCoinRow.chain == chain,
                ChainCoinRow.height.is_(None),
                ProposalInputRow.proposal_id.in_(proposal_ids),
            )
        )
    )
