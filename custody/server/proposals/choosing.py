"""What a vault can pay an intent with: coins drawn at random, all that one transaction takes, and the most
that can be sent; and what nodes would take beside the unconfirmed transactions that it hangs together with.
Everything here only reads.

Bitcoin Core before release 31 takes 25 ancestors and 25 descendants of each (the transaction included), of
101 kvB together; release 31 takes 64 transactions of 101 kvB that hang together in any way. What is within 25
and 101 kvB in any way is taken by both.
"""

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property
from typing import NoReturn, get_args

from sqlalchemy import select
from sqlalchemy.orm import Session

from custody.schemas.common import Priority
from custody.schemas.sending import (
    MAX_SEND,
    Bound,
    MaxSend,
    MaxSendQuery,
)
from custody.server.calls import Ctx, serves
from custody.server.errors import InsufficientFunds, LockedFunds, StateConflict
from custody.server.limits.calls import room
from custody.server.network.backends import Quote
from custody.server.proposals.bounds import (
    is_move,
    require_move,
    require_scripts_listed,
    require_signers,
    vault_to_spend,
    watched,
)
from custody.server.proposals.coins import (
    SpendableCoins,
    Tally,
    Utxo,
    coins_to_spend,
    kept_for_tokens,
    size_of_previous,
)
from custody.server.proposals.lifecycle import IS_INPUT, holds_coins_clause
from custody.server.proposals.payments import Intent, read_rate, read_recipients
from custody.server.proposals.records import rate_text
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
    most_of,
    select_cheapest,
    select_fewest,
    select_from,
    spent_at_once,
)
from custody.server.shown import WHY
from custody.server.store.models import (
    ChainCoinRow,
    ProposalInputRow,
    ProposalRow,
    VaultRow,
    WatchedScriptRow,
)
from custody.server.vaults.stored import policy_of
from multisig import (
    CHANGE,
    MAX_MONEY,
    FeeRate,
    Network,
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


@dataclass(frozen=True)
class Purse:
    """A vault's coins for an intent, at a rate and a tip."""

    db: Session
    vault: VaultRow
    intent: Intent
    rate: FeeRate
    tip_height: int

    @cached_property
    def plan(self) -> Plan:
        return plan_of(policy_of(self.vault), self.intent, self.rate)

    @cached_property
    def kept(self) -> Utxo | None:
        """The coin that stays for the vault's tokens."""
        return kept_for_tokens(self.db, self.vault, self.tip_height, self.intent.outputs)

    @property
    def coins(self) -> SpendableCoins:
        return SpendableCoins(self.vault.id, self.tip_height)

    @cached_property
    def together(self) -> tuple[Sequence[Utxo], Sequence[Utxo]]:
        """The vault's largest coins except ``kept``, as many as one transaction can spend within the limits
        of inputs and fee; and the same, or where nodes would not take them together, of the confirmed ones.
        """
        pool, plan = _without(self.kept, self.coins.pool(self.db, Tier.OWN_UNCONFIRMED, self.plan)), self.plan
        coins = spent_at_once(economic(pool, plan), plan, MAX_FEE)
        if is_taken_by_nodes(self.db, self.vault.chain, coins, plan.vsize(len(coins), True)):  # noqa: FBT003 - the shape Plan asks for
            return coins, coins
        confirmed = [coin for coin in pool if coin.height is not None]
        return coins, spent_at_once(economic(confirmed, plan), plan, MAX_FEE)

    def largest_that_fit(self) -> Sequence[Utxo]:
        """Those that nodes take together, as many as fit into a PSBT."""
        _, coins = self.together
        # Surely within the limit, without building it. Two more maps: the change output and the global map.
        maps = len(coins) + len(self.intent.outputs) + 2
        previous = size_of_previous(self.db, self.vault.chain, coins)
        if maps * LARGEST_MAP + previous < PsbtLimits().max_bytes:
            return coins
        spent = coins_to_spend(self.db, self.vault.chain, coins)
        # The amounts do not change a PSBT's size.
        outputs = tuple(replace(output, amount=Sats(0)) for output in self.intent.outputs)

        def is_too_large(count: int) -> bool:
            try:
                built_psbt(policy_of(self.vault), tuple(spent[:count]), outputs, 0, SEQUENCE)
            except PsbtTooLarge:
                return True
            return False

        if not coins or not is_too_large(len(coins)):
            return coins
        return coins[: bisect_left(range(1, len(coins)), True, key=is_too_large)]  # noqa: FBT003 - what it finds

    def refuse_to_sweep(self) -> NoReturn:
        """Says why there is nothing to sweep: raises StateConflict, LockedFunds, InsufficientFunds."""
        everything, _ = self.together
        vsize = self.plan.vsize(len(everything), True)  # noqa: FBT003 - the shape Plan asks for
        require_taken_by_nodes(self.db, self.vault.chain, everything, vsize)
        pool = self.coins.pool(self.db, Tier.OWN_UNCONFIRMED, self.plan, with_locked=True)
        if _without(self.kept, pool):
            raise LockedFunds("Every coin that could be sent is locked by other proposals.")
        raise InsufficientFunds(
            "The vault has no coin to send; unconfirmed deposits, coins below their own fee and the coin for "
            "its tokens do not count."
        )


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
        pool = _without(kept, source.pool(db, tier, plan))
        selection = select_from(pool, plan, rng)
        if selection is not None:
            return pool, selection
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
    spendable = source.tally(db, plan, None).free
    if spendable < plan.target:
        return InsufficientFunds(
            f"{plan.target} sat and the fee are more than the {spendable} sat that can be spent; unconfirmed "
            "deposits do not count."
        )
    return InsufficientFunds(
        f"{plan.target} sat and the fee are more than one transaction can spend of the {spendable} sat in "
        f"the vault: it takes at most {MAX_INPUTS} coins, and none that is worth less than its fee."
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
        unconfirmed = ChainCoinRow.chain == chain, ChainCoinRow.height.is_(None)
        parents = select(ChainCoinRow.txid).join(ProposalInputRow, IS_INPUT).where(*unconfirmed)
        new = (txids | set(db.scalars(parents.where(ProposalInputRow.proposal_id.in_(ids))))) - seen
    return len(sizes) < MAX_TOGETHER and sum(sizes.values()) + vsize <= MAX_TOGETHER_VSIZE


@serves(MAX_SEND)
def max_send(ctx: Ctx, query: MaxSendQuery) -> MaxSend:
    """`create_psbt` accepts this amount, and refuses one satoshi more. Raises NotFound (vault), Invalid,
    WrongNetworkAddress, VaultFrozen, NotInAddressBook, TooFewSigners, ChainUnavailable, PolicyUnavailable,
    StateConflict (the vault is replaced, or its coins cannot be).
    """
    vault = vault_to_spend(ctx.db, ctx.access, query.wallet_id)
    intent = read_recipients(query, Network(vault.chain))
    scripts = {output.script_pubkey for output in intent.outputs}
    require_move(ctx.db, vault, scripts)
    require_scripts_listed(ctx.db, vault, {payment.output.script_pubkey for payment in intent.payments})
    require_signers(ctx.db, vault, scripts, ctx.caller.user_id)
    quote = ctx.tools.market.quote(vault.chain)
    return most_sendable(ctx, Purse(ctx.db, vault, intent, read_rate(query, quote), quote.tip.height), quote)


def most_sendable(ctx: Ctx, purse: Purse, quote: Quote) -> MaxSend:
    """Ignores the amounts of the intent. Raises PolicyUnavailable; StateConflict where the coins on record
    cannot be.
    """
    db, vault, intent, plan = ctx.db, purse.vault, purse.intent, purse.plan
    coins = purse.largest_that_fit()
    tally = purse.coins.tally(db, plan, purse.kept)
    is_whole = sum(coin.amount for coin in coins) == tally.free
    bound_by: Bound = "coins" if is_whole else "transaction"
    if not is_whole:
        everything, taken = purse.together
        bound_by = "transaction" if everything is taken else "nodes"
    amount, left = most_of(coins, plan), room(ctx, vault)
    own = own_scripts(db, vault, intent)
    if is_move(db, vault, {payment.output.script_pubkey for payment in intent.payments}):
        limited = amount
    elif all(payment.output.script_pubkey in own for payment in intent.payments):
        # Of a payment to the vault itself the fee alone counts.
        limited = most_of(spent_at_once(coins, plan, left.least), plan)
    else:
        limited = most_of(coins, plan, left.least)
    if limited < amount:
        amount, bound_by = limited, "role-limit" if left.role < left.vault else "vault-limit"
    dust = sum(dust_threshold(payment.output.script_pubkey) for payment in intent.payments)
    selection = select_cheapest(coins, replace(plan, target=amount)) if amount >= dust else None
    if selection is None:
        amount, bound_by = Sats(0), "dust" if bound_by in {"coins", "transaction"} else bound_by
    if max(amount, *tally) > MAX_MONEY:
        raise StateConflict(f"The coins of this vault are more than all bitcoin. {WHY}")
    inputs = 0 if selection is None else len(selection.coins)
    return MaxSend(
        amount_sats=amount,
        fee_sats=Sats(0) if selection is None else selection.fee,
        fee_rate=rate_text(purse.rate),
        inputs=inputs,
        bound_by=bound_by,
        words=f"At most {amount} sat can be sent now: {_why(bound_by, tally, inputs)}.",
        free_sats=tally.free,
        reserved_sats=tally.held,
        waiting_sats=tally.waiting,
        too_small_sats=tally.small,
        kept_sats=tally.kept,
        role_left_sats=left.role,
        vault_left_sats=left.vault,
        priority_rates={priority: rate_text(quote.rates[priority]) for priority in get_args(Priority)},
    )


def _why(bound_by: Bound, tally: Tally, inputs: int) -> str:
    parts = {
        "held by proposals": tally.held,
        "not spendable yet": tally.waiting,
        "in coins below their own fee": tally.small,
        "kept for its tokens": tally.kept,
    }
    parts_words = [f"{sats} sat {what}" for what, sats in parts.items() if sats]
    beside = f" (beside {', '.join(parts_words)})" if parts_words else ""
    match bound_by:
        case "coins":
            return f"all coins that are free, {tally.free} sat{beside}, less their fee"
        case "transaction":
            return f"one transaction takes {inputs} of the coins"
        case "nodes":
            return f"{WAITS_FOR_A_BLOCK}: wait for the next block"
        case "role-limit":
            return "with the fee, your role's limit on all your payments leaves no more"
        case "vault-limit":
            return "with the fee, the vault's limit lets no more through"
        case "dust":
            return f"the {tally.free} sat that are free{beside} leave nothing above dust"


def own_scripts(db: Session, vault: VaultRow, intent: Intent) -> set[bytes]:
    """The vault's own scripts among the recipients: what is paid to them does not count for limits."""
    scripts = [payment.output.script_pubkey for payment in intent.payments]
    return watched(db, vault.chain, scripts, WatchedScriptRow.vault_id == vault.id)
