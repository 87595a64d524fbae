"""Which proposals a look at the chain may have moved, in the order in which they are looked at, and their coins."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence

from sqlalchemy import and_, select
from sqlalchemy.orm import Session

from custody.schemas.proposals import ProposalStatus as Status
from custody.server.domain.lifecycle import ENDED
from custody.server.service.lifecycle import age_in_family
from custody.server.service.network.snapshot import Snapshot
from custody.server.store.chunks import chunks
from custody.server.store.models import ChainCoin, Proposal, ProposalInput, Vault

IN_FLIGHT = tuple(
    status.value for status in (Status.SIGNED, Status.STALLED, Status.BROADCASTING, Status.REPLACED)
)
_ENDED = tuple(sorted(status.value for status in ENDED))


def spenders(snapshot: Snapshot) -> set[str]:
    """The txids of everything that spends a coin of ours, as far as the snapshot goes back."""
    return {found.spent.txid for found in snapshot.outputs if found.spent is not None}


def without_final(db: Session, chain: str, txids: Collection[str]) -> set[str]:
    """Those of the txids that are a proposal's whose final transaction the platform does not have."""
    query = (
        select(Proposal.txid_expected)
        .join(Vault, Vault.id == Proposal.vault_id)
        .where(Vault.chain == chain, Proposal.final_tx.is_(None))
    )
    return {
        txid for some in chunks(txids) for txid in db.scalars(query.where(Proposal.txid_expected.in_(some)))
    }


def affected(db: Session, chain: str, snapshot: Snapshot, *, reorganised: bool) -> list[Proposal]:
    """Whatever is on its way, whatever waits and lost a coin, and what had ended and is seen after all.

    A family after the one whose change it spends, and in each the newest first: what became of those decides about the rest.
    """
    on_chain = select(Proposal).join(Vault, Vault.id == Proposal.vault_id).where(Vault.chain == chain)
    which = [Proposal.status.in_(IN_FLIGHT), Proposal.keeps_coins]
    if reorganised:
        # Confirmed ones alone have a height.
        which.append(Proposal.block_height > snapshot.fork)
        which.append(and_(Proposal.status == Status.INVALIDATED.value, Proposal.final_tx.is_not(None)))
    # One by one: each has its index, and what has ended for good is not looked through.
    found = {proposal.id: proposal for each in which for proposal in db.scalars(on_chain.where(each))}
    found |= {proposal.id: proposal for proposal in _waiting_and_spent(db, snapshot)}
    for some in chunks(spenders(snapshot)):
        seen = on_chain.where(Proposal.status.in_(_ENDED), Proposal.txid_expected.in_(some))
        found |= {proposal.id: proposal for proposal in db.scalars(seen)}
    return in_order(db, found.values())


def children_of(db: Session, proposal: Proposal) -> list[Proposal]:
    """Whatever spends an output of its transaction."""
    spending = select(ProposalInput.proposal_id).where(ProposalInput.txid == proposal.txid_expected)
    return in_order(db, db.scalars(select(Proposal).where(Proposal.id.in_(spending))))


def in_order(db: Session, proposals: Iterable[Proposal]) -> list[Proposal]:
    newest_first = sorted(proposals, key=age_in_family, reverse=True)
    roots = {each.family_id: db.get_one(Proposal, each.family_id).created_at for each in newest_first}
    return sorted(newest_first, key=lambda each: (roots[each.family_id], each.family_id))


def coins_by_proposal(
    db: Session, chain: str, proposal_ids: Sequence[str]
) -> dict[str, list[ChainCoin | None]]:
    """Of each proposal its inputs' coins, in order; None for one that the chain does not show."""
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
        .order_by(ProposalInput.proposal_id, ProposalInput.input_index)
    )
    found: dict[str, list[ChainCoin | None]] = defaultdict(list)
    for some in chunks(proposal_ids):
        for place, coin in db.execute(query.where(ProposalInput.proposal_id.in_(some))):
            found[place.proposal_id].append(coin)
    return found


def _waiting_and_spent(db: Session, snapshot: Snapshot) -> Iterator[Proposal]:
    """What waits for signatures and spends a coin that the snapshot shows as spent. What is older was seen before."""
    spent = {
        (found.outpoint.txid, found.outpoint.vout) for found in snapshot.outputs if found.spent is not None
    }
    query = (
        select(Proposal, ProposalInput)
        .join(ProposalInput, ProposalInput.proposal_id == Proposal.id)
        .where(Proposal.status == Status.PENDING.value)
    )
    for some in chunks({txid for txid, _ in spent}):
        for proposal, place in db.execute(query.where(ProposalInput.txid.in_(some))):
            if (place.txid, place.vout) in spent:
                yield proposal
