"""Sends: what is drafted of one, and stored."""

from dataclasses import dataclass, replace

from sqlalchemy.orm import Session

from custody.schemas.proposals import CreatePsbtRequest, CreatePsbtResponse
from custody.server.calls import Ctx
from custody.server.domain.credentials import new_id
from custody.server.domain.errors import (
    CustodyError,
    InsufficientFunds,
    LockedFunds,
    RoleLimitExceeded,
    VaultLimitExceeded,
)
from custody.server.service.backends import Quote
from custody.server.service.limits.limits import OutgoingAmount
from custody.server.service.proposals.bounds import is_move, require_move, vault_to_spend
from custody.server.service.proposals.coins import lock_coins, require_makers_stay, require_unchanged
from custody.server.service.proposals.drafting import Draft, plan_of
from custody.server.service.proposals.maximum import most_of_intent, own_scripts
from custody.server.service.proposals.payments import Intent, named_coins, read_intent, read_rate
from custody.server.service.proposals.storing import Terms, record_proposal, store_proposal
from custody.server.service.requests.changes import OutdatedDraft
from custody.server.service.stored_vaults import derive_ahead, policy_of, vault_in
from custody.server.store.models import ProposalRow, VaultRow
from multisig import FeeRate, Network, Sats


@dataclass(frozen=True)
class Prepared:
    """A drafted send, not yet stored. ``paid``: the amount that leaves the vault, without the fee and without
    payments to itself. ``is_cheapest``: no other coins pay it for a lower fee.
    """

    intent: Intent
    draft: Draft
    paid: Sats
    is_cheapest: bool = False


def draft(ctx: Ctx, request: CreatePsbtRequest) -> Prepared:
    """Chooses the coins and builds the PSBT. It only reads, for a snapshot, so that no writer waits.

    ``ctx.tries``: how often storing a draft raised Outdated. Only from the second try on does it check that
    no proposal has this transaction, and that it fits the limits: both fail rarely, and are checked again
    when the draft is stored. Payments that exceed a limit without any fee are refused for that, whatever
    coins there are.

    Raises NotFound (vault), Invalid, WrongNetworkAddress, Dust, RoleLimitExceeded, VaultLimitExceeded,
    InsufficientFunds, LockedFunds, PolicyUnavailable, ChainUnavailable, StateConflict (the vault is
    replaced).
    """
    db, drafter = ctx.db, ctx.services.drafter
    vault = vault_to_spend(db, ctx.access, request.wallet_id)
    intent = read_intent(request, Network(vault.chain))
    quote = ctx.tools.market.quote(vault.chain)
    rate = read_rate(request, quote)
    require_move(db, vault, {output.script_pubkey for output in intent.outputs})
    derive_ahead(vault)
    if request.coins is not None:
        named = named_coins(db, vault, request.coins, quote.tip.height, intent.outputs)
        intent, drafted = drafter.spending(db, vault, intent, rate, quote, named)
        return Prepared(intent, drafted, _paid_elsewhere(db, vault, intent))
    if intent.sweeps:
        intent, drafted = drafter.sweep(db, vault, intent, rate, quote, distinct=ctx.tries > 0)
        return Prepared(intent, drafted, _paid_elsewhere(db, vault, intent))
    try:
        drafted = drafter.draft(db, vault, intent, rate, quote, distinct=ctx.tries > 0)
    except CustodyError as error:
        paid = _paid_elsewhere(db, vault, intent)
        # Limits are normally checked when the draft is stored, so that the sums are not read twice.
        _require_least(ctx, vault, intent, paid, rate)
        if isinstance(error, InsufficientFunds | LockedFunds) and intent.payments:
            most = most_of_intent(db, ctx.tools.limits, ctx.caller, ctx.access, vault, intent, rate, quote)
            raise type(error)(
                f"{error.detail} {most.in_words}", figures={"maximum_sats": int(most.amount)}
            ) from error
        raise
    prepared = Prepared(intent, drafted, _paid_elsewhere(db, vault, intent))
    return prepared if ctx.tries == 0 else _at_less_fee(ctx, vault, prepared, rate, quote)


def create(ctx: Ctx, request: CreatePsbtRequest, prepared: Prepared) -> CreatePsbtResponse:
    """Stores the proposal and locks its coins.

    Raises Outdated where a coin of the draft was spent, this transaction was proposed meanwhile, or
    another draft may fit the limits; NotFound (vault), RoleLimitExceeded, VaultLimitExceeded,
    PolicyUnavailable.
    """
    db = ctx.db
    vault = vault_in(db, ctx.access, request.wallet_id)
    require_unchanged(db, vault.chain, prepared.draft.needed)
    require_makers_stay(db, prepared.draft.utxos)
    drafted, movement = within_limits(ctx, vault, request, prepared)
    proposal = _insert(ctx, vault, request, prepared.intent, drafted, movement)
    what = f"{movement.amount} sat with the fee, tx {proposal.txid_expected}"
    record_proposal(db, ctx.tools.audit, ctx.tools.changes, ctx.caller, ctx.access, proposal, what)
    return CreatePsbtResponse(psbt_id=proposal.id, psbt_base64=drafted.base64)


