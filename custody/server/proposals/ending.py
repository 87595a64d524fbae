"""Cancelling pending proposals, and their expiry.

Neither a cancel nor a decline can revoke signatures that were given out (ADR 15). Where there are some, the
coins stay locked, so that no other payment depends on them and a self-spend can still take them back: until
that is confirmed, a member frees them, or the proposal would have expired.
"""

from contextlib import suppress
from functools import partial
from typing import Final

from sqlalchemy import ColumnElement, and_, func, select
from sqlalchemy.orm import Session

from custody.schemas import proposals as wire
from custody.schemas.call import WORKSPACE_MANAGERS
from custody.schemas.proposals import ProposalStatus as Status
from custody.server.audit.log import AuditLog
from custody.server.calls import Ctx, serves
from custody.server.errors import (
    PermissionDenied,
    StateConflict,
    TooFewSigners,
    VaultFrozen,
)
from custody.server.jobs.tidying import Sweep, end_due
from custody.server.proposals.bounds import require_signers, require_thawed
from custody.server.proposals.lifecycle import IS_INPUT, KINDS, Lifecycle, has_ended, members_of, newer_than
from custody.server.rules import lifecycle
from custody.server.rules.audit import Category, Event
from custody.server.rules.credentials import PLATFORM, Caller
from custody.server.rules.ports import Clock
from custody.server.store import Store
from custody.server.store.models import ChainCoinRow, ProposalInputRow, ProposalRow, SignatureRow, VaultRow
from custody.server.vaults.stored import address_script, place_of

_COINS: Final = "its coins [{kept}stay locked|are free]"
CANCELLED = Event(
    "PROPOSAL_CANCELLED",
    "cancelled the proposal {proposal}: " + _COINS + " // {signatures} signatures are out",
    Category.PROPOSALS,
)
RELEASED_AT_EXPIRY = Event(
    "CANCELLED_COINS_RELEASED",
    "The coins of the proposal {proposal}, which has ended, are free // [{at_expiry}at its expiry]",
    Category.PROPOSALS,
)
RELEASED = Event(
    "CANCELLED_COINS_RELEASED",
    "freed the coins of the proposal {proposal}, which has ended",
    Category.PROPOSALS,
)
EXPIRED = Event("PROPOSAL_EXPIRED", "ended the proposal {proposal}, which expired", Category.PROPOSALS)


@serves(wire.CANCEL_PSBT)
def cancel_psbt(ctx: Ctx, request: wire.CancelPsbtRequest) -> wire.CancelPsbtResponse:
    """Only by its maker or a manager of the workspace. Idempotent. Raises NotFound, PermissionDenied,
    StateConflict (it may still be mined).
    """
    proposal = _proposal(ctx, request.psbt_id)
    status, other = Status(proposal.status), _other_version(ctx.db, proposal)
    # Signed, and only to be mined if a vanished deposit returns. No self-spend takes it back where all its
    # coins are gone.
    is_sent = status in {Status.STALLED, Status.BROADCASTING}
    if status is Status.PENDING or (is_sent and proposal.trouble == wire.TroubleKind.COIN_MISSING):
        out = released_signatures(ctx.db, proposal)
        proposal.keeps_coins = not request.release_coins and may_be_sent(ctx.db, proposal)
        proposal.failure_code, proposal.failure_reason = "cancelled", request.reason
        ctx.tools.lifecycle.apply(ctx.db, proposal, lifecycle.LifecycleEvent.CANCEL)
        kept = proposal.keeps_coins or other is not None
        ctx.event(CANCELLED, proposal=proposal.id, signatures=out, kept=kept)
    elif status is not Status.CANCELLED and not proposal.keeps_coins:
        said = f"The proposal is {status}; it can no longer be cancelled."
        if status in lifecycle.REPLACEABLE and wire.TxType(proposal.tx_type) in KINDS:
            said += " Until it is mined, its page or cancels_psbt_id of create-psbt takes its coins back."
        raise StateConflict(said)
    elif request.release_coins and proposal.keeps_coins:
        ctx.tools.lifecycle.apply(ctx.db, proposal, lifecycle.LifecycleEvent.RELEASED)
        ctx.event(RELEASED, proposal=proposal.id)
    return _answer(ctx.db, ctx.caller, proposal, other)


