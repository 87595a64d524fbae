"""Updates proposals by what the chain shows of their coins.

A new snapshot of the chain selects the proposals that may have changed. The state of a proposal's transaction
follows from its coins, the transactions that created them, and its other versions.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import structlog
from sqlalchemy import and_, select
from sqlalchemy.orm import Session

from custody.schemas.proposals import ProposalStatus as Status
from custody.schemas.proposals import TxType
from custody.server.audit.log import AuditLog
from custody.server.chain.engine import InvalidSpend, verify_transaction
from custody.server.jobs.outbox import BROADCAST, enqueue
from custody.server.network.deposits import ChainSnapshot
from custody.server.proposals.lifecycle import (
    IS_ENDED,
    IS_INPUT,
    TOKEN_KINDS,
    Lifecycle,
    age_in_family,
    missing_deposits,
    newer_than,
    note_trouble,
)
from custody.server.proposals.verifying import spent_outputs
from custody.server.rules.audit import Category, Event
from custody.server.rules.credentials import PLATFORM
from custody.server.rules.lifecycle import ENDED, LifecycleEvent, Observation, events_for
from custody.server.store.models import (
    ChainBlockRow,
    ChainCoinRow,
    CoinLockRow,
    ProposalInputRow,
    ProposalRow,
    TokenBlockRow,
    VaultRow,
)
from custody.server.store.store import rows_in
from custody.server.vaults.stored import place_of
from multisig import FeeRate, Psbt, Transaction

log = structlog.get_logger()

UNSEEN = frozenset({Observation.ABSENT, Observation.OUTBID})
SEEN = frozenset({Observation.IN_MEMPOOL, Observation.MINED, Observation.MINED_ELSEWHERE})

# ``cause``: the event of the chain.
COINS_RELEASED = Event(
    "CANCELLED_COINS_RELEASED",
    "The coins of the proposal {proposal}, which has ended, are free // {cause}",
    Category.CHAIN,
)
# Of those whose own names do not say it.
_WORDS = {
    Status.BROADCASTING: "on its way",
    Status.CONFIRMED: "confirmed in a block",
    Status.REPLACED: "replaced by another version",
    Status.SIGNED: "signed, and not on the network",
    Status.STALLED: "signed, and not on the network",
}
MOVED = {
    status: Event(
        f"PROPOSAL_{status.value}",
        f"found the proposal {{proposal}} {_WORDS.get(status, status.value.lower())} // {{cause}}",
        Category.CHAIN,
    )
    for status in Status
} | {
    Status.INVALIDATED: Event(
        "PROPOSAL_INVALIDATED",
        "found the proposal {proposal} no longer possible"
        "[: {winner_proposal} is confirmed in its place|: its coins are gone] // {cause}",
        Category.CHAIN,
    )
}


@dataclass(frozen=True)
class Sightings:
    """What one snapshot of a chain shows, written in one transaction after the coins.

    ``raws``: by txid, transactions on the chain that the platform did not have. ``required_rate``: the
    estimated rate for half a day, where known.
    """

    db: Session
    audit: AuditLog
    lifecycle: Lifecycle
    chain: str
    snapshot: ChainSnapshot
    raws: Mapping[str, bytes]
    required_rate: FeeRate | None

    def settle(self, proposals: Sequence[ProposalRow]) -> bool:
        """Updates these proposals (`affected`). Returns False where a token's mined transaction still waits
        for the index of tokens to read its block.
        """
        db, is_settled = self.db, True
        coins = coins_by_proposal(db, self.chain, [proposal.id for proposal in proposals])
        for proposal in proposals:
            if proposal.final_tx is None and proposal.txid_expected in self.raws:
                _keep_final(proposal, Transaction.parse(self.raws[proposal.txid_expected]))
            had_ended = Status(proposal.status) in ENDED
            is_settled &= self._settle(proposal, coins[proposal.id])
            if note_trouble(db, proposal, coins[proposal.id], self.required_rate, self.lifecycle.clock()):
                self.lifecycle.show(db, proposal)
            if had_ended is not (Status(proposal.status) in ENDED):
                # Whether it can be mined decides about the proposals that spend its change.
                spending = select(ProposalInputRow.proposal_id).where(
                    ProposalInputRow.txid == proposal.txid_expected
                )
                children = db.scalars(select(ProposalRow).where(ProposalRow.id.in_(spending)))
                is_settled &= self.settle(in_order(db, children))
        return is_settled

    def _settle(self, proposal: ProposalRow, coins: Sequence[ChainCoinRow | None]) -> bool:
        """Returns False where the transaction is mined, but the index of tokens has not read the block."""
        db = self.db
        observation = observe(db, proposal, coins, self.snapshot)
        events = events_for(Status(proposal.status), observation)
        block = self._block_of(coins)
        is_settled = LifecycleEvent.MINED not in events or self._is_judged(proposal, *block)
        if not is_settled:
            events = tuple(event for event in events if event is not LifecycleEvent.MINED)
        # It can be broadcast again only where its final transaction is stored, and its coins are free.
        reopens = LifecycleEvent.REOPENED in events and observation in UNSEEN
        if reopens and (proposal.final_tx is None or coin_is_taken(db, self.chain, proposal)):
            return True
        if LifecycleEvent.RELEASED in events and not proposal.keeps_coins:
            return True
        for event in events:
            self._happen(proposal, event, coins, block)
        if observation in SEEN and proposal.failure_code is not None:
            proposal.failure_code = proposal.failure_reason = None
            self.lifecycle.touch(db, proposal)
        if (
            Status(proposal.status) is Status.BROADCASTING
            and observation is Observation.ABSENT
            and proposal.final_tx
        ):
            # It was evicted, or its block was disconnected.
            enqueue(db, BROADCAST, proposal.id, self.lifecycle.clock())
        return is_settled

    def _block_of(self, coins: Sequence[ChainCoinRow | None]) -> tuple[int | None, str | None]:
        """Height and hash of the block that spends a proposal's coins, as far as known. A snapshot has only
        its new blocks; a transaction that waited for the index of tokens is in an older one.
        """
        height = next((coin.spent_height for coin in coins if coin is not None), None)
        block, place = self.snapshot.block_at(height), (self.chain, height)
        if height is None or block is not None:
            return height, None if block is None else block.hash
        seen = self.db.get(ChainBlockRow, place) or self.db.get(TokenBlockRow, place)
        return height, None if seen is None else seen.block_hash

    def _is_judged(self, proposal: ProposalRow, height: int | None, block_hash: str | None) -> bool:
        """Whether the index of tokens has read the block of a token's transaction. So the proposal, the
        token's or call's record and later calls see it confirmed at the same time.
        """
        if TxType(proposal.tx_type) not in TOKEN_KINDS:
            return True
        read = self.db.get(TokenBlockRow, (self.chain, height))
        return read is not None and read.block_hash == block_hash

    def _happen(
        self,
        proposal: ProposalRow,
        event: LifecycleEvent,
        coins: Sequence[ChainCoinRow | None],
        block: tuple[int | None, str | None],
    ) -> None:
        db = self.db
        winner = winner_of(db, proposal, coins) if event is LifecycleEvent.COIN_SPENT else None
        match event:
            case LifecycleEvent.MINED:
                proposal.block_height, proposal.block_hash = block
            case LifecycleEvent.REORGANISED:
                proposal.block_height = proposal.block_hash = None
            case LifecycleEvent.REACHED_NETWORK | LifecycleEvent.REOPENED:
                proposal.txid = proposal.txid_expected
                proposal.failure_code = proposal.failure_reason = None
            case LifecycleEvent.REPLACED:
                proposal.failure_code = proposal.failure_reason = None
            case LifecycleEvent.COIN_SPENT if winner is not None:
                proposal.failure_code = "other-version-confirmed"
                proposal.failure_reason = f"Another version of it was confirmed: {winner.id}."
            case LifecycleEvent.COIN_SPENT:
                proposal.failure_code = "coin-spent"
                proposal.failure_reason = (
                    "A confirmed transaction that is not this one spends one of its coins."
                )
            case LifecycleEvent.INPUT_GONE:
                proposal.failure_code = "input-gone"
                proposal.failure_reason = (
                    "The transaction that was to make one of its coins cannot be mined any more."
                )
            case _:
                pass
        status = self.lifecycle.apply(db, proposal, event)
        log.info("proposal moved", proposal=proposal.id, chain_event=event.value, status=status.value)
        moved = COINS_RELEASED if event is LifecycleEvent.RELEASED else MOVED[status]
        facts: dict[str, str | None] = {"proposal": proposal.id, "cause": event.value}
        if moved is MOVED[Status.INVALIDATED]:
            facts["winner_proposal"] = None if winner is None else winner.id
        self.audit.record(db, PLATFORM, moved, place_of(db, proposal.workspace_id), **facts)


def _keep_final(proposal: ProposalRow, transaction: Transaction) -> None:
    """Stores a final transaction that signers combined without the platform, so that it can be broadcast
    again after a reorganisation.
    """
    try:
        verify_transaction(transaction, spent_outputs(Psbt.parse(proposal.psbt)))
    except InvalidSpend as error:
        # The backend may return another witness next time.
        log.warning("transaction not kept", proposal=proposal.id, reason=str(error))
        return
    proposal.final_tx = transaction.serialize()


IN_FLIGHT = tuple(
    status.value for status in (Status.SIGNED, Status.STALLED, Status.BROADCASTING, Status.REPLACED)
)


def spenders(snapshot: ChainSnapshot) -> set[str]:
    """The txids in the snapshot that spend coins of ours."""
    return {output.spent.txid for output in snapshot.outputs if output.spent is not None}


def without_final(db: Session, chain: str, txids: Collection[str]) -> set[str]:
    """Those of the txids that belong to proposals whose final transaction the platform does not have."""
    query = (
        select(ProposalRow.txid_expected)
        .join(VaultRow, VaultRow.id == ProposalRow.vault_id)
        .where(VaultRow.chain == chain, ProposalRow.final_tx.is_(None))
    )
    return {txid for (txid,) in rows_in(db, query, ProposalRow.txid_expected, txids)}


def affected(db: Session, chain: str, snapshot: ChainSnapshot, *, reorganised: bool) -> list[ProposalRow]:
    """Proposals that are in flight, pending ones that lost a coin, and ended ones whose transaction is seen.

    A family comes after the one whose change it spends, and within a family the newest comes first: their
    state decides about the others.
    """
    on_chain = (
        select(ProposalRow).join(VaultRow, VaultRow.id == ProposalRow.vault_id).where(VaultRow.chain == chain)
    )
    which = [ProposalRow.status.in_(IN_FLIGHT), ProposalRow.keeps_coins]
    if reorganised:
        # Only confirmed ones have a height.
        which.append(ProposalRow.block_height > snapshot.fork)
        which.append(and_(ProposalRow.status == Status.INVALIDATED.value, ProposalRow.final_tx.is_not(None)))
        # A deposit may have left the chain.
        which.append(ProposalRow.status == Status.PENDING.value)
    # Separate queries: each condition has its index, and proposals that have ended for good are not read.
    which.append(and_(ProposalRow.status == Status.PENDING.value, ProposalRow.trouble.is_not(None)))
    by_id = {proposal.id: proposal for each in which for proposal in db.scalars(on_chain.where(each))}
    by_id |= {proposal.id: proposal for proposal in _waiting_and_spent(db, snapshot)}
    seen = rows_in(db, on_chain.where(IS_ENDED), ProposalRow.txid_expected, spenders(snapshot))
    by_id |= {proposal.id: proposal for (proposal,) in seen}
    return in_order(db, by_id.values())


def in_order(db: Session, proposals: Iterable[ProposalRow]) -> list[ProposalRow]:
    newest_first = sorted(proposals, key=age_in_family, reverse=True)
    roots = {each.family_id: db.get_one(ProposalRow, each.family_id).created_at for each in newest_first}
    return sorted(newest_first, key=lambda each: (roots[each.family_id], each.family_id))


def coins_by_proposal(
    db: Session, chain: str, proposal_ids: Sequence[str]
) -> dict[str, list[ChainCoinRow | None]]:
    """By proposal id, the coins of its inputs in order; None for a coin that is not on the chain."""
    query = (
        select(ProposalInputRow, ChainCoinRow)
        .outerjoin(ChainCoinRow, and_(ChainCoinRow.chain == chain, IS_INPUT))
        .order_by(ProposalInputRow.proposal_id, ProposalInputRow.input_index)
    )
    by_proposal: dict[str, list[ChainCoinRow | None]] = defaultdict(list)
    for place, coin in rows_in(db, query, ProposalInputRow.proposal_id, proposal_ids):
        by_proposal[place.proposal_id].append(coin)
    return by_proposal


def _waiting_and_spent(db: Session, snapshot: ChainSnapshot) -> Iterator[ProposalRow]:
    """Pending proposals with a coin that the snapshot shows as spent."""
    spent = {
        (output.outpoint.txid, output.outpoint.vout)
        for output in snapshot.outputs
        if output.spent is not None
    }
    query = (
        select(ProposalRow, ProposalInputRow)
        .join(ProposalInputRow, ProposalInputRow.proposal_id == ProposalRow.id)
        .where(ProposalRow.status == Status.PENDING.value)
    )
    for proposal, place in rows_in(db, query, ProposalInputRow.txid, {txid for txid, _ in spent}):
        if (place.txid, place.vout) in spent:
            yield proposal


def observe(
    db: Session, proposal: ProposalRow, coins: Sequence[ChainCoinRow | None], snapshot: ChainSnapshot
) -> Observation:
    """`coins` are those of the proposal's inputs in order; None for a coin that is not on the chain."""
    spent = [coin for coin in coins if coin is not None and coin.spent_by is not None]
    ours = [coin for coin in spent if coin.spent_by == proposal.txid_expected]
    if any(coin.spent_height is not None for coin in spent if coin not in ours):
        return Observation.COIN_SPENT
    if len(ours) != len(coins):
        if None in coins and (_lost_a_parent(db, proposal) or _lost_a_deposit(db, proposal, coins)):
            return Observation.INPUT_GONE
        return Observation.OUTBID if is_outbid(db, proposal) else Observation.ABSENT
    height, block = ours[0].spent_height, snapshot.block_at(ours[0].spent_height)
    if height is None:
        return Observation.IN_MEMPOOL
    if proposal.block_height is None:
        return Observation.MINED
    same = block is not None and (proposal.block_height, proposal.block_hash) == (height, block.hash)
    return Observation.MINED if same else Observation.MINED_ELSEWHERE


