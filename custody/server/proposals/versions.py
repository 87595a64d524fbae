"""Fee bumps and cancels: a new version of a proposal, in the same family (ADR 15).

A bump spends every coin of the original, pays the same recipients and takes a higher fee out of the change. A
cancel spends the same coins and sends everything back to the vault. At most one version can be mined.
"""

from collections.abc import Iterable, Iterator, Sequence
from functools import partial

from sqlalchemy.orm import Session

from custody.schemas.proposals import CreatePsbtRequest, TxType
from custody.server.calls import Ctx
from custody.server.errors import InsufficientFunds, Invalid, LockedFunds
from custody.server.limits.stored import moved_by_family
from custody.server.network.backends import Quote
from custody.server.proposals.bounds import vault_to_spend
from custody.server.proposals.coins import SpendableCoins, Utxo, kept_for_tokens, token_coins
from custody.server.proposals.drafting import plan_of
from custody.server.proposals.drafts import Funding, Order
from custody.server.proposals.families import (
    TOKEN_KINDS,
    ProposalFamily,
    change_of,
    family_utxos,
    find_proposal,
    intent_of,
    require_replaceable,
)
from custody.server.proposals.lifecycle import members_of
from custody.server.proposals.payments import Intent, read_rate
from custody.server.rules.fees import (
    ChangeAndFee,
    PricedTransaction,
    least_fee,
    least_rate,
    settle_replacement,
)
from custody.server.rules.selection import (
    MAX_INPUTS,
    Plan,
    Selection,
    Tier,
    input_cost,
    largest_first,
)
from custody.server.store.models import VaultRow
from custody.server.vaults.stored import policy_of
from multisig import Sats


def version(ctx: Ctx, request: CreatePsbtRequest) -> Order:
    """Raises NotFound, VaultFrozen; StateConflict (ended, confirmed, not the newest, a coin has gone).

    Funding it raises Invalid (a rate that is too low or too high); InsufficientFunds (neither the change nor
    the vault's other coins pay the fee), LockedFunds (those that would are locked); Dust (a sweep's amount
    less the fee).
    """
    db = ctx.db
    vault = vault_to_spend(db, ctx.access, request.wallet_id)
    field = "cancels_psbt_id" if request.cancel else "replaces_psbt_id"
    original = find_proposal(db, ctx.access, vault, getattr(request, field), field)
    require_replaceable(db, original, cancel=request.cancel)
    family = ProposalFamily(original, members_of(db, original.family_id), vault)
    held = family_utxos(db, family, cancel=request.cancel)
    intent = Intent() if request.cancel else intent_of(family)
    paid = Sats(0 if request.cancel else max(0, original.movement_sats - original.fee_sats))
    was = TxType(original.tx_type)
    same_kind = not request.cancel
    said = f"Takes proposal {original.id} back." if request.cancel else original.description
    change = change_of(original)
    return Order(
        was if same_kind else TxType.SEND,
        vault.id,
        vault.chain,
        policy_of(vault),
        intent,
        partial(_fund, ctx, request, family, held, intent, paid),
        rests_on=family.state(held),
        description=said if request.description is None else request.description,
        recipients=tuple(original.recipients) if same_kind and was in TOKEN_KINDS else None,
        contract_ids=tuple(original.contract_ids) if same_kind else (),
        change_at=None if change is None else (change.branch, change.address_index),
        family_id=original.family_id,
        replaces_id=original.id,
        # A cancel mints nothing; its fee counts for its maker like that of any self-spend.
        counts_for_role=request.cancel or original.counts_for_role,
        # A new version of a call moves what the first did, and counts for the member who proposes it.
        tokens=moved_by_family(db, vault, original.family_id, ctx.now)
        if same_kind and was is TxType.CALL
        else None,
    )


def _fund(
    ctx: Ctx,
    request: CreatePsbtRequest,
    family: ProposalFamily,
    held: tuple[Utxo, ...],
    intent: Intent,
    paid: Sats,
    quote: Quote,
) -> Iterator[Funding]:
    plan = plan_of(policy_of(family.vault), intent, read_rate(request, quote))
    if request.fee_rate is not None:
        _require_outbidding(plan, len(held), family.rivals, with_change=not intent.sweeps)
    chosen, kept = held, None
    if intent.sweeps:
        intent, settled = _settle_sweep(intent, plan, held, family.rivals)
        # Nothing counts of a sweep into the vault itself.
        paid = intent.total if paid else paid
    else:
        chosen, settled, kept = _settle(ctx.db, family, intent, plan, held, quote.tip.height)
    selection = Selection(chosen, settled.change, settled.fee)
    vsize = plan.vsize(len(chosen), settled.change > 0)
    yield Funding(intent, selection, vsize, plan.rate, paid, fresh=chosen[len(held) :], kept=kept)


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
