"""Broadcasts final transactions until the network accepts them, and from time to time again those that wait
in the mempool: nodes restart, and may evict or never have received them (P37).
"""

from datetime import datetime, timedelta
from typing import Final

import structlog
from sqlalchemy import select
from sqlalchemy.orm import Session

from custody.schemas.proposals import ProposalStatus as Status
from custody.schemas.proposals import TroubleKind
from custody.server.audit.log import AuditLog
from custody.server.chain import backend
from custody.server.errors import ChainUnavailable, VaultFrozen
from custody.server.jobs.outbox import BROADCAST, Again, Dead, Finish, JobDone, Task, Verdict, enqueue
from custody.server.jobs.tidying import SWEPT_AT_ONCE
from custody.server.network.backends import Backends, backend_of
from custody.server.network.sightings import is_outbid
from custody.server.proposals.bounds import approvals_missing, require_thawed
from custody.server.proposals.lifecycle import Lifecycle, taken_back_by
from custody.server.rules.audit import Category, Event
from custody.server.rules.credentials import PLATFORM
from custody.server.rules.lifecycle import TO_BROADCAST, LifecycleEvent
from custody.server.rules.ports import Clock, RandomBytes
from custody.server.store import Store
from custody.server.store.models import ProposalRow, VaultRow
from custody.server.vaults.stored import place_of
from multisig import Transaction

log = structlog.get_logger()

SENT = Event(
    "TRANSACTION_BROADCAST", "sent the proposal {proposal} to the network // tx {txid}", Category.CHAIN
)
STALLED = Event(
    "BROADCAST_STALLED", "could not send the proposal {proposal} to the network yet: {code}", Category.CHAIN
)
REFUSED = Event("BROADCAST_REFUSED", "The network refused the proposal {proposal}: {code}", Category.CHAIN)
EXPIRED = Event(
    "PROPOSAL_EXPIRED",
    "ended the proposal {proposal}, whose vault asks for another approval: it would have expired // {code}",
    Category.PROPOSALS,
)
OUTBID = Event(
    "PROPOSAL_REPLACED",
    "A newer version of the proposal {proposal} is on the network: {newer_proposal}",
    Category.CHAIN,
)


class Broadcaster:
    """The handler of broadcast jobs. Idempotent by txid: a crash or two workers may run it twice."""

    def __init__(self, store: Store, backends: Backends, audit: AuditLog, lifecycle: Lifecycle) -> None:
        self._store = store
        self._backends = backends
        self._audit = audit
        self._lifecycle = lifecycle

    def __call__(self, task: Task) -> Finish:
        with self._store.read() as db:
            proposal = db.get_one(ProposalRow, task.subject)
            chain = db.get_one(VaultRow, proposal.vault_id).chain
            status, raw = Status(proposal.status), proposal.final_tx
            is_withheld = _withheld(db, proposal) is not None
        if raw is None or status not in TO_BROADCAST | {Status.BROADCASTING}:
            return lambda _db: JobDone()
        if is_withheld:
            return lambda db: self._withhold(db, task.subject)
        outcome: backend.Outcome | ChainUnavailable
        try:
            outcome = backend_of(self._backends, chain).broadcast(Transaction.parse(raw))
        except ChainUnavailable as error:
            outcome = error
        self._store.meters.broadcasts.labels(chain, _in_a_word(outcome)).inc()
        return lambda db: self._record(db, task.subject, outcome)

    def _withhold(self, db: Session, proposal_id: str) -> Verdict:
        proposal = db.get_one(ProposalRow, proposal_id, with_for_update=True)
        withheld = _withheld(db, proposal)
        if withheld is None:
            return Again("It is not withheld any more.")
        code, reason = withheld
        if code == _UNAPPROVED:
            proposal.final_tx = proposal.failure_code = proposal.failure_reason = None
            self._lifecycle.apply(db, proposal, LifecycleEvent.APPROVAL_ASKED)
            self._note(db, proposal, STALLED, code=code)
            if self._lifecycle.clock() >= proposal.expires_at:
                proposal.failure_reason = f"{reason} It would have expired meanwhile."
                self._lifecycle.apply(db, proposal, LifecycleEvent.EXPIRE)
                self._note(db, proposal, EXPIRED, code=code)
            return JobDone()
        if Status(proposal.status) in TO_BROADCAST:
            self._stall(db, proposal, code, reason)
        return Again(reason)

    def _record(self, db: Session, proposal_id: str, outcome: backend.Outcome | ChainUnavailable) -> Verdict:
        proposal = db.get_one(ProposalRow, proposal_id, with_for_update=True)
        match outcome:
            case backend.Accepted() | backend.AlreadyKnown():
                self._taken(db, proposal)
                return JobDone()
            case backend.BroadcastRefused():
                return self._refused(db, proposal, outcome)
            case ChainUnavailable():
                if Status(proposal.status) in TO_BROADCAST:
                    self._stall(db, proposal, outcome.code.value, outcome.detail)
                return Again(outcome.detail)

    def _taken(self, db: Session, proposal: ProposalRow) -> None:
        if Status(proposal.status) in TO_BROADCAST:
            proposal.txid = proposal.txid_expected
            proposal.failure_code = proposal.failure_reason = None
            self._lifecycle.apply(db, proposal, LifecycleEvent.REACHED_NETWORK)
            self._note(db, proposal, SENT, txid=proposal.txid)
        elif Status(proposal.status) is Status.BROADCASTING and proposal.failure_code is not None:
            proposal.failure_code = proposal.failure_reason = None
            if proposal.trouble == TroubleKind.NOT_IN_MEMPOOL:
                # The node has it now; the watcher confirms that at its next poll.
                proposal.trouble = proposal.trouble_words = proposal.trouble_since = None
            self._lifecycle.touch(db, proposal)

    def _refused(self, db: Session, proposal: ProposalRow, refused: backend.BroadcastRefused) -> Verdict:
        code, status = refused.code.value, Status(proposal.status)
        if status not in TO_BROADCAST:
            if status is Status.BROADCASTING and proposal.failure_code != code:
                # The node refuses a transaction that was on the network before.
                proposal.failure_code, proposal.failure_reason = code, _in_words(refused)
                self._lifecycle.touch(db, proposal)
            return Again(refused.reason)
        if refused.code in backend.FOR_GOOD:
            proposal.failure_code, proposal.failure_reason = code, refused.reason
            self._lifecycle.apply(db, proposal, LifecycleEvent.REFUSED_FOR_GOOD)
            log.error("broadcast refused", proposal=proposal.id, code=refused.code, reason=refused.reason)
            self._note(db, proposal, REFUSED, code=code)
            return Dead(refused.reason)
        if is_outbid(db, proposal):
            # Not a failure: the node has the version that pays more.
            proposal.failure_code = proposal.failure_reason = None
            self._lifecycle.apply(db, proposal, LifecycleEvent.REPLACED)
            self._note(db, proposal, OUTBID, newer_proposal=proposal.replaced_by_id)
            return JobDone()
        self._stall(db, proposal, refused.code.value, _in_words(refused))
        return Again(refused.reason)

    def _stall(self, db: Session, proposal: ProposalRow, code: str, reason: str) -> None:
        first = Status(proposal.status) is Status.SIGNED
        if not first and proposal.failure_code == code:
            # ``updated_at`` stays: alerts use the time of the first failure.
            if proposal.failure_reason != reason:
                proposal.failure_reason = reason
                self._lifecycle.show(db, proposal)
            return
        proposal.failure_code, proposal.failure_reason = code, reason
        self._lifecycle.apply(db, proposal, LifecycleEvent.BACKEND_DOWN)
        if first:
            log.warning("broadcast stalled", proposal=proposal.id, code=code, reason=reason)
            self._note(db, proposal, STALLED, code=code)

    def _note(self, db: Session, proposal: ProposalRow, event: Event, **facts: str | None) -> None:
        place = place_of(db, proposal.workspace_id)
        self._audit.record(db, PLATFORM, event, place, proposal=proposal.id, **facts)


