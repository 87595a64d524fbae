"""Where a proposal's transaction is, judged by its coins, by what made them and by the other versions of it."""

from collections.abc import Mapping, Sequence

from sqlalchemy import select
from sqlalchemy.orm import Session

from custody.schemas.proposals import ProposalStatus as Status
from custody.server.domain.lifecycle import Observation
from custody.server.service.lifecycle import newer_than
from custody.server.store.models import ChainCoin, CoinLock, Proposal, ProposalInput


def sight_of(
    db: Session, proposal: Proposal, coins: Sequence[ChainCoin | None], hash_at: Mapping[int, str]
) -> Observation:
    """`coins` are the proposal's inputs in order; None for one that the chain does not show at all."""
    spent = [coin for coin in coins if coin is not None and coin.spent_by is not None]
    ours = [coin for coin in spent if coin.spent_by == proposal.txid_expected]
    if any(coin.spent_height is not None for coin in spent if coin not in ours):
        return Observation.COIN_SPENT
    if len(ours) != len(coins):
        return _absent(db, proposal, coins)
    height = ours[0].spent_height
    if height is None:
        return Observation.IN_MEMPOOL
    if proposal.block_height is None:
        return Observation.MINED
    same = (proposal.block_height, proposal.block_hash) == (height, hash_at.get(height))
    return Observation.MINED if same else Observation.MINED_ELSEWHERE


def _absent(db: Session, proposal: Proposal, coins: Sequence[ChainCoin | None]) -> Observation:
    if None in coins and (_lost_a_parent(db, proposal) or _lost_a_deposit(db, proposal, coins)):
        return Observation.INPUT_GONE
    return Observation.OUTBID if is_outbid(db, proposal) else Observation.ABSENT


def is_outbid(db: Session, proposal: Proposal) -> bool:
    """A newer version is on the network. An older one never takes a newer one's place: it pays less, and is not offered again."""
    if proposal.replaced_by_id is None:
        return False
    return any(Status(newer.status) is Status.BROADCASTING for newer in newer_than(db, proposal))


def _lost_a_parent(db: Session, proposal: Proposal) -> bool:
    """Of ours: it can no longer be mined. What became of a stranger's transaction nobody tells us."""
    query = (
        select(Proposal.id)
        .join(ProposalInput, ProposalInput.txid == Proposal.txid_expected)
        .where(ProposalInput.proposal_id == proposal.id, Proposal.status == Status.INVALIDATED.value)
    )
    return db.scalars(query).first() is not None


def _lost_a_deposit(db: Session, proposal: Proposal, coins: Sequence[ChainCoin | None]) -> bool:
    """A forward may spend a deposit that waits, and whoever made it may take it back. Its other coins are free then: it pays
    its owner's money into a vault, so that another one in its place pays nobody twice. Where it is seen after all, it lives.
    """
    if proposal.profile_key_id is None:
        return False
    query = select(ProposalInput.txid).where(ProposalInput.proposal_id == proposal.id)
    places = db.scalars(query.order_by(ProposalInput.input_index))
    missing = {txid for txid, coin in zip(places, coins, strict=True) if coin is None}
    ours = select(Proposal.txid_expected).where(Proposal.txid_expected.in_(sorted(missing)))
    return bool(missing - set(db.scalars(ours)))


def coin_is_taken(db: Session, chain: str, proposal: Proposal) -> bool:
    """Whether another family has locked a coin of it meanwhile."""
    places = select(ProposalInput).where(ProposalInput.proposal_id == proposal.id)
    for place in db.scalars(places):
        lock = db.get(CoinLock, (chain, place.txid, place.vout))
        if lock is not None and lock.family_id != proposal.family_id:
            return True
    return False


def winner_of(db: Session, proposal: Proposal, coins: Sequence[ChainCoin | None]) -> Proposal | None:
    """The version that was confirmed in its place, if it was one."""
    taken = {coin.spent_by for coin in coins if coin is not None and coin.spent_height is not None}
    query = select(Proposal).where(
        Proposal.family_id == proposal.family_id,
        Proposal.id != proposal.id,
        Proposal.txid_expected.in_(sorted(txid for txid in taken if txid is not None)),
    )
    return db.scalars(query).first()
