"""Whether nodes would take a new transaction beside the unconfirmed ones that it hangs together with.

Bitcoin Core before release 31 takes 25 ancestors and 25 descendants of each (the transaction included), of
101 kvB together; release 31 takes 64 transactions of 101 kvB that hang together in any way. What is within 25
and 101 kvB in any way is taken by both.
"""

from collections.abc import Iterable

from sqlalchemy import and_, select
from sqlalchemy.orm import Session

from custody.server.errors import StateConflict
from custody.server.proposals.coins import Utxo
from custody.server.proposals.lifecycle import holds_coins_clause
from custody.server.store.models import ChainCoinRow, ProposalInputRow, ProposalRow

MAX_TOGETHER = 25
MAX_TOGETHER_VSIZE = 101_000
WAITS_FOR_A_BLOCK = (
    f"coins wait for transactions that are in no block yet. Nodes take {MAX_TOGETHER} that hang together, of "
    f"{MAX_TOGETHER_VSIZE} vB"
)
_COLUMNS = select(
    ProposalRow.id,
    ProposalRow.family_id,
    ProposalRow.txid_expected,
    ProposalRow.fee_sats,
    ProposalRow.fee_rate_sat_per_kvb,
).where(ProposalRow.block_height.is_(None))


def require_taken_by_nodes(db: Session, chain: str, spent: Iterable[Utxo], vsize: int) -> None:
    """Raises StateConflict where a transaction of ``vsize`` vB that spends these coins would be refused."""
    if not is_taken_by_nodes(db, chain, spent, vsize):
        raise StateConflict(
            f"Its {WAITS_FOR_A_BLOCK} in all, and this would be more: wait for the next block."
        )


def is_taken_by_nodes(db: Session, chain: str, spent: Iterable[Utxo], vsize: int) -> bool:
    """Counts what the platform knows: of strangers' transactions those that it spends of, and none that
    strangers made from its own.
    """
    new = {utxo.txid for utxo in spent if utxo.height is None}
    seen: set[str] = set()
    # By family, for at most one of its versions is in a mempool; of a stranger, by txid.
    sizes: dict[str, int] = {}
    while new and len(sizes) < MAX_TOGETHER:
        ids, txids = set(), set()
        spends_one = select(ProposalInputRow.proposal_id).where(ProposalInputRow.txid.in_(new))
        for which in (
            ProposalRow.txid_expected.in_(new),
            ProposalRow.id.in_(spends_one) & holds_coins_clause(),
        ):
            for each in db.execute(_COLUMNS.where(which)):
                # The rate is rounded down, so this is its size or a little more.
                size = each.fee_sats * 1000 // max(1, each.fee_rate_sat_per_kvb)
                sizes[each.family_id] = max(size, sizes.get(each.family_id, 0))
                ids.add(each.id)
                txids.add(each.txid_expected)
        sizes |= dict.fromkeys(new - txids, 0)
        seen |= new
        new = (txids | _unconfirmed_parents(db, chain, ids)) - seen
    return len(sizes) < MAX_TOGETHER and sum(sizes.values()) + vsize <= MAX_TOGETHER_VSIZE


def _unconfirmed_parents(db: Session, chain: str, proposal_ids: Iterable[str]) -> set[str]:
    is_spent_by = and_(ProposalInputRow.txid == ChainCoinRow.txid, ProposalInputRow.vout == ChainCoinRow.vout)
    return set(
        db.scalars(
            select(ChainCoinRow.txid)
            .join(ProposalInputRow, is_spent_by)
            .where(
                ChainCoinRow.chain == chain,
                ChainCoinRow.height.is_(None),
                ProposalInputRow.proposal_id.in_(proposal_ids),
            )
        )
    )
