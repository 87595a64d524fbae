"""Which deployments count: those that a member of this platform proposed.

Its row is there before a transaction can be signed, so whether one counts is known when its block is read, and never changes: nobody
makes the index read anything again by publishing the bytecode of a deployment that others have mined.
"""

from collections.abc import Callable, Collection

from sqlalchemy import select
from sqlalchemy.orm import Session

from custody.server.store.models import Contract, Proposal
from custody.server.store.unit import chunks

# Of these txids on one chain, within one transaction.
Proposed = Callable[[Session, str, Collection[str]], Collection[str]]


def proposed_deployments(db: Session, chain: str, txids: Collection[str]) -> frozenset[str]:
    """Those of any version of a token's deployment, whatever became of its proposal: what was signed may be mined."""
    query = (
        select(Proposal.txid_expected)
        .join(Contract, Contract.deploy_family_id == Proposal.family_id)
        .where(Contract.chain == chain)
    )
    return frozenset(
        txid for some in chunks(txids) for txid in db.scalars(query.where(Proposal.txid_expected.in_(some)))
    )
