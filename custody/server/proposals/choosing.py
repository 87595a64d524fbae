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

from custody.common.text import amount, btc, count
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
from custody.server.proposals import bounds
from custody.server.proposals.coins import (
    SpendableCoins,
    Tally,
    Utxo,
    coins_to_spend,
    kept_for_tokens,
    size_of_previous,
    token_coins,
)
from custody.server.proposals.lifecycle import IS_INPUT, holds_coins_clause
from custody.server.proposals.payments import Intent, read_rate, read_recipients
from custody.server.proposals.records import rate_text
from custody.server.proposals.seeing import holders_words
from custody.server.rules.fees import MAX_FEE
from custody.server.rules.selection import (
    BY_PLACE,
    MAX_INPUTS,
    SEQUENCE,
    Plan,
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
from custody.server.store import models
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
    models.ProposalRow.id,
    models.ProposalRow.family_id,
    models.ProposalRow.txid_expected,
    models.ProposalRow.fee_sats,
    models.ProposalRow.fee_rate_sat_per_kvb,
).where(models.ProposalRow.block_height.is_(None))


@dataclass(frozen=True)
class Purse:
    """A vault's coins for an intent, at a rate and a tip."""

    ctx: Ctx
    vault: models.VaultRow
    intent: Intent
    rate: FeeRate
    tip_height: int

    @cached_property
    def plan(self) -> Plan:
        return plan_of(policy_of(self.vault), self.intent, self.rate)

    @cached_property
    def kept(self) -> Utxo | None:
        """The coin that stays for the vault's tokens."""
        db, now = self.ctx.db, self.ctx.now
        return kept_for_tokens(db, self.vault, self.tip_height, self.intent.outputs, now)

    @property
    def coins(self) -> SpendableCoins:
        return SpendableCoins(self.vault.id, self.tip_height, now=self.ctx.now)

    @cached_property
    def tally(self) -> Tally:
        return self.coins.tally(self.ctx.db, self.plan, self.kept)

    def at_address(self, *, locked: bool = False) -> list[Utxo]:
        return token_coins(self.ctx.db, self.vault, self.tip_height, self.ctx.now, locked=locked)

    @property
    def holders(self) -> str:
        return holders_words(self.ctx, self.vault.id)

    @cached_property
    def beside(self) -> str:
        """What of the vault's coins is not free, and why, in brackets behind a sum."""
        tally = self.tally
        coins_aside = count(tally.coins_aside, "coin", "coins")
        parts = {
            f"locked by {self.holders}" if tally.held else "": tally.held,
            "not spendable yet": tally.waiting,
            "in coins below their own fee": tally.small,
            "kept for its tokens": tally.kept,
            f"in {coins_aside} set aside, to be spent once released": tally.aside,
        }
        words = ", ".join(f"{sats:,} sats {what}" for what, sats in parts.items() if sats)
        return f" (beside {words})" if words else ""

    def drawn(self) -> tuple[list[Utxo], Selection[Utxo]]:
        """Coins to choose from, and the choice. Where one is kept, never takes that one, and takes others at
        the vault's address only where no other coins suffice; but before unconfirmed ones, which nodes may
        refuse. Raises LockedFunds, InsufficientFunds.
        """
        source, kept, plan = self.coins, self.kept, self.plan
        pools = (source,) if kept is None else (replace(source, avoids_address=True), source)
        for tiers in ((Tier.DEEP, Tier.CONFIRMED), (Tier.OWN_UNCONFIRMED,)):
            for each in pools:
                if chosen := self._try_to_draw(each, kept, tiers):
                    return chosen
        if kept is None or self._try_to_draw(source, None, Tier) is None:
            raise self._too_little()
        raise InsufficientFunds(
            f"{amount(plan.target)} and the fee can only be paid with {kept.outpoint}, the coin of "
            f"{amount(kept.amount)} that the vault keeps at its address for its tokens. Send less, or pay "
            "something back to that address in the same send."
        )

    def _try_to_draw(
        self, source: SpendableCoins, kept: Utxo | None, tiers: Iterable[Tier]
    ) -> tuple[list[Utxo], Selection[Utxo]] | None:
        for tier in tiers:
            pool = _without(kept, source.pool(self.ctx.db, tier, self.plan))
            selection = select_from(pool, self.plan, self.ctx.tools.rng)
            if selection is not None:
                return pool, selection
        return None

    def _too_little(self) -> LockedFunds | InsufficientFunds:
        plan, spendable = self.plan, self.tally.free
        everything = self.coins.pool(self.ctx.db, Tier.OWN_UNCONFIRMED, plan, with_locked=True)
        if select_fewest(everything, plan) is not None:
            return LockedFunds(f"The coins for {amount(plan.target)} are locked by {self.holders}.")
        if spendable < plan.target:
            return InsufficientFunds(
                f"{amount(plan.target)} and the fee are more than the {amount(spendable)} that can be spent; "
                "unconfirmed deposits and coins that are set aside do not count."
            )
        return InsufficientFunds(
            f"{amount(plan.target)} and the fee are more than one transaction can spend of the "
            f"{amount(spendable)} in the vault: it takes at most {MAX_INPUTS} coins, and none that is worth "
            "less than its fee."
        )

    @cached_property
    def together(self) -> tuple[Sequence[Utxo], Sequence[Utxo]]:
        """The vault's largest coins except ``kept``, as many as one transaction can spend within the limits
        of inputs and fee; and the same, or where nodes would not take them together, of the confirmed ones.
        """
        db, plan = self.ctx.db, self.plan
        pool = _without(self.kept, self.coins.pool(db, Tier.OWN_UNCONFIRMED, plan))
        coins = spent_at_once(economic(pool, plan), plan, MAX_FEE)
        if is_taken_by_nodes(db, self.vault.chain, coins, plan.vsize(len(coins), True)):  # noqa: FBT003 - the shape Plan asks for
            return coins, coins
        confirmed = [coin for coin in pool if coin.height is not None]
        return coins, spent_at_once(economic(confirmed, plan), plan, MAX_FEE)

    def largest_that_fit(self) -> Sequence[Utxo]:
        """Those that nodes take together, as many as fit into a PSBT."""
        _, coins = self.together
        # Surely within the limit, without building it. Two more maps: the change output and the global map.
        maps = len(coins) + len(self.intent.outputs) + 2
        previous = size_of_previous(self.ctx.db, self.vault.chain, coins)
        if maps * LARGEST_MAP + previous < PsbtLimits().max_bytes:
            return coins
        spent = coins_to_spend(self.ctx.db, self.vault.chain, coins)
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
        require_taken_by_nodes(self.ctx.db, self.vault.chain, everything, vsize)
        pool = self.coins.pool(self.ctx.db, Tier.OWN_UNCONFIRMED, self.plan, with_locked=True)
        if _without(self.kept, pool):
            raise LockedFunds(f"Every coin that could be sent is locked by {self.holders}.")
        raise InsufficientFunds(f"The vault has no coin to send{self.beside}.")


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
        spends_one = select(models.ProposalInputRow.proposal_id).where(models.ProposalInputRow.txid.in_(new))
        for which in (
            models.ProposalRow.txid_expected.in_(new),
            models.ProposalRow.id.in_(spends_one) & holds_coins_clause(),
        ):
            for each in db.execute(_COLUMNS.where(which)):
                # The rate is rounded down, so this is its size or a little more.
                size = each.fee_sats * 1000 // max(1, each.fee_rate_sat_per_kvb)
                sizes[each.family_id] = max(size, sizes.get(each.family_id, 0))
                ids.add(each.id)
                txids.add(each.txid_expected)
        sizes |= dict.fromkeys(new - txids, 0)
        seen |= new
        unconfirmed = models.ChainCoinRow.chain == chain, models.ChainCoinRow.height.is_(None)
        parents = select(models.ChainCoinRow.txid).join(models.ProposalInputRow, IS_INPUT).where(*unconfirmed)
        new = (txids | set(db.scalars(parents.where(models.ProposalInputRow.proposal_id.in_(ids))))) - seen
    return len(sizes) < MAX_TOGETHER and sum(sizes.values()) + vsize <= MAX_TOGETHER_VSIZE


