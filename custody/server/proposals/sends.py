"""Sends: a payment of a vault's coins, drawn, named, or all of them."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property

from custody.schemas.proposals import CreatePsbtRequest, TxType
from custody.server.calls import Ctx
from custody.server.errors import InsufficientFunds, LockedFunds
from custody.server.limits.limits import OutgoingAmount, require
from custody.server.network.backends import Quote
from custody.server.proposals.bounds import require_move, vault_to_spend
from custody.server.proposals.coins import SpendableCoins, Utxo, kept_for_tokens
from custody.server.proposals.drafting import (
    choose,
    largest_that_fit,
    nothing_to_sweep,
    plan_of,
    taken_together,
)
from custody.server.proposals.drafts import Funding, Order
from custody.server.proposals.maximum import most_of_intent, own_scripts
from custody.server.proposals.mempools import require_taken_by_nodes
from custody.server.proposals.payments import Intent, named_coins, read_intent, read_rate
from custody.server.rules.fees import MAX_FEE
from custody.server.rules.selection import Plan, Selection, select_cheapest, select_fewest, settle
from custody.server.store.models import VaultRow
from custody.server.vaults.stored import derive_ahead, policy_of
from multisig import Network, Sats


def send(ctx: Ctx, request: CreatePsbtRequest) -> Order:
    """Raises NotFound (vault), Invalid, WrongNetworkAddress, Dust, VaultFrozen; StateConflict and
    TooFewSigners (the vault is replaced). Funding it raises LockedFunds, InsufficientFunds, and
    RoleLimitExceeded and VaultLimitExceeded where it exceeds a limit without any fee.
    """
    vault = vault_to_spend(ctx.db, ctx.access, request.wallet_id)
    intent = read_intent(request, Network(vault.chain))
    require_move(ctx.db, vault, {output.script_pubkey for output in intent.outputs})
    derive_ahead(vault)
    funds = _Funds(ctx, vault, request, intent)
    if request.coins is not None:
        fund, cheapest = funds.named, None
    elif intent.sweeps:
        fund, cheapest = funds.everything, None
    else:
        fund, cheapest = funds.drawn, funds.cheapest
    return Order(
        TxType.SEND,
        vault.id,
        vault.chain,
        policy_of(vault),
        intent,
        fund,
        cheapest,
        description=request.description,
        contract_ids=tuple(request.contract_ids or ()),
        size_at="/amounts_sats" if request.coins is None else "/coins",
    )


@dataclass(frozen=True)
class _Funds:
    """The ways to fund one payment."""

    ctx: Ctx
    vault: VaultRow
    request: CreatePsbtRequest
    intent: Intent

    def drawn(self, quote: Quote) -> Iterator[Funding]:
        """Random coins of the safest tier that suffices; and the fewest."""
        plan, kept = self._plan(quote), self._kept(quote)
        source = SpendableCoins(self.vault.id, quote.tip.height)
        try:
            pool, selection = choose(self.ctx.db, source, plan, self.ctx.tools.rng, kept)
        except (InsufficientFunds, LockedFunds) as error:
            self._require_least(plan)
            if not self.intent.payments:
                raise
            most = most_of_intent(self.ctx, self.vault, self.intent, plan.rate, quote)
            sentence = f"{error.detail} {most.in_words}"
            raise type(error)(sentence, figures={"maximum_sats": int(most.amount)}) from error
        least = self._least(plan)
        if selection.fee <= MAX_FEE:
            yield self.of(plan, selection, kept, least)
        yield self.of(plan, select_fewest(pool, plan) or selection, kept, least)

    def cheapest(self, quote: Quote) -> Iterator[Funding]:
        """The coins with the lowest fee, where they suffice."""
        plan, kept = self._plan(quote), self._kept(quote)
        coins = largest_that_fit(self.ctx.db, self.vault, self.intent, plan, quote, kept)
        selection = select_cheapest(coins, plan)
        if selection is not None:
            yield self.of(plan, selection, kept)

    def everything(self, quote: Quote) -> Iterator[Funding]:
        """All that can be spent, less the fee. Of more coins than a transaction takes, the largest; without
        uneconomic coins and the one for the vault's tokens.
        """
        db, plan, kept = self.ctx.db, self._plan(quote), self._kept(quote)
        coins = largest_that_fit(db, self.vault, self.intent, plan, quote, kept)
        if not coins:
            everything, _ = taken_together(db, self.vault, plan, quote, kept)
            vsize = plan.vsize(len(everything), True)  # noqa: FBT003 - the shape Plan asks for
            require_taken_by_nodes(db, self.vault.chain, everything, vsize)
            source = SpendableCoins(self.vault.id, quote.tip.height)
            raise nothing_to_sweep(db, source, plan, kept)
        fee, held = plan.fee(len(coins), with_change=False), sum(coin.amount for coin in coins)
        if held <= fee:
            raise InsufficientFunds(f"The vault's coins are {held} sat, and their fee alone is {fee} sat.")
        whole = replace(self, intent=self.intent.of_everything(Sats(held - fee)))
        yield whole.of(plan, Selection(tuple(coins), Sats(0), fee), kept)

    def named(self, quote: Quote) -> Iterator[Funding]:
        """Exactly the coins that are named; a sweep sends their sum less the fee."""
        assert self.request.coins is not None, "the request names coins"
        plan, intent = self._plan(quote), self.intent
        coins, kept = named_coins(
            self.ctx.db, self.vault, self.request.coins, quote.tip.height, self.intent.outputs
        )
        held = sum(utxo.amount for utxo in coins)
        most = max(0, held - plan.fee(len(coins), with_change=False))
        if intent.sweeps and most:
            intent = intent.of_everything(Sats(most))
        selection = settle(coins, replace(plan, target=intent.total)) if most else None
        if selection is None:
            raise InsufficientFunds(
                f"The named coins are {held} sat: {intent.total} sat and the fee are more. At most "
                f"{most} sat can be sent from them.",
                figures={"maximum_sats": most},
            )
        yield replace(self, intent=intent).of(plan, selection, kept)

    def _plan(self, quote: Quote) -> Plan:
        return plan_of(policy_of(self.vault), self.intent, read_rate(self.request, quote))

    def _kept(self, quote: Quote) -> Utxo | None:
        return kept_for_tokens(self.ctx.db, self.vault, quote.tip.height, self.intent.outputs)

    def of(
        self, plan: Plan, selection: Selection[Utxo], kept: Utxo | None, least: Sats | None = None
    ) -> Funding:
        coins = selection.coins
        vsize = plan.vsize(len(coins), selection.change > 0)
        return Funding(self.intent, selection, vsize, plan.rate, self.paid, coins, kept, least)

    def _require_least(self, plan: Plan) -> None:
        """Raises RoleLimitExceeded, VaultLimitExceeded where no coins fit a limit."""
        require(self.ctx, self.vault, OutgoingAmount(self._least(plan), self.ctx.now))

    def _least(self, plan: Plan) -> Sats:
        """The movement with the lowest possible fee, that of one coin."""
        return Sats(self.paid + plan.fee(1, with_change=False))

    @cached_property
    def paid(self) -> Sats:
        """The amount without payments to the vault itself."""
        own = own_scripts(self.ctx.db, self.vault, self.intent)
        payments = (payment.output for payment in self.intent.payments)
        return Sats(sum(output.amount for output in payments if output.script_pubkey not in own))
