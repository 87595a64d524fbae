"""From an intent to the coins, the change, the fee and the unsigned PSBT. Everything here only reads."""

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from itertools import islice
from typing import TypeGuard

from sqlalchemy import bindparam, select
from sqlalchemy.orm import Session

from custody.server.domain.errors import InsufficientFunds, Invalid, LockedFunds
from custody.server.domain.fees import MAX_FEE
from custody.server.domain.ports import Clock
from custody.server.domain.selection import (
    BACKDATE_BLOCKS,
    BY_PLACE,
    MAX_INPUTS,
    SEQUENCE,
    Plan,
    RandomSource,
    Selection,
    Tier,
    choose_locktime,
    economic,
    other_locktimes,
    select_cheapest,
    select_fewest,
    select_from,
    settle,
    spent_at_once,
)
from custody.server.service.backends import Quote
from custody.server.service.proposals.coins import (
    SpendableCoins,
    Utxo,
    coins_to_spend,
    kept_for_tokens,
    size_of_previous,
)
from custody.server.service.proposals.mempools import is_taken_by_nodes, require_taken_by_nodes
from custody.server.service.proposals.payments import Intent, NamedCoins
from custody.server.service.stored_vaults import policy_of
from custody.server.store.models import ProposalRow, VaultRow
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
class Draft:
    """A transaction that is ready to be proposed. ``selection``: its coins, in the order of its inputs.
    ``kept``: a coin that has to stay unspent. ``txid`` is computed here, before the write lock is taken.
    """

    built: Built
    selection: Selection[Utxo]
    vsize: int
    parts: "Parts"
    kept: Utxo | None = None
    txid: str = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "txid", self.psbt.tx.txid)

    @property
    def psbt(self) -> Psbt:
        return self.built.psbt

    @property
    def raw(self) -> bytes:
        """The PSBT's bytes."""
        return self.built.raw

    @property
    def scripts(self) -> set[bytes]:
        """Its output scripts."""
        return {output.script_pubkey for output in self.psbt.outputs}

    @property
    def utxos(self) -> tuple[Utxo, ...]:
        return self.selection.coins

    @property
    def needed(self) -> tuple[Utxo, ...]:
        """The coins that must be unchanged when this is stored: its own, and the kept one."""
        return self.utxos if self.kept is None else (*self.utxos, self.kept)

    @property
    def base64(self) -> str:
        return self.built.base64

    @property
    def change_index(self) -> int | None:
        """The vault's change index that it uses; None without change."""
        return self.parts.change_index

    def with_change_at(self, index: int) -> "Draft":
        """The same with another change index, after another proposal has taken the first one."""
        parts = self.parts.with_change_at(index)
        return replace(self, built=parts.build(), parts=parts)

    def distinct(self, db: Session, tip_height: int) -> "Draft":
        """The same as a transaction that no proposal has yet."""
        parts = self.parts.distinct(db, self.psbt, tip_height)
        return self if parts is self.parts else replace(self, built=parts.build(), parts=parts)


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