def within_limits(
    ctx: Ctx, vault: VaultRow, request: CreatePsbtRequest, prepared: Prepared
) -> tuple[Draft, OutgoingAmount]:
    """The draft to store, and the movement that counts for the limits. Raises RoleLimitExceeded,
    VaultLimitExceeded, PolicyUnavailable; Outdated where another draft might fit.
    """
    drafted = _at_next_change(vault, prepared.draft)
    if is_move(ctx.db, vault, drafted.scripts):
        return drafted, OutgoingAmount(Sats(0), ctx.now)
    movement = OutgoingAmount(Sats(prepared.paid + drafted.selection.fee), ctx.now)
    try:
        ctx.tools.limits.require(ctx.db, ctx.caller, ctx.access, vault, movement)
    except (RoleLimitExceeded, VaultLimitExceeded):
        if request.coins is not None or prepared.intent.sweeps or prepared.is_cheapest:
            raise
        rate = read_rate(request, ctx.tools.market.quote(vault.chain))
        _require_least(ctx, vault, prepared.intent, prepared.paid, rate)
        raise OutdatedDraft("Other coins may pay the same for less.") from None
    return drafted, movement


def _at_less_fee(ctx: Ctx, vault: VaultRow, prepared: Prepared, rate: FeeRate, quote: Quote) -> Prepared:
    """Where the fee of the randomly drawn coins exceeds a limit, the coins with the lowest fee. Raises
    RoleLimitExceeded, VaultLimitExceeded where no coins fit.
    """
    movement = OutgoingAmount(Sats(prepared.paid + prepared.draft.selection.fee), ctx.now)
    try:
        ctx.tools.limits.require(ctx.db, ctx.caller, ctx.access, vault, movement)
    except (RoleLimitExceeded, VaultLimitExceeded):
        # Refuses first what no coins can make fit, because the search below is slow.
        _require_least(ctx, vault, prepared.intent, prepared.paid, rate)
        cheapest = ctx.services.drafter.cheapest(ctx.db, vault, prepared.intent, rate, quote)
        return replace(prepared, draft=cheapest or prepared.draft, is_cheapest=True)
    return prepared


def _require_least(ctx: Ctx, vault: VaultRow, intent: Intent, paid: Sats, rate: FeeRate) -> None:
    """Checks the limits with the lowest possible fee, that of one coin. Raises RoleLimitExceeded,
    VaultLimitExceeded.
    """
    least_fee = plan_of(policy_of(vault), intent, rate).fee(1, with_change=False)
    ctx.tools.limits.require(
        ctx.db, ctx.caller, ctx.access, vault, OutgoingAmount(Sats(paid + least_fee), ctx.now)
    )


def _insert(
    ctx: Ctx,
    vault: VaultRow,
    request: CreatePsbtRequest,
    intent: Intent,
    drafted: Draft,
    movement: OutgoingAmount,
) -> ProposalRow:
    proposal_id = new_id(ctx.tools.random)
    lock_coins(ctx.db, vault.chain, [utxo.outpoint for utxo in drafted.utxos], proposal_id)
    terms = Terms(
        proposal_id,
        proposal_id,
        ctx.caller.user_id,
        request.description,
        movement.amount,
        movement.proposed_at,
        recipients=tuple(payment.address for payment in intent.payments),
        amounts=tuple(int(payment.output.amount) for payment in intent.payments),
        op_return_hex=None if intent.op_return is None else intent.op_return.hex(),
        contract_ids=tuple(request.contract_ids or ()),
        sweeps=intent.sweeps,
    )
    return store_proposal(ctx.db, vault, drafted, terms)


def _at_next_change(vault: VaultRow, draft: Draft) -> Draft:
    """Each proposal gets its own change address, unless many were never sent (`use_change_index`)."""
    if draft.change_index in {None, vault.next_change_index}:
        return draft
    return draft.with_change_at(vault.next_change_index)


def _paid_elsewhere(db: Session, vault: VaultRow, intent: Intent) -> Sats:
    """The amount without payments to the vault itself."""
    own = own_scripts(db, vault, intent)
    return Sats(
        sum(payment.output.amount for payment in intent.payments if payment.output.script_pubkey not in own)
    )