@serves(MAX_SEND)
def max_send(ctx: Ctx, query: MaxSendQuery) -> MaxSend:
    """`create_psbt` accepts this amount, and refuses one satoshi more. Raises NotFound (vault), Invalid,
    WrongNetworkAddress, VaultFrozen, NotInAddressBook, TooFewSigners, ChainUnavailable, PolicyUnavailable,
    StateConflict (the vault is replaced, or its coins cannot be).
    """
    vault = bounds.vault_to_spend(ctx.db, ctx.access, query.wallet_id)
    intent = read_recipients(query, Network(vault.chain))
    scripts = {output.script_pubkey for output in intent.outputs}
    bounds.require_move(ctx.db, vault, scripts)
    bounds.require_scripts_listed(
        ctx.db, vault, {payment.output.script_pubkey for payment in intent.payments}
    )
    bounds.require_signers(ctx.db, vault, scripts, ctx.caller.user_id)
    quote = ctx.tools.market.quote(vault.chain)
    purse = Purse(ctx, vault, intent, read_rate(query, quote), quote.tip.height)
    return most_sendable(ctx, purse, quote)


def most_sendable(ctx: Ctx, purse: Purse, quote: Quote) -> MaxSend:
    """Ignores the amounts of the intent. Raises PolicyUnavailable; StateConflict where the coins on record
    cannot be.
    """
    db, vault, intent, plan = ctx.db, purse.vault, purse.intent, purse.plan
    coins = purse.largest_that_fit()
    tally = purse.tally
    is_whole = sum(coin.amount for coin in coins) == tally.free
    bound_by: Bound = "coins" if is_whole else "transaction"
    if not is_whole:
        everything, taken = purse.together
        bound_by = "transaction" if everything is taken else "nodes"
    amount, left = most_of(coins, plan), room(ctx, vault)
    own = own_scripts(db, vault, intent)
    if bounds.is_move(db, vault, {payment.output.script_pubkey for payment in intent.payments}):
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
        is_dust = bool(coins) and bound_by in {"coins", "transaction"}
        amount, bound_by = Sats(0), "dust" if is_dust else bound_by
    if max(amount, *tally) > MAX_MONEY:
        raise StateConflict(f"The coins of this vault are more than all bitcoin. {WHY}")
    inputs = 0 if selection is None else len(selection.coins)
    return MaxSend(
        amount_sats=amount,
        fee_sats=Sats(0) if selection is None else selection.fee,
        fee_rate=rate_text(purse.rate),
        inputs=inputs,
        bound_by=bound_by,
        words=f"At most {amount:,} sats can be sent now: {_why(bound_by, purse, inputs)}.",
        free_sats=tally.free,
        locked_sats=tally.held,
        waiting_sats=tally.waiting,
        too_small_sats=tally.small,
        kept_sats=tally.kept,
        set_aside_sats=tally.aside,
        role_left_sats=left.role,
        vault_left_sats=left.vault,
        least_rate=rate_text(quote.floor),
        priority_rates={priority: rate_text(quote.rates[priority]) for priority in get_args(Priority)},
    )