class Drafter:
    def __init__(self, clock: Clock, rng: RandomSource) -> None:
        self._clock = clock
        self._rng = rng

    def draft(
        self,
        db: Session,
        vault: VaultRow,
        intent: Intent,
        rate: FeeRate,
        quote: Quote,
        *,
        distinct: bool,
    ) -> Draft:
        """A payment; its change goes to the vault's next change index. Drafted from a snapshot, the coins
        (`require_unchanged`) and that index have to be checked again before anything is stored. ``distinct``:
        whether it must be a transaction that no proposal has yet.

        Raises LockedFunds where it needs coins that other proposals have locked, InsufficientFunds where even
        those do not suffice, Invalid where the fee is above the cap or the PSBT larger than devices take.
        """
        plan = plan_of(policy_of(vault), intent, rate)
        source = SpendableCoins(vault.id, quote.tip.height)
        kept = kept_for_tokens(db, vault, quote.tip.height, intent.outputs)
        pool, selection = _choose(db, source, plan, self._rng, kept)
        if selection.fee > MAX_FEE:
            selection = select_fewest(pool, plan) or selection
        try:
            draft = self._build(db, vault, intent, plan, quote, selection, kept)
        except PsbtTooLarge:
            # Payers decide how large the previous transactions are, which devices have to read.
            fewest = select_fewest(pool, plan) or selection
            try:
                draft = self._build(db, vault, intent, plan, quote, fewest, kept)
            except PsbtTooLarge as error:
                sentence = (
                    f"{len(fewest.coins)} coins and their previous transactions are more than a device "
                    f"takes: {error}"
                )
                raise Invalid.at("/amounts_sats", sentence, error.code) from error
        return draft.distinct(db, quote.tip.height) if distinct else draft

    def sweep(
        self, db: Session, vault: VaultRow, intent: Intent, rate: FeeRate, quote: Quote, *, distinct: bool
    ) -> tuple[Intent, Draft]:
        """All that can be spent, less the fee, and the intent with that amount. Of more coins than a
        transaction takes, the largest; without uneconomic coins and the one for the vault's tokens.

        Raises LockedFunds, InsufficientFunds, Dust, Invalid; StateConflict where nodes would not take them.
        """
        plan = plan_of(policy_of(vault), intent, rate)
        source = SpendableCoins(vault.id, quote.tip.height)
        kept = kept_for_tokens(db, vault, quote.tip.height, intent.outputs)
        coins = largest_that_fit(db, vault, intent, plan, quote, kept)
        if not coins:
            everything, _ = taken_together(db, vault, plan, quote, kept)
            require_taken_by_nodes(db, vault.chain, everything, plan.vsize(len(everything), True))  # noqa: FBT003 - the shape Plan asks for
            raise _nothing_to_sweep(db, source, plan, kept)
        fee, held = plan.fee(len(coins), with_change=False), sum(coin.amount for coin in coins)
        if held <= fee:
            raise InsufficientFunds(f"The vault's coins are {held} sat, and their fee alone is {fee} sat.")
        whole = intent.of_everything(Sats(held - fee))
        selection = Selection(tuple(coins), Sats(0), fee)
        draft = self._build(db, vault, whole, plan, quote, selection, kept)
        return whole, draft.distinct(db, quote.tip.height) if distinct else draft

    def spending(
        self, db: Session, vault: VaultRow, intent: Intent, rate: FeeRate, quote: Quote, named: NamedCoins
    ) -> tuple[Intent, Draft]:
        """A payment from exactly these coins, as a transaction that no proposal has yet; a sweep sends their
        sum less the fee. Raises InsufficientFunds, Dust, Invalid.
        """
        plan = plan_of(policy_of(vault), intent, rate)
        held = sum(utxo.amount for utxo in named.coins)
        most = max(0, held - plan.fee(len(named.coins), with_change=False))
        if intent.sweeps and most:
            intent = intent.of_everything(Sats(most))
        selection = settle(named.coins, replace(plan, target=intent.total)) if most else None
        if selection is None:
            raise InsufficientFunds(
                f"The named coins are {held} sat: {intent.total} sat and the fee are more. At most "
                f"{most} sat can be sent from them.",
                figures={"maximum_sats": most},
            )
        try:
            draft = self._build(db, vault, intent, plan, quote, selection, named.kept)
        except PsbtTooLarge as error:
            sentence = f"These coins and their previous transactions are more than a device takes: {error}"
            raise Invalid.at("/coins", sentence, error.code) from error
        return intent, draft.distinct(db, quote.tip.height)

    def cheapest(
        self, db: Session, vault: VaultRow, intent: Intent, rate: FeeRate, quote: Quote
    ) -> Draft | None:
        """The payment at the lowest fee, as a transaction that no proposal has yet; None where the coins do
        not suffice.
        """
        plan = plan_of(policy_of(vault), intent, rate)
        kept = kept_for_tokens(db, vault, quote.tip.height, intent.outputs)
        selection = select_cheapest(largest_that_fit(db, vault, intent, plan, quote, kept), plan)
        if selection is None:
            return None
        draft = self._build(db, vault, intent, plan, quote, selection, kept)
        return draft.distinct(db, quote.tip.height)

    def _build(
        self,
        db: Session,
        vault: VaultRow,
        intent: Intent,
        plan: Plan,
        quote: Quote,
        selection: Selection[Utxo],
        kept: Utxo | None,
    ) -> Draft:
        require_sane_fee(selection)
        vsize = plan.vsize(len(selection.coins), selection.change > 0)
        require_taken_by_nodes(db, vault.chain, selection.coins, vsize)
        parts = Parts(
            policy_of(vault),
            tuple(coins_to_spend(db, vault.chain, selection.coins)),
            self._outputs(intent.outputs, selection, vault.next_change_index),
            choose_locktime(quote.tip.height, self._clock().timestamp() - quote.tip.time, self._rng),
        )
        return Draft(parts.build(), selection, vsize, parts, kept)

    def _outputs(
        self, outputs: Sequence[TxOut], selection: Selection[Utxo], change_index: int
    ) -> tuple[TxOut | ChangeTo, ...]:
        """The change goes to a random position, so that the position does not reveal it."""
        placed: list[TxOut | ChangeTo] = list(outputs)
        if selection.change:
            place = self._rng.randrange(len(placed) + 1)
            placed.insert(place, ChangeTo(selection.change, CHANGE, change_index))
        return tuple(placed)


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


_Choice = tuple[list[Utxo], Selection[Utxo]]


def choose_coins(db: Session, source: SpendableCoins, plan: Plan, rng: RandomSource) -> _Choice:
    """The pool and the selection from it. Raises LockedFunds, InsufficientFunds."""
    found = _try_to_choose(db, source, plan, rng, None)
    if found is None:
        raise _too_little(db, source, plan)
    return found


def _choose(db: Session, source: SpendableCoins, plan: Plan, rng: RandomSource, kept: Utxo | None) -> _Choice:
    """Avoids the coins at the vault's address where possible, and never takes ``kept``."""
    if kept is None:
        return choose_coins(db, source, plan, rng)
    found = _try_to_choose(db, replace(source, avoids_address=True), plan, rng, kept)
    found = found or _try_to_choose(db, source, plan, rng, kept)
    if found is not None:
        return found
    choose_coins(db, source, plan, rng)
    raise InsufficientFunds(
        f"{plan.target} sat and the fee can only be paid with {kept.outpoint}, the coin of {kept.amount} "
        "sat that the vault keeps at its address for its tokens. Send less, or pay something back to that "
        "address in the same send."
    )


def _try_to_choose(
    db: Session, source: SpendableCoins, plan: Plan, rng: RandomSource, kept: Utxo | None
) -> _Choice | None:
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


def require_sane_fee(selection: Selection[Utxo], pointer: str = "/fee_rate") -> None:
    if selection.fee > MAX_FEE:
        sentence = f"The fee of {selection.fee} sat is above the cap of {MAX_FEE} sat."
        raise Invalid.at(pointer, sentence, "fee-too-high")


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


def _nothing_to_sweep(
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
