"""Why a broadcast transaction makes no progress, as the chain shows it, and what its signers can do.

The watcher finds the trouble whenever the mempool or the chain changes, and stores it with the proposal.
"""

from datetime import datetime, timedelta
from enum import StrEnum
from typing import Final

from custody.schemas.proposals import Advice
from custody.schemas.proposals import ProposalStatus as Status
from custody.schemas.proposals import TroubleKind as Kind
from custody.server.domain.lifecycle import REPLACEABLE, Observation
from multisig.units import FeeRate

# The last poll of the mempool may be older than the broadcast.
GRACE: Final = timedelta(minutes=1)
# A dozen blocks on average, in which a transaction that pays the half-day rate is usually mined.
PATIENCE: Final = timedelta(hours=2)
# The failure's code where a node asks for more than the transaction pays.
FEE_TOO_LOW: Final = "fee-too-low"


class Rival(StrEnum):
    """Who made the transaction that spends a coin of the proposal's instead."""

    NONE = "none"
    VERSION = "another version"
    OTHER = "other"


def kind_of(
    status: Status,
    observation: Observation,
    rival: Rival,
    waited: timedelta,
    *,
    is_lost: bool,
    is_cheap: bool,
) -> Kind | None:
    """The trouble of a proposal, or None.

    ``rival``: who made another transaction that spends one of its coins. ``waited``: since its status
    changed. ``is_lost``: a confirmed transaction that is no version of it spent a coin. ``is_cheap``: it pays
    less than the estimate for half a day.
    """
    if status is Status.INVALIDATED:
        return Kind.DOUBLE_SPENT if is_lost else None
    if status not in REPLACEABLE:
        return None
    # A newer version spends the coins of the older one on purpose.
    if rival is Rival.OTHER or (rival is Rival.VERSION and status is Status.BROADCASTING):
        return Kind.CONFLICT
    if status is not Status.BROADCASTING:
        return None
    if observation is Observation.ABSENT and waited >= GRACE:
        return Kind.NOT_IN_MEMPOOL
    is_slow = observation is Observation.IN_MEMPOOL and waited >= PATIENCE and is_cheap
    return Kind.SLOW if is_slow else None


def advice_for(kind: Kind, *, may_be_replaced: bool) -> Advice:
    match kind:
        case Kind.DOUBLE_SPENT:
            return "none"
        case Kind.NOT_IN_MEMPOOL:
            return "resend"
        case Kind.CONFLICT | Kind.SLOW | Kind.FEE_TOO_LOW:
            return "bump" if may_be_replaced else "wait"


def words_of(kind: Kind, *, rival: str | None, pays: FeeRate, asked: FeeRate | None, since: datetime) -> str:
    """``rival``: the other transaction's txid. ``asked``: the node's estimate when the trouble was found."""
    match kind:
        case Kind.CONFLICT:
            return f"The transaction {rival} in the mempool spends one of its coins: one of the two is mined."
        case Kind.DOUBLE_SPENT:
            return f"The confirmed transaction {rival} spends one of its coins: this one is never mined."
        case Kind.NOT_IN_MEMPOOL:
            return "It was sent, and the mempool does not have it now. It is offered again at each block."
        case Kind.SLOW:
            return (
                f"It pays {pays} and has waited since {since:%Y-%m-%d %H:%M} UTC; for a block within half a "
                f"day the chain asks for {asked}."
            )
        case Kind.FEE_TOO_LOW:
            return f"It pays {pays}, and nodes ask for more. It is offered again regularly."
