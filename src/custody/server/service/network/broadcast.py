"""Taking a final transaction to the network, as often as it takes."""

import structlog
from sqlalchemy.orm import Session

from custody.schemas.proposals import ProposalStatus as Status
from custody.server.chain.backend import Accepted, AlreadyKnown, ChainBackend, Outcome, RefusalCode, Refused
from custody.server.domain.audit import Category
from custody.server.domain.errors import ChainUnavailable
from custody.server.domain.lifecycle import TO_BROADCAST, Event
from custody.server.service.audit.log import AuditLog
from custody.server.service.jobs.outbox import Again, Dead, Done, Finish, Task, Verdict
from custody.server.service.network.market import Backends, backend_of
from custody.server.service.proposals.transitions import Lifecycle
from custody.server.service.system import PLATFORM, place_of
from custody.server.store import Store
from custody.server.store.models import Proposal, Vault
from multisig import Transaction

log = structlog.get_logger()

# No later block, mempool or other node makes these acceptable. A fee above one node's cap is not among them: the
# transaction is valid and signed, so its coins must stay locked, or the payment could be made twice.
FOR_GOOD = frozenset({RefusalCode.INVALID_SCRIPT, RefusalCode.MALFORMED, RefusalCode.TOO_LARGE})


class Broadcaster:
    """The handler of broadcast jobs. Idempotent by txid: done twice, after a crash or by two workers, it is done once."""

    def __init__(self, store: Store, backends: Backends, audit: AuditLog, lifecycle: Lifecycle) -> None:
        self._store = store
        self._backends = backends
        self._audit = audit
        self._lifecycle = lifecycle

    def __call__(self, task: Task) -> Finish:
        with self._store.read() as db:
            proposal = db.get_one(Proposal, task.subject)
            chain = db.get_one(Vault, proposal.vault_id).chain
            status, raw = Status(proposal.status), proposal.final_tx
        if raw is None or status not in TO_BROADCAST | {Status.BROADCASTING}:
            return lambda _db: Done()
        outcome = self._send(chain, Transaction.parse(raw))
        return lambda db: self._record(db, task.subject, outcome)

    def _send(self, chain: str, transaction: Transaction) -> Outcome | ChainUnavailable:
        try:
            return _offer(backend_of(self._backends, chain), transaction)
        except ChainUnavailable as error:
            return error

    def _record(self, db: Session, proposal_id: str, outcome: Outcome | ChainUnavailable) -> Verdict:
        proposal = db.get_one(Proposal, proposal_id, with_for_update=True)
        waiting = Status(proposal.status) in TO_BROADCAST
        match outcome:
            case Accepted() | AlreadyKnown():
                if waiting:
                    self._reached_network(db, proposal)
                return Done()
            case Refused(code=code) if waiting and code in FOR_GOOD:
                self._fail(db, proposal, outcome)
                return Dead(outcome.reason)
            case Refused(reason=reason):
                if waiting:
                    self._stall(db, proposal, outcome.code.value, reason)
                return Again(reason)
            case ChainUnavailable():
                if waiting:
                    self._stall(db, proposal, outcome.code.value, outcome.detail)
                return Again(outcome.detail)

    def _reached_network(self, db: Session, proposal: Proposal) -> None:
        proposal.txid = proposal.txid_expected
        proposal.failure_code = proposal.failure_reason = None
        self._lifecycle.apply(db, proposal, Event.REACHED_NETWORK)
        self._note(db, proposal, "TRANSACTION_BROADCAST", f"tx {proposal.txid}")

    def _stall(self, db: Session, proposal: Proposal, code: str, reason: str) -> None:
        first = Status(proposal.status) is Status.SIGNED
        proposal.failure_code, proposal.failure_reason = code, reason
        self._lifecycle.apply(db, proposal, Event.BACKEND_DOWN)
        if first:
            log.warning("broadcast stalled", proposal=proposal.id, code=code, reason=reason)
            self._note(db, proposal, "BROADCAST_STALLED", code)

    def _fail(self, db: Session, proposal: Proposal, refused: Refused) -> None:
        proposal.failure_code, proposal.failure_reason = refused.code.value, refused.reason
        self._lifecycle.apply(db, proposal, Event.REFUSED_FOR_GOOD)
        log.error("broadcast refused", proposal=proposal.id, code=refused.code, reason=refused.reason)
        self._note(db, proposal, "BROADCAST_REFUSED", refused.code.value)

    def _note(self, db: Session, proposal: Proposal, action: str, what: str) -> None:
        access = place_of(db, proposal.workspace_id)
        self._audit.record(
            db, PLATFORM, Category.CHAIN, action, f"proposal {proposal.id}, {what}", access=access
        )


def _offer(backend: ChainBackend, transaction: Transaction) -> Outcome:
    """The node's own acceptance test first: what it refuses is not sent."""
    tested = backend.test_accept(transaction)
    return backend.broadcast(transaction) if isinstance(tested, Accepted) else tested
