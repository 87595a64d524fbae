"""Fee bumps and cancels: a new version of a proposal, in the same family (ADR 15).

A bump spends every coin of the original, pays the same recipients and takes a higher fee out of the change. A
cancel spends the same coins and sends everything back to the vault. At most one version can be mined.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from sqlalchemy.orm import Session

from custody.schemas.proposals import CreatePsbtRequest, CreatePsbtResponse, TxType
from custody.server.calls import Ctx
from custody.server.domain.credentials import WorkspaceAccess, new_id
from custody.server.domain.errors import InsufficientFunds, Invalid, LockedFunds, StateConflict
from custody.server.domain.fees import (
    ChangeAndFee,
    PricedTransaction,
    least_fee,
    least_rate,
    settle_replacement,
)
from custody.server.domain.selection import (
    MAX_INPUTS,
    Plan,
    Selection,
    Tier,
    choose_locktime,
    input_cost,
    largest_first,
)
from custody.server.service.lifecycle import settle_family
from custody.server.service.limits.limits import OutgoingAmount
from custody.server.service.limits.usage import moved_by_family
from custody.server.service.proposals.bounds import is_move, vault_to_spend
from custody.server.service.proposals.coins import (
    SpendableCoins,
    Utxo,
    coins_to_spend,
    kept_for_tokens,
    lock_coins,
    require_unchanged,
    token_coins,
)
from custody.server.service.proposals.drafting import Draft, Parts, plan_of, require_sane_fee
from custody.server.service.proposals.families import (
    TOKEN_KINDS,
    FamilyState,
    ProposalFamily,
    change_of,
    family_of,
    family_utxos,
    find_proposal,
    intent_of,
    require_replaceable,
)
from custody.server.service.proposals.payments import Intent, read_rate
from custody.server.service.proposals.storing import Terms, record_proposal, store_proposal
from custody.server.service.requests.changes import OutdatedDraft
from custody.server.service.stored_vaults import policy_of, vault_in
from custody.server.store.models import ProposalRow, VaultRow
from multisig import CHANGE, ChangeTo, PsbtTooLarge, Sats, TxOut


@dataclass(frozen=True)
class ReplacementDraft:
    """A drafted replacement, not yet stored. ``added``: coins that its family did not have."""

    intent: Intent
    draft: Draft
    added: tuple[Utxo, ...]
    state: FamilyState


def draft(ctx: Ctx, request: CreatePsbtRequest) -> ReplacementDraft:
    """Only reads, for a snapshot, so that no writer waits.

    Raises NotFound; StateConflict (ended, confirmed, not the newest); Invalid (a rate that is too low or
    too high); InsufficientFunds (neither the change nor the vault's other coins pay the fee), LockedFunds
    (those that would are locked); Dust (a sweep's amount less the fee); ChainUnavailable.
    """
    db, rng = ctx.db, ctx.tools.rng
    vault = vault_to_spend(db, ctx.access, request.wallet_id)
    original = _original(db, ctx.access, vault, request)
    require_replaceable(db, original, cancel=request.cancel)
    family = family_of(db, original, vault)
    intent = Intent() if request.cancel else intent_of(family)
    quote = ctx.tools.market.quote(vault.chain)
    plan = plan_of(policy_of(vault), intent, read_rate(request, quote))
    held = family_utxos(db, family, cancel=request.cancel)
    if request.fee_rate is not None:
        _require_outbidding(plan, len(held), family.rivals, with_change=not intent.sweeps)
    if intent.sweeps:
        intent, settled = _settle_sweep(intent, plan, held, family.rivals)
        chosen, kept = held, None
    else:
        chosen, settled, kept = _settle(db, family, intent, plan, held, quote.tip.height)
    lock = choose_locktime(quote.tip.height, ctx.now.timestamp() - quote.tip.time, rng)
    built = _build(ctx, family, intent, plan, chosen, settled, kept, lock).distinct(db, quote.tip.height)
    return ReplacementDraft(intent, built, chosen[len(held) :], FamilyState.of(family, held))


def create(ctx: Ctx, request: CreatePsbtRequest, version: ReplacementDraft) -> CreatePsbtResponse:
    """Stores the version as PENDING. The replaced version's status changes only by what the chain shows.

    Raises Outdated where its family or an added coin changed, or this transaction was proposed, in the
    meantime; RoleLimitExceeded, VaultLimitExceeded, PolicyUnavailable.
    """
    db = ctx.db
    vault = vault_in(db, ctx.access, request.wallet_id)
    original = _original(db, ctx.access, vault, request)
    drafted = _still_good(db, vault, original, request, version)
    terms = within_limits(ctx, vault, request, version.intent, drafted)
    lock_coins(db, vault.chain, [utxo.outpoint for utxo in version.added], original.family_id)
    proposal = store_proposal(db, vault, drafted, terms)
    settle_family(db, proposal)
    word = "takes back" if request.cancel else "replaces"
    what = f"{terms.movement} sat with the fee, tx {proposal.txid_expected}, {word} {original.id}"
    record_proposal(db, ctx.tools.audit, ctx.tools.changes, ctx.caller, ctx.access, proposal, what)
    return CreatePsbtResponse(psbt_id=proposal.id, psbt_base64=drafted.base64)


def within_limits(
    ctx: Ctx, vault: VaultRow, request: CreatePsbtRequest, intent: Intent, drafted: Draft
) -> Terms:
    """The terms to store. Raises RoleLimitExceeded, VaultLimitExceeded, PolicyUnavailable."""
    original = _original(ctx.db, ctx.access, vault, request)
    terms = _terms(ctx, original, request, intent, drafted)
    if is_move(ctx.db, vault, drafted.scripts):
        return replace(terms, movement=Sats(0))
    movement = OutgoingAmount(terms.movement, terms.proposed_at, original.family_id)
    if terms.counts_for_role:
        ctx.tools.limits.require_role(ctx.db, ctx.caller, ctx.access, movement)
    ctx.tools.limits.require_vault(ctx.db, vault, movement)
    _require_token_limits(ctx, vault, terms)
    return terms


def _require_token_limits(ctx: Ctx, vault: VaultRow, terms: Terms) -> None:
    """A new version of a call moves what the first did, and counts for the member who proposes it."""
    moved = moved_by_family(ctx.db, vault, terms.family_id, terms.proposed_at)
    if moved is not None and terms.tx_type is TxType.CALL:
        ctx.tools.limits.require_token(ctx.db, ctx.caller, ctx.access, vault, moved)


def _build(
    ctx: Ctx,
    family: ProposalFamily,
    intent: Intent,
    plan: Plan,
    chosen: tuple[Utxo, ...],
    settled: ChangeAndFee,
    kept: Utxo | None,
    locktime: int,
) -> Draft:
    selection = Selection(chosen, settled.change, settled.fee)
    require_sane_fee(selection)
    vault = family.vault
    outputs: list[TxOut | ChangeTo] = list(intent.outputs)
    if settled.change:
        branch, index = _change_address(family)
        outputs.insert(ctx.tools.rng.randrange(len(outputs) + 1), ChangeTo(settled.change, branch, index))
    coins = tuple(coins_to_spend(ctx.db, vault.chain, chosen))
    parts = Parts(policy_of(vault), coins, tuple(outputs), locktime)
    try:
        built = parts.build()
    except PsbtTooLarge as error:
        sentence = f"With more coins the PSBT is larger than a device takes: {error}"
        raise Invalid.at("/fee_rate", sentence, error.code) from error
    return Draft(built, selection, plan.vsize(len(chosen), settled.change > 0), parts, kept)


def _still_good(
    db: Session, vault: VaultRow, original: ProposalRow, request: CreatePsbtRequest, version: ReplacementDraft
) -> Draft:
    family = family_of(db, original, vault)
    try:
        require_replaceable(db, original, cancel=request.cancel)
        held = family_utxos(db, family, cancel=request.cancel)
    except StateConflict as error:
        raise OutdatedDraft(error.detail) from error
    if FamilyState.of(family, held) != version.state:
        raise OutdatedDraft("A version of it was made, finalised or ended meanwhile, or a coin has gone.")
    drafted = version.draft
    if version.added:
        kept = () if drafted.kept is None else (drafted.kept,)
        require_unchanged(db, vault.chain, (*version.added, *kept))
    if (
        drafted.change_index is not None
        and change_of(original) is None
        and drafted.change_index != vault.next_change_index
    ):
        return drafted.with_change_at(vault.next_change_index)
    return drafted


def _terms(
    ctx: Ctx, original: ProposalRow, request: CreatePsbtRequest, intent: Intent, drafted: Draft
) -> Terms:
    paid = 0 if request.cancel else original.movement_sats - original.fee_sats
    if intent.sweeps and paid:
        paid = intent.total
    said = f"Takes proposal {original.id} back." if request.cancel else original.description
    recipients = tuple(payment.address for payment in intent.payments)
    if not request.cancel and TxType(original.tx_type) in TOKEN_KINDS:
        recipients = tuple(original.recipients)
    return Terms(
        id=new_id(ctx.tools.random),
        family_id=original.family_id,
        created_by=ctx.caller.user_id,
        description=said if request.description is None else request.description,
        movement=Sats(paid + drafted.selection.fee),
        proposed_at=ctx.now,
        tx_type=TxType.SEND if request.cancel else TxType(original.tx_type),
        replaces_id=original.id,
        recipients=recipients,
        amounts=tuple(int(payment.output.amount) for payment in intent.payments),
        op_return_hex=None if intent.op_return is None else intent.op_return.hex(),
        contract_ids=() if request.cancel else tuple(original.contract_ids),
        # A cancel mints nothing; its fee counts for its maker like that of any self-spend.
        counts_for_role=request.cancel or original.counts_for_role,
        sweeps=intent.sweeps,
    )


def _change_address(family: ProposalFamily) -> tuple[int, int]:
    """The original's change address, if it had one."""
    known = change_of(family.original)
    return (CHANGE, family.vault.next_change_index) if known is None else (known.branch, known.address_index)


def _original(
    db: Session, access: WorkspaceAccess, vault: VaultRow, request: CreatePsbtRequest
) -> ProposalRow:
    field = "cancels_psbt_id" if request.cancel else "replaces_psbt_id"
    return find_proposal(db, access, vault, getattr(request, field), field)


Settled = tuple[tuple[Utxo, ...], ChangeAndFee]


def _settle(
    db: Session, family: ProposalFamily, intent: Intent, plan: Plan, held: tuple[Utxo, ...], tip_height: int
) -> tuple[tuple[Utxo, ...], ChangeAndFee, Utxo | None]:
    """The family's coins and as few others as needed, the largest first; and where there are others, the coin
    that stays for the vault's tokens. Those are confirmed: a replacement may add no unconfirmed coin
    (BIP-125, rule 2).
    """
    rivals = family.rivals
    # A token's transaction always has change at the vault's address, which the next call spends.
    may_drop_change = bool(intent.outputs) and not family.is_of_token

    def cover(spare: Sequence[Utxo]) -> Settled | None:
        for count in range(max(0, min(len(spare), MAX_INPUTS - len(held))) + 1):
            chosen = (*held, *spare[:count])
            total = sum(utxo.amount for utxo in chosen)
            settled = settle_replacement(total, len(chosen), plan, rivals, pays=may_drop_change)
            if settled is not None:
                return chosen, settled
        return None

    alone = cover(())
    if alone is not None:
        return *alone, None
    kept = kept_for_tokens(db, family.vault, tip_height, intent.outputs)
    together = cover(_spare(db, family.vault, held, kept, plan, tip_height))
    if together is not None:
        return *together, kept
    sentence = f"The fee has to rise to {plan.rate} at least, and neither the change nor the vault's other "
    everything = SpendableCoins(family.vault.id, tip_height).pool(db, Tier.CONFIRMED, plan, with_locked=True)
    if cover(largest_first({*everything} - {*held, kept})) is not None:
        raise LockedFunds(f"{sentence}coins that are free pay for that: other proposals have locked some.")
    raise InsufficientFunds(f"{sentence}confirmed coins pay for that.")


def _settle_sweep(
    intent: Intent, plan: Plan, held: Sequence[Utxo], rivals: Sequence[PricedTransaction]
) -> tuple[Intent, ChangeAndFee]:
    """The same coins, and the fee out of the amount."""
    vsize, total = plan.vsize(len(held), False), sum(utxo.amount for utxo in held)  # noqa: FBT003 - the shape Plan asks for
    fee = max(plan.rate.fee_for(vsize), least_fee(rivals, vsize))
    if fee >= total:
        raise InsufficientFunds(f"The payment's coins are {total} sat, and the fee alone is {fee} sat.")
    return intent.of_everything(Sats(total - fee)), ChangeAndFee(Sats(0), Sats(fee))


def _spare(
    db: Session, vault: VaultRow, held: Iterable[Utxo], kept: Utxo | None, plan: Plan, tip_height: int
) -> Sequence[Utxo]:
    """The vault's other coins; where tokens need one at its address, those there last, and not that one."""
    pool = largest_first(
        SpendableCoins(vault.id, tip_height, avoids_address=kept is not None).pool(db, Tier.CONFIRMED, plan)
    )
    if kept is not None:
        pool += [utxo for utxo in token_coins(db, vault, tip_height) if utxo.amount > input_cost(plan)]
    taken = {*held, kept}
    return [utxo for utxo in pool if utxo not in taken]


def _require_outbidding(
    plan: Plan, inputs: int, rivals: Iterable[PricedTransaction], *, with_change: bool
) -> None:
    rivals = tuple(rivals)
    least = least_rate(rivals, plan.vsize(inputs, with_change))
    if plan.rate < least:
        raise Invalid.at(
            "/fee_rate",
            f"For every node to accept the replacement it has to pay {least} at least (BIP-125: more than "
            "what it replaces, and for its own relay).",
        )