_UNAPPROVED: Final = "approval-missing"


def _withheld(db: Session, proposal: ProposalRow) -> tuple[str, str] | None:
    """Why the platform does not broadcast it now, as a code and a sentence: its vault names an approver since
    it was signed, its vault or the one that replaces it is frozen, or a newer version returns its coins to
    the vault. A vault's controls do not apply to a forward, which spends a member's own coins.
    """
    if proposal.profile_key_id is None:
        vault = db.get_one(VaultRow, proposal.vault_id)
        if Status(proposal.status) in TO_BROADCAST and approvals_missing(db, vault, proposal.id):
            return _UNAPPROVED, "Its vault asks for an approval that it lacks."
        try:
            require_thawed(db, vault)
        except VaultFrozen as error:
            return "vault-frozen", error.detail
    back = taken_back_by(db, proposal)
    if back is not None:
        return "taken-back", f"It is being taken back by {back.id}."
    return None


def _in_a_word(outcome: backend.Outcome | ChainUnavailable) -> str:
    match outcome:
        case backend.Accepted():
            return "accepted"
        case backend.AlreadyKnown():
            return "already-known"
        case backend.BroadcastRefused(code=code):
            return code.value
        case ChainUnavailable():
            return "unavailable"


def _in_words(refused: backend.BroadcastRefused) -> str:
    if refused.code is backend.RefusalCode.FEE_TOO_LOW:
        return (
            f"{refused.reason}. Nodes ask for a higher fee. It is offered again; create-psbt with "
            "replaces_psbt_id raises its fee."
        )
    return refused.reason


# Core's wallet rebroadcasts every 12 to 36 hours, for privacy. Here payees know which transactions are ours,
# and a payment that a node lost should not wait for the next block.
LEAST = timedelta(minutes=10)
# Spreads platforms in time, and makes the moment unpredictable.
JITTER_SECONDS = 600


class Rebroadcast:
    """Rebroadcasts everything that waits in the mempool. At each block the watcher only rebroadcasts what has
    left it.
    """

    def __init__(self, store: Store, clock: Clock, random: RandomBytes) -> None:
        self._store = store
        self._clock = clock
        self._random = random
        self._next = self._after(clock())

    def __call__(self) -> int:
        now = self._clock()
        if now < self._next:
            return 0
        self._next = self._after(now)
        with self._store.read() as db:
            waiting = select(ProposalRow.id).where(
                ProposalRow.status == Status.BROADCASTING.value, ProposalRow.final_tx.is_not(None)
            )
            ids = list(db.scalars(waiting.order_by(ProposalRow.id)))
        for start in range(0, len(ids), SWEPT_AT_ONCE):
            with self._store.write() as db:
                for proposal_id in ids[start : start + SWEPT_AT_ONCE]:
                    enqueue(db, BROADCAST, proposal_id, now)
        return len(ids)

    def _after(self, moment: datetime) -> datetime:
        jitter = int.from_bytes(self._random(4)) % JITTER_SECONDS
        return moment + LEAST + timedelta(seconds=jitter)
