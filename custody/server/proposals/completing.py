"""Completes what had signatures enough and waited for a named approver, once its vault asks for none that is
missing; and ends what was declined, once those who could complete it are too few. A worker does it: verifying
takes a while.
"""

from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from custody.schemas.proposals import ProposalStatus as Status
from custody.server.errors import NotInAddressBook
from custody.server.jobs.outbox import COMPLETION, Again, Finish, JobDone, Task, Verdict, enqueue
from custody.server.keys.quorums import IS_DECLINED
from custody.server.proposals.bounds import approvals_missing, lost_by_decline, require_listed
from custody.server.proposals.lifecycle import newer_than
from custody.server.proposals.records import collected_signatures
from custody.server.proposals.signing import end_by_decline, finalise
from custody.server.proposals.verifying import final_transaction
from custody.server.rules.audit import Category, Event
from custody.server.rules.credentials import PLATFORM
from custody.server.services import Tools
from custody.server.store import Store
from custody.server.store.models import DecisionRow, ProposalRow, VaultRow
from custody.server.vaults.stored import place_of, policy_of
from multisig import ProvenSpend, Psbt, Transaction

COMPLETED = Event(
    "PROPOSAL_FINALISED",
    "The vault {vault} asks for no further approval of the proposal {proposal} // tx {txid}",
    Category.SIGNING,
)
LOST = Event(
    "PROPOSAL_REJECTED",
    "The others cannot complete the proposal {proposal}, which a signer declined, any more: it has ended",
    Category.SIGNING,
)


def complete_what_waits(db: Session, vault: VaultRow, now: datetime) -> None:
    """Queues the vault's pending proposals with signatures enough, or declined, after its controls have
    changed.
    """
    given = DecisionRow.proposal_id == ProposalRow.id, DecisionRow.is_complete
    count = select(func.count()).where(*given).scalar_subquery()
    pending = ProposalRow.status == Status.PENDING.value, ProposalRow.profile_key_id.is_(None)
    waiting = select(ProposalRow.id).where(ProposalRow.vault_id == vault.id, *pending)
    for proposal_id in db.scalars(waiting.where((count >= vault.m) | IS_DECLINED)).all():
        enqueue(db, COMPLETION, proposal_id, now)


@dataclass(frozen=True)
class Completion:
    """The handler of these jobs. Idempotent: what was done or ended meanwhile is left as it is."""

    store: Store
    tools: Tools

    def __call__(self, task: Task) -> Finish:
        with self.store.read() as db:
            proposal = db.get_one(ProposalRow, task.subject)
            vault = db.get_one(VaultRow, proposal.vault_id)
            if proposal.status == Status.PENDING.value and lost_by_decline(db, vault, proposal):
                return lambda db: self._end(db, task.subject)
            if (verdict := self._not_yet(db, proposal, vault)) is not None:
                return lambda _db: verdict
            base, policy = proposal.psbt, policy_of(vault)
        final = final_transaction(ProvenSpend(Psbt.parse(base), policy))
        return lambda db: self._finish(db, task.subject, base, final)

    def _not_yet(self, db: Session, proposal: ProposalRow, vault: VaultRow) -> Verdict | None:
        if proposal.status != Status.PENDING.value or self.tools.clock() >= proposal.expires_at:
            return JobDone()
        if collected_signatures(db, proposal.id) < proposal.m:
            return JobDone()
        if approvals_missing(db, vault, proposal.id):
            return JobDone()
        # As for an approval: it goes on once the newer one has ended, or the entry is there again.
        if newer_than(db, proposal):
            return Again("It has a newer version.")
        try:
            require_listed(db, vault, proposal.psbt)
        except NotInAddressBook as error:
            return Again(error.detail)
        return None

    def _end(self, db: Session, proposal_id: str) -> Verdict:
        proposal = db.get_one(ProposalRow, proposal_id, with_for_update=True)
        vault = db.get_one(VaultRow, proposal.vault_id)
        is_pending = proposal.status == Status.PENDING.value
        if is_pending and (declined := lost_by_decline(db, vault, proposal)):
            end_by_decline(self.tools, db, proposal, declined)
            place = place_of(db, proposal.workspace_id)
            self.tools.audit.record(db, PLATFORM, LOST, place, proposal=proposal.id)
        return JobDone()

    def _finish(self, db: Session, proposal_id: str, base: bytes, final: Transaction) -> Verdict:
        proposal = db.get_one(ProposalRow, proposal_id, with_for_update=True)
        vault = db.get_one(VaultRow, proposal.vault_id)
        if (verdict := self._not_yet(db, proposal, vault)) is not None:
            return verdict
        if proposal.psbt != base:
            return Again("Its signatures have changed meanwhile.")
        finalise(self.tools, db, proposal, final)
        place = place_of(db, proposal.workspace_id)
        facts = {"vault": vault.id, "proposal": proposal.id, "txid": final.txid}
        self.tools.audit.record(db, PLATFORM, COMPLETED, place, **facts)
        return JobDone()
