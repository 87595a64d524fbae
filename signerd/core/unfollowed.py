"""Proposals of a pinned vault that never awaited this machine while it looked: what others signed of them is a warning (S27).

Nobody is asked about one. The platform can hide one, or its signatures; nothing that it says of one lets anything pass.
"""

from custody.schemas.proposals import ProposalStatus, TxType
from custody.schemas.vaults import MAX_SIGNERS
from multisig import MultisigError, Psbt
from signerd.core.values import Snapshot, Unfollowed

# The threshold was met, whatever number of signatures is told.
COMPLETED = frozenset(
    {
        ProposalStatus.SIGNED,
        ProposalStatus.STALLED,
        ProposalStatus.BROADCASTING,
        ProposalStatus.CONFIRMED,
    }
)


def unfollowed_of(snapshot: Snapshot) -> Unfollowed | None:
    """None where nobody is said to have signed it, where it moves no money of the vault, and where its PSBT cannot be read."""
    signed = snapshot.collected > 0 or snapshot.status in COMPLETED
    if not signed or snapshot.kind is TxType.FORWARD:
        return None
    try:
        tx = Psbt.parse(snapshot.psbt).tx
    except MultisigError:
        return None
    collected = max(0, min(snapshot.collected, MAX_SIGNERS))
    return Unfollowed(snapshot.psbt_id, snapshot.status, collected, snapshot.required, tx)


def may_yet_be_signed(snapshot: Snapshot) -> bool:
    """Whether it is to be looked at again: it waits, and not for us, or is not taken yet."""
    return snapshot.status is ProposalStatus.PENDING and snapshot.kind is not TxType.FORWARD