def proposal_expiries(store: Store, clock: Clock, audit: AuditLog, states: Lifecycle) -> tuple[Sweep, Sweep]:
    """Expires proposals, and frees their coins; and frees the coins that ended proposals keep, when those
    would have expired.
    """

    def expiry(
        which: ColumnElement[bool], ends: lifecycle.LifecycleEvent, event: Event, **facts: bool
    ) -> Sweep:
        def end(db: Session, proposal: ProposalRow) -> None:
            states.apply(db, proposal, ends)
            place = place_of(db, proposal.workspace_id)
            audit.record(db, PLATFORM, event, place, proposal=proposal.id, **facts)

        return partial(end_due, store, clock, ProposalRow.expires_at, which, end)

    is_pending = ProposalRow.status == Status.PENDING.value
    is_kept = and_(ProposalRow.status.in_(sorted(lifecycle.KEEPING)), ProposalRow.keeps_coins)
    return (
        expiry(is_pending, lifecycle.LifecycleEvent.EXPIRE, EXPIRED),
        expiry(is_kept, lifecycle.LifecycleEvent.RELEASED, RELEASED_AT_EXPIRY, at_expiry=True),
    )


def may_be_sent(db: Session, proposal: ProposalRow) -> bool:
    """Whether signatures of it are out: whoever has enough of them can send it after its end."""
    return proposal.tx_type != wire.TxType.PROOF and released_signatures(db, proposal) > 0


def released_signatures(db: Session, proposal: ProposalRow) -> int:
    """How many signers' signatures were given out with its PSBT, even for a single input; those of lost keys
    count too.
    """
    query = select(func.count(func.distinct(SignatureRow.key_id))).where(
        SignatureRow.proposal_id == proposal.id
    )
    return (db.scalar(query) or 0) + proposal.withdrawn_signatures


def _proposal(ctx: Ctx, psbt_id: str) -> ProposalRow:
    proposal = ctx.find(ProposalRow, psbt_id, "proposal", for_update=True)
    is_mine = proposal.created_by == ctx.caller.user_id
    if is_mine or (
        ctx.access.holds_any(WORKSPACE_MANAGERS) and wire.TxType(proposal.tx_type) is not wire.TxType.FORWARD
    ):
        return proposal
    raise PermissionDenied(
        "Its maker can cancel it, and a manager of the workspace can cancel a vault's own movements."
    )


def _answer(db: Session, caller: Caller, proposal: ProposalRow, other: str | None) -> wire.CancelPsbtResponse:
    out = released_signatures(db, proposal)
    may_take_back = (
        proposal.keeps_coins and wire.TxType(proposal.tx_type) in KINDS and not newer_than(db, proposal)
    )
    offered = may_take_back and _may_be_signed_back(db, caller, proposal)
    return wire.CancelPsbtResponse(
        psbt_id=proposal.id,
        status=Status(proposal.status),
        released_signatures=out,
        coins_kept=proposal.keeps_coins,
        self_spend_offered=offered,
        detail=in_words(proposal, out, other, offered=offered),
    )


def _may_be_signed_back(db: Session, caller: Caller, proposal: ProposalRow) -> bool:
    """Whether a self-spend that the caller proposes could be signed now: any of its coins is on the chain."""
    vault = db.get_one(VaultRow, proposal.vault_id)
    with suppress(TooFewSigners, VaultFrozen):
        require_thawed(db, vault)
        require_signers(db, vault, {address_script(vault)}, caller.user_id, proposal.family_id)
        coins = select(ChainCoinRow.txid).join(ProposalInputRow, IS_INPUT)
        of_it = coins.where(ProposalInputRow.proposal_id == proposal.id)
        return db.scalars(of_it.limit(1)).first() is not None
    return False


def _other_version(db: Session, proposal: ProposalRow) -> str | None:
    """The newest other version that has not ended, and holds its coins."""
    if proposal.replaces_id is None and proposal.replaced_by_id is None:
        return None
    others = (each for each in reversed(members_of(db, proposal.family_id)) if each.id != proposal.id)
    return next((each.id for each in others if not has_ended(each)), None)


def in_words(proposal: ProposalRow, out: int, other: str | None, *, offered: bool) -> str:
    """``other``: the version of it that holds its coins."""
    whose = f"its coins are those of the version {other}, which goes on" if other else "its coins are free"
    if proposal.tx_type == wire.TxType.PROOF:
        return f"It held no coins. {out} of {proposal.m} signatures of the proof are out."
    if not out:
        return (
            f"The platform has no signature of it; {whose}. A signer may hold one: anyone who holds enough "
            "of them can still send it."
        )
    said = (
        f"{out} of {proposal.m} signatures are out and stay valid: anyone who holds enough of them can still "
        "send it."
    )
    if proposal.keeps_coins:
        back = "a self-spend (create-psbt with cancels_psbt_id) is confirmed, or " if offered else ""
        return f"{said} Its coins stay locked until {back}cancel-psbt with release_coins frees them."
    return f"{said} I{whose[1:]}: do not pay again before it can no longer be sent."