def _why(bound_by: Bound, purse: Purse, inputs: int) -> str:
    free = purse.tally.free
    match bound_by:
        case "coins":
            held, *others = purse.tally[1:-1]
            if free:
                words = f"all coins that are free, {free:,} sats{purse.beside}, less their fee"
            elif held and not any(others):
                who = f"locked by {purse.holders}. Have that signed, or cancel it, first"
                words = f"all {btc(held)} BTC are {who}"
            else:
                words = f"nothing is free{purse.beside}"
            return words
        case "transaction":
            return f"one transaction takes {inputs} of the coins"
        case "nodes":
            return f"{WAITS_FOR_A_BLOCK}: wait for the next block"
        case "role-limit":
            return "with the fee, your role's limit on all your payments leaves no more"
        case "vault-limit":
            return "with the fee, the vault's limit lets no more through"
        case "dust":
            return f"the {free:,} sats that are free{purse.beside} leave nothing above dust"


def own_scripts(db: Session, vault: models.VaultRow, intent: Intent) -> set[bytes]:
    """The vault's own scripts among the recipients: what is paid to them does not count for limits."""
    scripts = [payment.output.script_pubkey for payment in intent.payments]
    return bounds.watched(db, vault.chain, scripts, models.WatchedScriptRow.vault_id == vault.id)
