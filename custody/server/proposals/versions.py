"""Fee bumps and cancels: a new version of a proposal, in the same family (ADR 15).

A bump spends every coin of the original, pays the same recipients and takes a higher fee out of the change. A
cancel spends the same coins and sends everything back to the vault. At most one version can be mined.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial

from sqlalchemy import select
from sqlalchemy.orm import Session

from custody.common.text import SHORT_ID
from custody.schemas.proposals import CreatePsbtRequest, TxType
from custody.schemas.proposals import ProposalStatus as Status
from custody.server.calls import Ctx
from custody.server.errors import InsufficientFunds, Invalid, LockedFunds, StateConflict
from custody.server.limits.stored import moved_by_family
from custody.server.network.backends import Quote
from custody.server.proposals import lifecycle
from custody.server.proposals.bounds import vault_to_spend
from custody.server.proposals.choosing import Purse
from custody.server.proposals.coins import Utxo, utxo_of
from custody.server.proposals.drafts import Funding, Order
from custody.server.proposals.payments import Intent, PaidRecipient, read_rate
from custody.server.rules.fees import (
    PricedTransaction,
    least_fee,
    settle_replacement,
)
from custody.server.rules.lifecycle import REPLACEABLE
from custody.server.rules.selection import (
    MAX_INPUTS,
    Selection,
    Tier,
    input_cost,
    largest_first,
)
from custody.server.store.models import ChainCoinRow, CoinLockRow, ProposalInputRow, ProposalRow, VaultRow
from custody.server.vaults.stored import IS_LOCK_OF_COIN, policy_of
from multisig import (
    FeeRate,
    Network,
    Psbt,
    Sats,
    Transaction,
    TxOut,
    decode_address,
    estimate_vsize,
)


@dataclass(frozen=True)
class _Family:
    """A proposal that may be replaced, with all its versions."""

    original: ProposalRow
    members: Sequence[ProposalRow]
    vault: VaultRow

    @cached_property
    def rivals(self) -> tuple[PricedTransaction, ...]:
        """All versions, also ended ones: their signatures may have been given out, and they must not win."""
        return tuple(_priced(member, self.vault) for member in self.members)


def version(ctx: Ctx, request: CreatePsbtRequest) -> Order:
    """Raises NotFound, VaultFrozen; Invalid where it belongs to another vault than the request's;
    StateConflict (ended, confirmed, not the newest, a coin has gone).

    Funding it raises Invalid (a rate that is too low or too high); InsufficientFunds (neither the change nor
    the vault's other coins pay the fee), LockedFunds (those that would are locked); Dust (a sweep's amount
    less the fee).
    """
    db = ctx.db
    vault = vault_to_spend(db, ctx.access, request.wallet_id)
    field = "cancels_psbt_id" if request.cancel else "replaces_psbt_id"
    original = ctx.find(ProposalRow, getattr(request, field), "proposal")
    if original.vault_id != vault.id:
        raise Invalid.at("/wallet_id", f"The proposal in {field} is of another vault.")
    _require_replaceable(db, original, cancel=request.cancel)
    family = _Family(original, lifecycle.members_of(db, original.family_id), vault)
    held = _coins_of(db, family, cancel=request.cancel)
    intent = Intent() if request.cancel else _intent_of(original, Network(vault.chain))
    paid = Sats(0 if request.cancel else max(0, original.movement_sats - original.fee_sats))
    was = TxType(original.tx_type)
    same_kind = not request.cancel
    said = f"Takes back proposal {original.id[:SHORT_ID]}" if request.cancel else original.description
    members = frozenset((member.id, member.final_tx is not None) for member in family.members)
    return Order(
        was if same_kind else TxType.SEND,
        vault.id,
        vault.chain,
        policy_of(vault),
        intent,
        partial(_fund, ctx, request, family, held, intent, paid),
        rests_on=(members, frozenset(utxo.outpoint for utxo in held)),
        description=said if request.description is None else request.description,
        recipients=tuple(original.recipients) if same_kind and was in lifecycle.TOKEN_KINDS else None,
        contract_ids=tuple(original.contract_ids) if same_kind else (),
        change_at=_change_of(original),
        family_id=original.family_id,
        replaces_id=original.id,
        # A cancel mints nothing; its fee counts for its maker like that of any self-spend.
        counts_for_role=request.cancel or original.counts_for_role,
        # A new version of a call moves what the first did, and counts for the member who proposes it.
        tokens=moved_by_family(db, vault, original.family_id, ctx.now)
        if same_kind and was is TxType.CALL
        else None,
    )


def _require_replaceable(db: Session, original: ProposalRow, *, cancel: bool) -> None:
    """Raises StateConflict where it has ended, is confirmed, is not the newest, or another proposal spends
    its change.
    """
    if TxType(original.tx_type) not in lifecycle.KINDS:
        raise StateConflict(f"A proposal of the kind {original.tx_type} cannot be replaced.")
    newer = lifecycle.newer_than(db, original)
    if newer:
        raise StateConflict(f"It has a newer version, {newer[-1].id}: replace that one.")
    if original.screening == lifecycle.HELD:
        raise StateConflict("The vault's screening holds it: wait for its word, or cancel it.")
    status = Status(original.status)
    taken_back = original.keeps_coins and cancel
    if status not in REPLACEABLE and not taken_back:
        also = " Its coins come back with cancel." if original.keeps_coins else ""
        raise StateConflict(f"The proposal is {status}; it can no longer be replaced.{also}")
    _require_childless(db, original)


def _require_childless(db: Session, original: ProposalRow) -> None:
    """A proposal that spends its change could never be mined after a replacement. Spends by others do not
    count: a payee must not be able to prevent a cancellation.
    """
    made = {member.txid_expected for member in lifecycle.members_of(db, original.family_id)}
    query = (
        select(ProposalRow.id)
        .join(ProposalInputRow, ProposalInputRow.proposal_id == ProposalRow.id)
        .where(
            ProposalInputRow.txid.in_(made),
            ProposalRow.vault_id == original.vault_id,
            ProposalRow.profile_key_id.is_(None),
            ProposalRow.family_id != original.family_id,
            lifecycle.holds_coins_clause(),
        )
        # The newest version, which pays most, is the one that can still be declined or replaced.
        .order_by(ProposalRow.fee_sats.desc(), ProposalRow.id)
        .limit(1)
    )
    child = db.scalars(query).first()
    if child is not None:
        raise StateConflict(
            f"Proposal {child} spends its unconfirmed change, and would be lost with it. Decline that one "
            "while it lacks signatures; after that raise its fee, which pays for both."
        )


def _intent_of(original: ProposalRow, network: Network) -> Intent:
    """What each version pays. The recipients of a token's proposal are for the record only; they get no
    bitcoin.
    """
    pays = TxType(original.tx_type) not in lifecycle.TOKEN_KINDS
    payments = tuple(
        PaidRecipient(address, TxOut(Sats(amount), decode_address(address, network)))
        for address, amount in (zip(original.recipients, original.amounts_sats, strict=True) if pays else ())
    )
    data = None if original.op_return_hex is None else bytes.fromhex(original.op_return_hex)
    return Intent(payments, data, sweeps=original.sweeps)


def _coins_of(db: Session, family: _Family, *, cancel: bool) -> tuple[Utxo, ...]:
    """Every coin of the original in the order of its inputs, and those of the other members that no other
    family has locked. So any two versions share coins and exclude each other. A bump of a sweep has the
    original's alone: it sends no coin that the sweep did not.

    A coin may have left the chain for good: a deposit that a reorganisation removed. A cancel may then use
    the remaining coins, as long as each version has one of them, so that it excludes them all; otherwise the
    others would stay locked for ever.

    Raises StateConflict where a coin of the original is missing.
    """
    original = family.original
    query = select(ProposalInputRow.txid, ProposalInputRow.vout).where(
        ProposalInputRow.proposal_id == original.id
    )
    inputs = [(txid, vout) for txid, vout in db.execute(query.order_by(ProposalInputRow.input_index))]
    # The members' coins that are on the chain, spent or not, with the families that have locked them. A
    # deposit may have other outputs to this vault or to others: those are no coins of the family.
    on_chain = (
        select(ChainCoinRow, CoinLockRow.family_id)
        .join(ProposalInputRow, lifecycle.IS_INPUT)
        .outerjoin(CoinLockRow, IS_LOCK_OF_COIN)
        .where(
            ChainCoinRow.chain == family.vault.chain,
            ChainCoinRow.vault_id == family.vault.id,
            ProposalInputRow.proposal_id.in_([member.id for member in family.members]),
        )
    )
    known = {(row.txid, row.vout): (row, family_id) for row, family_id in db.execute(on_chain)}
    versions = {member.txid_expected for member in family.members}
    coins = {
        coin: utxo_of(row)
        for coin, (row, lock) in known.items()
        if row.spent_by in {None, *versions} and lock in {None, original.family_id}
    }
    missing = set(inputs) - set(coins)
    if missing:
        each_has_one = all(lifecycle.coins_of(db, [member.id]) & set(coins) for member in family.members)
        if not (cancel and not missing & set(known) and each_has_one):
            raise StateConflict(
                "A coin of the proposal is not on the chain, or was spent: it cannot be replaced now."
            )
    others = [] if original.sweeps and not cancel else sorted(set(coins) - set(inputs))
    return tuple(coins[coin] for coin in (*inputs, *others) if coin in coins)


def _change_of(proposal: ProposalRow) -> tuple[int, int] | None:
    """The branch and index of its change, read from the PSBT, in which only the change has key origins; None
    without change. A token's transaction has its change at the vault's first address.
    """
    for output in Psbt.parse(proposal.psbt).outputs:
        for origin in output.derivations.values():
            branch, index = origin.path.indexes[-2:]
            return branch, index
    return None


def _priced(member: ProposalRow, vault: VaultRow) -> PricedTransaction:
    """With its real size where known: signatures may be a byte or two smaller than estimated."""
    psbt = Psbt.parse(member.psbt)
    scripts = [output.script_pubkey for output in psbt.outputs]
    vsize = estimate_vsize(policy_of(vault), len(psbt.inputs), scripts)
    if member.final_tx is not None:
        vsize = min(vsize, Transaction.parse(member.final_tx).vsize)
    return PricedTransaction(Sats(member.fee_sats), vsize)


def _fund(
    ctx: Ctx,
    request: CreatePsbtRequest,
    family: _Family,
    held: tuple[Utxo, ...],
    intent: Intent,
    paid: Sats,
    quote: Quote,
) -> Iterator[Funding]:
    purse = Purse(ctx, family.vault, intent, read_rate(request, quote), quote.tip.height)
    plan = purse.plan
    size = plan.vsize(len(held), not intent.sweeps)
    # Rounded down like the rate that a preview shows: whoever asks for what was shown gets it. What is paid
    # is never less than `least_fee`.
    least = FeeRate.of(least_fee(family.rivals, size), size)
    if request.fee_rate is not None and plan.rate < least:
        raise Invalid.at(
            "/fee_rate",
            f"For every node to accept the replacement it has to pay {least} at least (BIP-125: more than "
            "what it replaces, and for its own relay).",
        )
    kept = None
    if intent.sweeps:
        # The same coins, and the fee out of the amount.
        total = sum(utxo.amount for utxo in held)
        fee = Sats(max(plan.rate.fee_for(size), least_fee(family.rivals, size)))
        if fee >= total:
            raise InsufficientFunds(f"The payment's coins are {total} sat, and the fee alone is {fee} sat.")
        intent, selection = intent.of_everything(Sats(total - fee)), Selection(held, Sats(0), fee)
        # Nothing counts of a sweep into the vault itself.
        paid = intent.total if paid else paid
    else:
        selection, kept = _settle(purse, family, held)
    coins = selection.coins
    vsize = plan.vsize(len(coins), selection.change > 0)
    yield Funding(intent, selection, vsize, plan.rate, paid, fresh=coins[len(held) :], kept=kept)


def _settle(purse: Purse, family: _Family, held: tuple[Utxo, ...]) -> tuple[Selection[Utxo], Utxo | None]:
    """The family's coins and as few others as needed, the largest first; and where there are others, the coin
    that stays for the vault's tokens. Those are confirmed: a replacement may add no unconfirmed coin
    (BIP-125, rule 2).
    """
    # A token's transaction always has change at the vault's address, which the next call spends. Also where
    # its newest member cancels the payment.
    plan = purse.plan
    is_of_token = any(TxType(member.tx_type) in lifecycle.TOKEN_KINDS for member in family.members)
    may_drop_change = bool(purse.intent.outputs) and not is_of_token

    def cover(spare: Sequence[Utxo]) -> Selection[Utxo] | None:
        for count in range(max(0, min(len(spare), MAX_INPUTS - len(held))) + 1):
            chosen = (*held, *spare[:count])
            settled = settle_replacement(chosen, plan, family.rivals, pays=may_drop_change)
            if settled is not None:
                return settled
        return None

    alone = cover(())
    if alone is not None:
        return alone, None
    db, kept = purse.ctx.db, purse.kept
    # Where tokens need a coin at the address, those there last, and not that one.
    source = replace(purse.coins, avoids_address=kept is not None)
    pool = largest_first(source.pool(db, Tier.CONFIRMED, plan))
    if kept is not None:
        pool += [utxo for utxo in purse.at_address() if utxo.amount > input_cost(plan)]
    taken = {*held, kept}
    together = cover([utxo for utxo in pool if utxo not in taken])
    if together is not None:
        return together, kept
    sentence = f"The fee has to rise to {plan.rate} at least, and neither the change nor the vault's other "
    everything = purse.coins.pool(db, Tier.CONFIRMED, plan, with_locked=True)
    if cover(largest_first({*everything} - taken)) is not None:
        others = f"others are locked by {purse.holders}."
        raise LockedFunds(f"{sentence}coins that are free pay for that: {others}")
    raise InsufficientFunds(
        f"{sentence}confirmed coins pay for that{purse.beside}.",
        hint="Choose a lower rate, if it is above the least, or wait until more coins are free.",
    )