def is_outbid(db: Session, proposal: ProposalRow) -> bool:
    """Whether a newer version is on the network. An older one pays less, so it cannot replace that."""
    if proposal.replaced_by_id is None:
        return False
    return any(Status(newer.status) is Status.BROADCASTING for newer in newer_than(db, proposal))


def _lost_a_parent(db: Session, proposal: ProposalRow) -> bool:
    """Whether a proposal of ours that creates one of its coins can no longer be mined."""
    query = (
        select(ProposalRow.id)
        .join(ProposalInputRow, ProposalInputRow.txid == ProposalRow.txid_expected)
        .where(ProposalInputRow.proposal_id == proposal.id, ProposalRow.status == Status.INVALIDATED.value)
    )
    return db.scalars(query).first() is not None


def _lost_a_deposit(db: Session, proposal: ProposalRow, coins: Sequence[ChainCoinRow | None]) -> bool:
    """Whether a forward lost an unconfirmed deposit that its sender replaced. Its other coins are freed then:
    another forward pays the owner's own vault and nobody twice. If the deposit returns, it is reopened.
    """
    return proposal.profile_key_id is not None and bool(missing_deposits(db, proposal, coins))


def coin_is_taken(db: Session, chain: str, proposal: ProposalRow) -> bool:
    """Whether another family has locked one of its coins since."""
    places = select(ProposalInputRow).where(ProposalInputRow.proposal_id == proposal.id)
    for place in db.scalars(places):
        lock = db.get(CoinLockRow, (chain, place.txid, place.vout))
        if lock is not None and lock.family_id != proposal.family_id:
            return True
    return False


def winner_of(db: Session, proposal: ProposalRow, coins: Sequence[ChainCoinRow | None]) -> ProposalRow | None:
    """The version that was confirmed instead, if it was one."""
    taken = {coin.spent_by for coin in coins if coin is not None and coin.spent_height is not None}
    query = select(ProposalRow).where(
        ProposalRow.family_id == proposal.family_id,
        ProposalRow.id != proposal.id,
        ProposalRow.txid_expected.in_(sorted(txid for txid in taken if txid is not None)),
    )
    return db.scalars(query).first()
