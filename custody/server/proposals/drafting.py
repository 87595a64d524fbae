"""From an intent to the coins, the change, the fee and the parts of the PSBT. Everything here only reads."""

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import islice
from typing import TypeGuard

from sqlalchemy import bindparam, select
from sqlalchemy.orm import Session

from custody.server.errors import InsufficientFunds, LockedFunds
from custody.server.network.backends import Quote
from custody.server.proposals.coins import (
    SpendableCoins,
    Utxo,
    coins_to_spend,
    size_of_previous,
)
from custody.server.proposals.mempools import is_taken_by_nodes
from custody.server.proposals.payments import Intent
from custody.server.rules.fees import MAX_FEE
from custody.server.rules.selection import (
    BACKDATE_BLOCKS,
    BY_PLACE,
    MAX_INPUTS,
    SEQUENCE,
    Plan,
    RandomSource,
    Selection,
    Tier,
    economic,
    other_locktimes,
    select_fewest,
    select_from,
    spent_at_once,
)
from custody.server.store.models import ProposalRow, VaultRow
from custody.server.vaults.stored import policy_of
from multisig import (
    CHANGE,
    Built,
    ChangeTo,
    CoinToSpend,
    FeeRate,
    Psbt,
    PsbtLimits,
    PsbtTooLarge,
    Sats,
    Transaction,
    TxOut,
    built_psbt,
    dust_threshold,
    estimate_vsize,
)
from multisig import Policy as AnyPolicy
from multisig import Vault as Policy

# Bytes: an upper bound of one map of a PSBT with 15 keys, without the previous transaction.
LARGEST_MAP = 2_000


@dataclass(frozen=True)
class Parts:
    policy: AnyPolicy
    coins: tuple[CoinToSpend, ...]
    outputs: tuple[TxOut | ChangeTo, ...]
    locktime: int

    @property
    def change_index(self) -> int | None:
        """None for a token's transaction: its change returns to the vault's first address."""
        return next((item.index for item in self.outputs if _is_change(item)), None)

    def with_change_at(self, index: int) -> "Parts":
        outputs = (replace(item, index=index) if _is_change(item) else item for item in self.outputs)
        return replace(self, outputs=tuple(outputs))

    def distinct(self, db: Session, psbt: Psbt, tip_height: int) -> "Parts":
        """Parts of a transaction that no proposal has yet, perhaps these. ``psbt``: the one that these
        build.
        """
        locktime = free_locktime(db, psbt.tx, tip_height)
        return self if locktime == self.locktime else replace(self, locktime=locktime)

    def build(self) -> Built:
        """Raises PsbtTooLarge."""
        return built_psbt(self.policy, self.coins, self.outputs, self.locktime, SEQUENCE)


def _is_change(item: TxOut | ChangeTo) -> TypeGuard[ChangeTo]:
    return isinstance(item, ChangeTo) and item.chain == CHANGE


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
            Parts(policy_of(vault), tuple(spent[:count]), outputs, 0).build()
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


def free_locktime(db: Session, tx: Transaction, tip_height: int) -> int:
    """A lock time with which no proposal has this transaction yet, ended ones included; its own if possible.

    Two proposals must not be the same transaction: a member who proposes the same payment again after the
    first has ended could get the same coins, outputs and txid. Only the lock time can always be varied: the
    maker fixes a forward's amounts and fee, and there may be no change.
    """
    others = other_locktimes(tip_height)
    candidates = [tx.locktime]
    while True:
        txids = [replace(tx, locktime=each).txid for each in candidates]
        taken = set(db.scalars(_TAKEN, {"txids": txids}))
        for locktime, txid in zip(candidates, txids, strict=True):
            if txid not in taken:
                return locktime
        candidates = list(islice(others, BACKDATE_BLOCKS))


_TAKEN = select(ProposalRow.txid_expected).where(
    ProposalRow.txid_expected.in_(bindparam("txids", expanding=True))
)
