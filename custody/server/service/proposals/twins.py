"""No two proposals are one transaction.

Whoever proposes the same again, once the first has ended, would get the same coins, the same outputs and so the same txid: what the
chain then says of one of them, it would say of both. The lock time is free where nothing else is: a forward's amounts and fee
are its maker's word, and without change there is no output to take a satoshi from.
"""

from dataclasses import replace
from itertools import islice

from sqlalchemy import bindparam, select
from sqlalchemy.orm import Session

from custody.server.domain.timing import BACKDATE_BLOCKS, other_locktimes
from custody.server.service.requests.changes import Outdated
from custody.server.store.models import Proposal
from multisig import Transaction


def free_locktime(db: Session, tx: Transaction, tip_height: int) -> int:
    """The transaction's own where it is no proposal's yet, ended ones included; else the next with which it is none's."""
    others = other_locktimes(tip_height)
    looked_at = [tx.locktime]
    while True:
        txids = [replace(tx, locktime=each).txid for each in looked_at]
        taken = set(db.scalars(_TAKEN, {"txids": txids}))
        for locktime, txid in zip(looked_at, txids, strict=True):
            if txid not in taken:
                return locktime
        looked_at = list(islice(others, BACKDATE_BLOCKS))


def proposed_before() -> Outdated:
    """What it means where there is such a row already: the same was proposed, and has ended, since this was drafted."""
    return Outdated("The same transaction was proposed meanwhile.")


_TAKEN = select(Proposal.txid_expected).where(Proposal.txid_expected.in_(bindparam("txids", expanding=True)))
