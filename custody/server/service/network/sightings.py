"""Moving proposals along by what the chain shows of their coins."""

from collections.abc import Mapping, Sequence

import structlog
from sqlalchemy.orm import Session

from custody.schemas.proposals import ProposalStatus as Status
from custody.server.chain.engine import InvalidSpend, verify_transaction
from custody.server.domain.audit import Category
from custody.server.domain.lifecycle import ENDED, Event, Observation, events_for
from custody.server.domain.ports import Clock
from custody.server.service.audit.log import AuditLog
from custody.server.service.jobs.outbox import enqueue
from custody.server.service.lifecycle import Lifecycle
from custody.server.service.network.affected import affected, children_of, coins_by_proposal
from custody.server.service.network.seeing import coin_is_taken, sight_of, winner_of
from custody.server.service.network.snapshot import Snapshot
from custody.server.service.proposals.finalising import BROADCAST
from custody.server.service.system import PLATFORM, place_of
from custody.server.store.models import ChainCoin, Proposal
from multisig import Psbt, Transaction

log = structlog.get_logger()

UNSEEN = frozenset({Observation.ABSENT, Observation.OUTBID})
SEEN = frozenset({Observation.IN_MEMPOOL, Observation.MINED, Observation.MINED_ELSEWHERE})


class Sightings:
    def __init__(self, clock: Clock, audit: AuditLog, lifecycle: Lifecycle) -> None:
        self._clock = clock
        self._audit = audit
        self._lifecycle = lifecycle

    def apply(
        self,
        db: Session,
        chain: str,
        snapshot: Snapshot,
        *,
        reorganised: bool,
        finals: Mapping[str, Transaction],
    ) -> None:
        """After the coins were brought to the snapshot: every proposal whose coins may have changed.

        ``finals``: transactions that the chain shows and the platform did not have, by txid.
        """
        self._settle_all(db, chain, affected(db, chain, snapshot, reorganised=reorganised), snapshot, finals)

    def _settle_all(
        self,
        db: Session,
        chain: str,
        proposals: Sequence[Proposal],
        snapshot: Snapshot,
        finals: Mapping[str, Transaction],
    ) -> None:
        coins = coins_by_proposal(db, chain, [proposal.id for proposal in proposals])
        for proposal in proposals:
            if proposal.final_tx is None and proposal.txid_expected in finals:
                _keep_final(proposal, finals[proposal.txid_expected])
            had_ended = Status(proposal.status) in ENDED
            self._settle(db, chain, proposal, coins[proposal.id], snapshot)
            if had_ended is not (Status(proposal.status) in ENDED):
                # Whether it can be mined decides about what spends its change.
                self._settle_all(db, chain, children_of(db, proposal), snapshot, finals)

    def _settle(
        self,
        db: Session,
        chain: str,
        proposal: Proposal,
        coins: Sequence[ChainCoin | None],
        snapshot: Snapshot,
    ) -> None:
        sight = sight_of(db, proposal, coins, snapshot.hash_at)
        events = events_for(Status(proposal.status), sight)
        if Event.REOPENED in events and sight in UNSEEN and not _may_reopen(db, chain, proposal):
            return
        if Event.RELEASED in events and not proposal.keeps_coins:
            return
        for event in events:
            self._happen(db, proposal, event, coins, snapshot)
        if sight in SEEN and proposal.failure_code is not None:
            proposal.failure_code = proposal.failure_reason = None
            self._lifecycle.touch(db, proposal)
        if (
            Status(proposal.status) is Status.BROADCASTING
            and sight is Observation.ABSENT
            and proposal.final_tx
        ):
            # Evicted, or its block is gone: nodes forget, we do not.
            enqueue(db, BROADCAST, proposal.id, self._clock())

    def _happen(
        self,
        db: Session,
        proposal: Proposal,
        event: Event,
        coins: Sequence[ChainCoin | None],
        snapshot: Snapshot,
    ) -> None:
        match event:
            case Event.MINED:
                height = next((coin.spent_height for coin in coins if coin is not None), None)
                proposal.block_height = height
                proposal.block_hash = None if height is None else snapshot.hash_at.get(height)
            case Event.REORGANISED:
                proposal.block_height = proposal.block_hash = None
            case Event.REACHED_NETWORK | Event.REOPENED:
                proposal.txid = proposal.txid_expected
                proposal.failure_code = proposal.failure_reason = None
            case Event.REPLACED:
                proposal.failure_code = proposal.failure_reason = None
            case Event.COIN_SPENT:
                proposal.failure_code, proposal.failure_reason = _loss(winner_of(db, proposal, coins))
            case Event.INPUT_GONE:
                proposal.failure_code = "input-gone"
                proposal.failure_reason = (
                    "The transaction that was to make one of its coins cannot be mined any more."
                )
            case _:
                pass
        status = self._lifecycle.apply(db, proposal, event)
        log.info("proposal moved", proposal=proposal.id, chain_event=event.value, status=status.value)
        self._audit.record(
            db,
            PLATFORM,
            Category.CHAIN,
            "CANCELLED_COINS_RELEASED" if event is Event.RELEASED else f"PROPOSAL_{status.value}",
            f"proposal {proposal.id}, {event.value}",
            access=place_of(db, proposal.workspace_id),
        )


def _may_reopen(db: Session, chain: str, proposal: Proposal) -> bool:
    """It is offered to the network again: not without a final transaction, and not where another proposal has its coin."""
    return proposal.final_tx is not None and not coin_is_taken(db, chain, proposal)


def _loss(winner: Proposal | None) -> tuple[str, str]:
    if winner is None:
        return "coin-spent", "A confirmed transaction that is not this one spends one of its coins."
    return "other-version-confirmed", f"Another version of it was confirmed: {winner.id}."


def _keep_final(proposal: Proposal, transaction: Transaction) -> None:
    """Signers put it together without the platform: with it, the platform can offer it again after a reorganisation."""
    psbt = Psbt.parse(proposal.psbt)
    spent = [
        item.non_witness_utxo.outputs[item.outpoint.vout]
        for item in psbt.inputs
        if item.non_witness_utxo is not None
    ]
    try:
        verify_transaction(transaction, spent)
    except InvalidSpend as error:
        # Whoever tells us of it may tell us another witness.
        log.warning("transaction not kept", proposal=proposal.id, reason=str(error))
        return
    proposal.final_tx = transaction.serialize()
