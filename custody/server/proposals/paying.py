"""Proposing a payment of a vault's coins, drawn, named, or all of them, or a version that takes another's
place; what it would be; and sending all that a replaced vault holds.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property, partial

from custody.schemas import proposals as wire
from custody.schemas.sending import (
    SWEEP_VAULT,
    SweepVaultRequest,
    SweptVault,
)
from custody.server.calls import Ctx, In, Invocation, Steps, run, serves, serves_in_parts
from custody.server.errors import Dust, InsufficientFunds, LockedFunds, StateConflict
from custody.server.limits.calls import require_in_limits
from custody.server.limits.stored import OutgoingAmount
from custody.server.network.backends import Quote
from custody.server.proposals.bounds import (
    require_move,
    vault_to_spend,
)
from custody.server.proposals.choosing import Purse, most_sendable, own_scripts
from custody.server.proposals.coins import Utxo
from custody.server.proposals.drafts import Funding, Order
from custody.server.proposals.payments import Intent, named_coins, read_intent, read_rate
from custody.server.proposals.propose import preview, propose
from custody.server.proposals.versions import version
from custody.server.rules.audit import Category, Event
from custody.server.rules.fees import MAX_FEE
from custody.server.rules.selection import Selection, select_cheapest, select_fewest, settle
from custody.server.store.models import VaultRow
from custody.server.vaults.stored import balances_of, policy_of, replacement_of
from multisig import Network, Sats

# Proposals of one sweep-vault: a bound on the work of a call.
MAX_SWEEPS = 20
PROPOSED = Event(
    "PROPOSAL_CREATED",
    "proposed the payment {proposal} from the vault {vault}[ to {paid}]: {sats} with the fee // tx {txid}",
    Category.PROPOSALS,
)
REPLACING = Event(
    "PROPOSAL_CREATED",
    "proposed a newer version of the proposal {older_proposal}, of the vault {vault}[ to {paid}]: {sats}"
    " // proposal {proposal}, tx {txid}",
    Category.PROPOSALS,
)
TAKING_BACK = Event(
    "PROPOSAL_CREATED",
    "proposed to take back the proposal {lost_proposal} from the vault {vault}"
    " // proposal {proposal}, {sats}, tx {txid}",
    Category.PROPOSALS,
)


@serves_in_parts(wire.CREATE_PSBT)
def create_psbt(ctx: Ctx, request: wire.CreatePsbtRequest) -> Steps[wire.CreatePsbtResponse]:
    proposed = yield from propose(ctx, partial(_order, request))
    row = proposed.row
    # A move into the vault that takes this one's place counts for no limit, and moves all the same.
    sats = row.movement_sats or sum(row.amounts_sats) + row.fee_sats
    if request.cancel:
        proposed.announce(TAKING_BACK, sats=sats, lost_proposal=request.cancels_psbt_id)
    elif request.replaces_psbt_id is not None:
        proposed.announce(REPLACING, sats=sats, older_proposal=request.replaces_psbt_id)
    else:
        proposed.announce(PROPOSED, sats=sats)
    return wire.CreatePsbtResponse(psbt_id=proposed.row.id, psbt_base64=proposed.base64)


def _order(request: wire.CreatePsbtRequest, ctx: Ctx) -> Order:
    is_version = request.cancel or request.replaces_psbt_id is not None
    return version(ctx, request) if is_version else send(ctx, request)


@serves(wire.PREVIEW_PSBT)
def preview_psbt(ctx: Ctx, request: wire.CreatePsbtRequest) -> wire.PsbtPreview:
    """The same draft and the same checks. Raises what `create_psbt` would."""
    return preview(ctx, _order(request, ctx))


def send(ctx: Ctx, request: wire.CreatePsbtRequest) -> Order:
    """Raises NotFound (vault), Invalid, WrongNetworkAddress, Dust, VaultFrozen; StateConflict and
    TooFewSigners (the vault is replaced). Funding it raises LockedFunds, InsufficientFunds, and
    RoleLimitExceeded and VaultLimitExceeded where it exceeds a limit without any fee.
    """
    vault = vault_to_spend(ctx.db, ctx.access, request.wallet_id)
    intent = read_intent(request, Network(vault.chain))
    require_move(ctx.db, vault, {output.script_pubkey for output in intent.outputs})
    funds = _Funds(ctx, vault, request, intent)
    if request.coins is not None:
        fund, cheapest = funds.named, None
    elif intent.sweeps:
        fund, cheapest = funds.everything, None
    else:
        fund, cheapest = funds.drawn, funds.cheapest
    return Order(
        wire.TxType.SEND,
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
    request: wire.CreatePsbtRequest
    intent: Intent

    def drawn(self, quote: Quote) -> Iterator[Funding]:
        """Random coins of the safest tier that suffices; and the fewest."""
        purse, ctx = self._purse(quote), self.ctx
        # The movement with the lowest possible fee, that of one coin.
        least = Sats(self.paid + purse.plan.fee(1, with_change=False))
        try:
            pool, selection = purse.drawn()
        except (InsufficientFunds, LockedFunds) as error:
            # Raises RoleLimitExceeded, VaultLimitExceeded where no coins fit a limit.
            require_in_limits(ctx, self.vault, OutgoingAmount(least, ctx.now))
            if not self.intent.payments:
                raise
            most = most_sendable(ctx, purse, quote)
            sentence = f"{error.detail} {most.words}"
            raise type(error)(sentence, figures={"maximum_sats": int(most.amount_sats)}) from error
        if selection.fee <= MAX_FEE:
            yield self.of(purse, selection, purse.kept, least)
        yield self.of(purse, select_fewest(pool, purse.plan) or selection, purse.kept, least)

    def cheapest(self, quote: Quote) -> Iterator[Funding]:
        """The coins with the lowest fee, where they suffice."""
        purse = self._purse(quote)
        selection = select_cheapest(purse.largest_that_fit(), purse.plan)
        if selection is not None:
            yield self.of(purse, selection, purse.kept)

    def everything(self, quote: Quote) -> Iterator[Funding]:
        """All that can be spent, less the fee. Of more coins than a transaction takes, the largest; without
        uneconomic coins and the one for the vault's tokens.
        """
        purse = self._purse(quote)
        coins = purse.largest_that_fit()
        if not coins:
            purse.refuse_to_sweep()
        fee, held = purse.plan.fee(len(coins), with_change=False), sum(coin.amount for coin in coins)
        if held <= fee:
            raise InsufficientFunds(f"The vault's coins are {held:,} sats, their fee alone is {fee:,} sats.")
        whole = replace(self, intent=self.intent.of_everything(Sats(held - fee)))
        yield whole.of(purse, Selection(tuple(coins), Sats(0), fee), purse.kept)

    def named(self, quote: Quote) -> Iterator[Funding]:
        """Exactly the coins that are named; a sweep sends their sum less the fee."""
        assert self.request.coins is not None, "the request names coins"
        purse, intent = self._purse(quote), self.intent
        plan, tip_height = purse.plan, quote.tip.height
        coins, kept = named_coins(self.ctx, self.vault, self.request.coins, tip_height, intent.outputs)
        held = sum(utxo.amount for utxo in coins)
        most = max(0, held - plan.fee(len(coins), with_change=False))
        if intent.sweeps and most:
            intent = intent.of_everything(Sats(most))
        selection = settle(coins, replace(plan, target=intent.total)) if most else None
        if selection is None:
            raise InsufficientFunds(
                f"The named coins are {held:,} sats: {intent.total:,} sats and the fee are more. At most "
                f"{most:,} sats can be sent from them.",
                figures={"maximum_sats": most},
            )
        yield replace(self, intent=intent).of(purse, selection, kept)

    def _purse(self, quote: Quote) -> Purse:
        rate = read_rate(self.request, quote)
        return Purse(self.ctx, self.vault, self.intent, rate, quote.tip.height)

    def of(
        self, purse: Purse, selection: Selection[Utxo], kept: Utxo | None, least: Sats | None = None
    ) -> Funding:
        coins = selection.coins
        vsize = purse.plan.vsize(len(coins), selection.change > 0)
        return Funding(self.intent, selection, vsize, purse.rate, self.paid, coins, kept, least)

    @cached_property
    def paid(self) -> Sats:
        """The amount without payments to the vault itself."""
        own = own_scripts(self.ctx.db, self.vault, self.intent)
        payments = (payment.output for payment in self.intent.payments)
        return Sats(sum(output.amount for output in payments if output.script_pubkey not in own))


@serves_in_parts(SWEEP_VAULT)
def sweep_vault(ctx: Ctx, request: SweepVaultRequest) -> Steps[SweptVault]:
    """Each proposal is a ``create-psbt`` of its own, and stays where a later one is refused. Raises what that
    does; StateConflict where the vault is not replaced.
    """
    wanted, made = _sweep(ctx, request), list[str]()
    aside = balances_of(ctx.db, [request.vault_id], ctx.now)[request.vault_id].aside
    yield In.NOTHING
    one = Invocation(wire.CREATE_PSBT, wanted, ctx.caller)
    try:
        while len(made) < MAX_SWEEPS:
            answered = run(ctx.services, one)
            made.append(wire.CREATE_PSBT.writer.validate_json(answered.content).psbt_id)
    except (Dust, InsufficientFunds, LockedFunds, StateConflict):
        if not made:
            raise
    return SweptVault(psbt_ids=made, set_aside_sats=aside)


def _sweep(ctx: Ctx, request: SweepVaultRequest) -> wire.CreatePsbtRequest:
    """Moves what one transaction takes. Raises NotFound, VaultFrozen, StateConflict (it is not replaced)."""
    old = vault_to_spend(ctx.db, ctx.access, request.vault_id)
    new = replacement_of(ctx.db, old)
    if new is None:
        raise StateConflict(f"The vault {old.name} is not replaced: ask for that first, replace-vault.")
    return wire.CreatePsbtRequest(
        wallet_id=old.id,
        workspace_id=request.workspace_id,
        tx_type="send",
        recipients=[new.address],
        sweep=True,
        priority=request.priority,
        fee_rate=request.fee_rate,
        description=f"Moves what is left into {new.name}.",
    )
