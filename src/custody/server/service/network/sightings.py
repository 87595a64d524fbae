"""Moving proposals along by what the chain shows of their coins."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

import structlog
from sqlalchemy import Select, and_, or_, select
from sqlalchemy.orm import Session

from custody.schemas.proposals import ProposalStatus as Status
from custody.server.domain.audit import Category
from custody.server.domain.lifecycle import Event
from custody.server.domain.observation import Sight, events_for
from custody.server.domain.ports import Clock
from custody.server.service.audit.log import AuditLog
from custody.server.service.jobs.outbox import enqueue
from custody.server.service.network.snapshot import Snapshot
from custody.server.service.proposals.coins import lock_coins
from custody.server.service.proposals.finalising import BROADCAST
from custody.server.service.proposals.transitions import Lifecycle
from custody.server.service.system import PLATFORM, place_of
from custody.server.store.models import ChainCoin, CoinLock, Proposal, ProposalInput, Vault
from multisig import OutPoint

log = structlog.get_logger()

IN_FLIGHT = (Status.SIGNED, Status.STALLED, Status.BROADCASTING, Status.REPLACED)


class Sightings:
    def __init__(self, clock: Clock, audit: AuditLog, lifecycle: Lifecycle) -> None:
        self._clock = clock
        self._audit = audit
        self._lifecycle = lifecycle

    def apply(self, db: Session, chain: str, snapshot: Snapshot, *, reorganised: bool) -> None:
        """After the coins were brought to the snapshot: every proposal whose coins may have changed."""
        proposals = _affected(db, chain, snapshot.fork, reorganised=reorganised)
        coins = _coins(db, chain, [proposal.id for proposal in proposals])
        for proposal in proposals:
            self._settle(db, chain, proposal, coins[proposal.id], snapshot)

    def _settle(
        self,
        db: Session,
        chain: str,
        proposal: Proposal,
        coins: Sequence[ChainCoin | None],
        snapshot: Snapshot,
    ) -> None:
        sight = sight_of(proposal, coins, snapshot.hash_at)
        events = events_for(Status(proposal.status), sight)
        if Event.REOPENED in events and not _relock(db, chain, proposal):
            return
        for event in events:
            self._happen(db, proposal, event, coins, snapshot)
        if Status(proposal.status) is Status.BROADCASTING and sight is Sight.ABSENT and proposal.final_tx:
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
        if event is Event.MINED:
            height = next((coin.spent_height for coin in coins if coin is not None), None)
            proposal.block_height = height
            proposal.block_hash = None if height is None else snapshot.hash_at.get(height)
        elif event is Event.REORGANISED:
            proposal.block_height = proposal.block_hash = None
        elif event is Event.REACHED_NETWORK:
            proposal.txid = proposal.txid_expected
            proposal.failure_code = proposal.failure_reason = None
        elif event is Event.COIN_SPENT:
            proposal.failure_code = "coin-spent"
            proposal.failure_reason = "A confirmed transaction that is not this one spends one of its coins."
        elif event is Event.REOPENED:
            proposal.failure_code = proposal.failure_reason = None
        status = self._lifecycle.apply(db, proposal, event)
        log.info("proposal moved", proposal=proposal.id, chain_event=event.value, status=status.value)
        self._audit.record(
            db,
            PLATFORM,
            Category.CHAIN,
            f"PROPOSAL_{status.value}",
            f"proposal {proposal.id}, {event.value}",
            access=place_of(db, proposal.workspace_id),
        )


def sight_of(proposal: Proposal, coins: Sequence[ChainCoin | None], hash_at: Mapping[int, str]) -> Sight:
    """`coins` are the proposal's inputs in order; None for one that the chain does not show at all."""
    spent = [coin for coin in coins if coin is not None and coin.spent_by is not None]
    ours = [coin for coin in spent if coin.spent_by == proposal.txid_expected]
    if any(coin.spent_height is not None for coin in spent if coin not in ours):
        return Sight.COIN_SPENT
    if len(ours) != len(coins):
        return Sight.ABSENT
    height = ours[0].spent_height
    if height is None:
        return Sight.IN_MEMPOOL
    if proposal.block_height is None:
        return Sight.MINED
    same = (proposal.block_height, proposal.block_hash) == (height, hash_at.get(height))
    return Sight.MINED if same else Sight.MINED_ELSEWHERE


def _affected(db: Session, chain: str, fork: int, *, reorganised: bool) -> list[Proposal]:
    pending_and_spent = and_(
        Proposal.status == Status.PENDING.value,
        Proposal.id.in_(_with_spent_coin(chain)),
    )
    which = [Proposal.status.in_([status.value for status in IN_FLIGHT]), pending_and_spent]
    if reorganised:
        which.append(and_(Proposal.status == Status.CONFIRMED.value, Proposal.block_height > fork))
        which.append(and_(Proposal.status == Status.INVALIDATED.value, Proposal.final_tx.is_not(None)))
    query = (
        select(Proposal)
        .join(Vault, Vault.id == Proposal.vault_id)
        .where(Vault.chain == chain, or_(*which))
        .order_by(Proposal.created_at, Proposal.id)
    )
    return list(db.scalars(query))


def _with_spent_coin(chain: str) -> Select[str]:
    return (
        select(ProposalInput.proposal_id)
        .join(ChainCoin, and_(ChainCoin.txid == ProposalInput.txid, ChainCoin.vout == ProposalInput.vout))
        .where(ChainCoin.chain == chain, ChainCoin.spent_by.is_not(None))
    )


def _coins(db: Session, chain: str, proposal_ids: Iterable[str]) -> dict[str, list[ChainCoin | None]]:
    """Of each proposal its inputs' coins, in order."""
    query = (
        select(ProposalInput, ChainCoin)
        .outerjoin(
            ChainCoin,
            and_(
                ChainCoin.chain == chain,
                ChainCoin.txid == ProposalInput.txid,
                ChainCoin.vout == ProposalInput.vout,
            ),
        )
        .where(ProposalInput.proposal_id.in_(list(proposal_ids)))
        .order_by(ProposalInput.proposal_id, ProposalInput.input_index)
    )
    found: dict[str, list[ChainCoin | None]] = defaultdict(list)
    for place, coin in db.execute(query):
        found[place.proposal_id].append(coin)
    return found


def _relock(db: Session, chain: str, proposal: Proposal) -> bool:
    """Its coins were free meanwhile: whether none of them has gone to another proposal. Then they are locked again."""
    inputs = list(db.scalars(select(ProposalInput).where(ProposalInput.proposal_id == proposal.id)))
    if any(db.get(CoinLock, (chain, place.txid, place.vout)) is not None for place in inputs):
        return False
    lock_coins(db, chain, [OutPoint(place.txid, place.vout) for place in inputs], proposal.family_id)
    return True
