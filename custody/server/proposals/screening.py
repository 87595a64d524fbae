"""A word from the operator's own program before any signer sees a proposal: the webhook that the vault names
for it is asked (`webhooks.delivery`), again and again, until it allows or refuses, or its time is over.

The proposal waits as PENDING, and ``screening`` says that it is held: its coins are locked and limits count
it, but no signer gets it. One change ends that, whoever comes first: an answer, the deadline, a cancel.
"""

from datetime import datetime, timedelta
from functools import partial

from sqlalchemy import literal_column, select
from sqlalchemy.orm import Session

from custody.schemas.proposals import TxType
from custody.schemas.webhooks import EventKind, ScreeningAnswer
from custody.server.errors import StateConflict
from custody.server.jobs.tidying import Sweep, end_due
from custody.server.mail.waiting import tell_waiting
from custody.server.proposals.lifecycle import HELD
from custody.server.rules.audit import Category, Event
from custody.server.rules.credentials import PLATFORM
from custody.server.rules.lifecycle import LifecycleEvent
from custody.server.services import Tools
from custody.server.store import Store
from custody.server.store.models import ProposalRow, VaultRow, VaultSignerRow, WebhookRow
from custody.server.vaults.stored import place_of
from custody.server.webhooks.events import WebhookEvents, event_data

_WHOSE = "[{unanswered}No decision of the screening in time|The screening's answer]"
PASSED = Event(
    "SCREENING_PASSED", _WHOSE + ": the proposal {proposal} went on[: {reason}]", Category.PROPOSALS
)
REFUSED = Event(
    "SCREENING_REFUSED", _WHOSE + ": the proposal {proposal} was refused[: {reason}]", Category.PROPOSALS
)
# A literal, as in the index's condition.
_IS_HELD = ProposalRow.screening == literal_column(f"'{HELD}'")


def is_screened(vault: VaultRow, proposal: ProposalRow) -> bool:
    """Not what moves nothing, nor a member's own money; nor a newer version, which pays what the first one
    did, or the vault.
    """
    is_payment = proposal.profile_key_id is None and proposal.tx_type != TxType.PROOF.value
    return vault.screening_webhook_id is not None and is_payment and proposal.replaces_id is None


def hold(db: Session, events: WebhookEvents, vault: VaultRow, proposal: ProposalRow) -> None:
    """Holds a new proposal, or one that was held, and asks the vault's program. Its time begins once it is
    asked (`hear`). Raises StateConflict where it cannot be.
    """
    assert vault.screening_webhook_id is not None, "the vault is screened"
    if db.get_one(WebhookRow, vault.screening_webhook_id).disabled_at is not None:
        raise StateConflict(
            f"The webhook that screens the vault {vault.name} is disabled.",
            hint="Have it enabled again, or another one named in the vault's controls.",
        )
    proposal.screening, proposal.screening_until = HELD, None
    data = event_data(
        proposal,
        recipients=proposal.recipients,
        amounts_sats=proposal.amounts_sats,
        op_return=None if proposal.op_return_hex is None else f"0x{proposal.op_return_hex}",
        answer_by=None,
    )
    to, kind = vault.screening_webhook_id, EventKind.PROPOSAL_SCREENING
    events.send(db, to, proposal.workspace_id, kind, data)


def name_another(db: Session, tools: Tools, vault: VaultRow) -> None:
    """What is held is asked of the program that the vault names now; with none, it goes on."""
    held = select(ProposalRow).where(ProposalRow.vault_id == vault.id, _IS_HELD)
    for proposal in db.scalars(held.with_for_update()).all():
        if vault.screening_webhook_id is None:
            proposal.screening_until = tools.clock()
        else:
            hold(db, tools.events, vault, proposal)


def tell_signers(db: Session, vault: VaultRow, now: datetime) -> None:
    """Also the maker: a program may have proposed it in their name."""
    signers = select(VaultSignerRow.user_id).where(VaultSignerRow.vault_id == vault.id)
    tell_waiting(db, signers, now)


def answer_by(db: Session, proposal_id: str, now: datetime) -> datetime:
    """The deadline of the program that is asked now."""
    proposal = db.get_one(ProposalRow, proposal_id)
    seconds = db.get_one(VaultRow, proposal.vault_id).screening_seconds
    return proposal.screening_until or now + timedelta(seconds=seconds)


def is_open(db: Session, proposal_id: str, webhook_id: str, *, locked: bool = False) -> bool:
    """Whether the word of this webhook's program may still decide. ``locked``: it is to stay so."""
    proposal = db.get_one(ProposalRow, proposal_id, with_for_update=locked)
    vault = db.get_one(VaultRow, proposal.vault_id)
    return proposal.screening == HELD and vault.screening_webhook_id == webhook_id


def hear(
    db: Session, tools: Tools, proposal_id: str, answer: ScreeningAnswer | None, until: datetime
) -> datetime | None:
    """Records, where `is_open`, that the program was asked, and what it answered, if anything. ``until``: its
    deadline, if it was asked for the first time. Returns until when it may be asked again; None where that is
    over. A late answer changes nothing.
    """
    proposal = db.get_one(ProposalRow, proposal_id)
    if tools.clock() >= (proposal.screening_until or proposal.expires_at):
        return None
    if proposal.screening_until is None:
        proposal.screening_until = until
        tools.lifecycle.touch(db, proposal)
    if answer is not None and answer.decision != "hold":
        _decide(tools, db, proposal, "allowed" if answer.decision == "allow" else "refused", answer.reason)
        return None
    if answer is not None and answer.reason != proposal.screening_reason:
        proposal.screening_reason = answer.reason
        tools.lifecycle.touch(db, proposal)
    return proposal.screening_until


def screening_deadlines(store: Store, tools: Tools) -> Sweep:
    """Decides those whose deadline has passed by what their vaults say then."""

    def lapse(db: Session, proposal: ProposalRow) -> None:
        _decide(tools, db, proposal, "unanswered", proposal.screening_reason)

    return partial(end_due, store, tools.clock, ProposalRow.screening_until, _IS_HELD, lapse)


def _decide(tools: Tools, db: Session, proposal: ProposalRow, state: str, reason: str | None) -> None:
    unanswered, vault = state == "unanswered", db.get_one(VaultRow, proposal.vault_id)
    fails_open = vault.screening_webhook_id is None or vault.screening_fails_open
    goes_on = fails_open if unanswered else state == "allowed"
    proposal.screening, proposal.screening_reason = state, reason
    if goes_on:
        tools.lifecycle.touch(db, proposal)
        tell_signers(db, vault, tools.clock())
    else:
        did = "gave no decision in time" if unanswered else "refused it"
        end = "; its webhook's deliveries say what came." if unanswered else "."
        proposal.failure_code = "screening"
        proposal.failure_reason = f"The vault's screening {did}" + (f": {reason}" if reason else end)
        tools.lifecycle.apply(db, proposal, LifecycleEvent.REFUSED)
    facts = {"proposal": proposal.id, "reason": reason, "unanswered": unanswered}
    place, event = place_of(db, proposal.workspace_id), PASSED if goes_on else REFUSED
    tools.audit.record(db, PLATFORM, event, place, event_data(proposal), **facts)
