"""The approval that meets the threshold: the final transaction checked by consensus, then stored, queued and recorded in one transaction."""

from sqlalchemy.orm import Session

from custody.server.chain.engine import verify_transaction
from custody.server.domain.audit import Category
from custody.server.domain.caller import Caller, WorkspaceAccess
from custody.server.domain.lifecycle import Event
from custody.server.domain.ports import Clock
from custody.server.service.audit.log import AuditLog
from custody.server.service.jobs.outbox import enqueue
from custody.server.service.lifecycle import Lifecycle
from custody.server.store.models import Proposal
from multisig import ProvenSpend, Psbt, Transaction, TxOut

BROADCAST = "broadcast"


class Finaliser:
    def __init__(self, clock: Clock, audit: AuditLog, lifecycle: Lifecycle) -> None:
        self._clock = clock
        self._audit = audit
        self._lifecycle = lifecycle

    def store(
        self,
        db: Session,
        caller: Caller,
        access: WorkspaceAccess,
        proposal: Proposal,
        transaction: Transaction,
    ) -> None:
        """What `final_transaction` made: SIGNED, due for broadcast."""
        assert transaction.txid == proposal.txid_expected, "segwit inputs leave the txid alone"
        self._store(db, proposal, transaction)
        self._audit.record(
            db,
            caller,
            Category.SIGNING,
            "PROPOSAL_FINALISED",
            f"proposal {proposal.id}, tx {transaction.txid}",
            access=access,
        )

    def _store(self, db: Session, proposal: Proposal, transaction: Transaction) -> None:
        proposal.final_tx = transaction.serialize()
        self._lifecycle.apply(db, proposal, Event.THRESHOLD_MET)
        enqueue(db, BROADCAST, proposal.id, self._clock())


def final_transaction(signed: ProvenSpend) -> Transaction:
    """Of one whose every input has M verified signatures. It needs no database.

    Raises InvalidSpend where the consensus engine refuses what our own checks let pass: a fault of ours, which
    must never reach the network.
    """
    transaction = signed.finalise()
    verify_transaction(transaction, _spent_outputs(signed.psbt))
    return transaction


def _spent_outputs(psbt: Psbt) -> list[TxOut]:
    """From the previous transactions, whose hashes the inputs name: an amount cannot be wrong in them."""
    outputs = []
    for item in psbt.inputs:
        assert item.non_witness_utxo is not None, "a PSBT of ours carries every previous transaction"
        outputs.append(item.non_witness_utxo.outputs[item.outpoint.vout])
    return outputs
