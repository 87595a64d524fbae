"""The states of a proposal: one table, of which statuses an event makes which.

An event that is not in the table raises and changes nothing. A second table turns what the chain shows into
events. Also why a broadcast transaction makes no progress, as the chain shows it, and what its signers can
do: the watcher finds this trouble whenever the mempool or the chain changes, and stores it with the proposal.
"""

from collections.abc import Iterable
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Final

from custody.common.text import minute
from custody.schemas.proposals import Advice
from custody.schemas.proposals import ProposalStatus as Status
from custody.schemas.proposals import TroubleKind as Kind
from custody.server.errors import StateConflict
from multisig.units import FeeRate


class LifecycleEvent(StrEnum):
    THRESHOLD_MET = "threshold-met"
    THRESHOLD_LOST = "threshold-lost"
    # By the vault's screening.
    REFUSED = "refused"
    # The threshold of a proof, which is never broadcast.
    PROVEN = "proven"
    CANCEL = "cancel"
    EXPIRE = "expire"
    # The mempool (or a block) has our transaction.
    REACHED_NETWORK = "reached-network"
    BACKEND_DOWN = "backend-down"
    # Its vault names an approver who has not approved it.
    APPROVAL_ASKED = "approval-asked"
    REFUSED_FOR_GOOD = "refused-for-good"
    MINED = "mined"
    # Its block left the best chain.
    REORGANISED = "reorganised"
    # Another transaction of its family took its place in the mempool.
    REPLACED = "replaced"
    # A confirmed transaction that is not ours spends one of its inputs.
    COIN_SPENT = "coin-spent"
    # The transaction that was to make one of its inputs cannot be mined any more.
    INPUT_GONE = "input-gone"
    # The transaction that spent its input or replaced it is gone: the signed one may still be mined.
    REOPENED = "reopened"
    # The coins that it kept locked after its end are free.
    RELEASED = "released"


# Their coins are free again, except those that one of `KEEPING` keeps (ADR 15). A confirmed one keeps its
# locks: a reorganisation may bring its coins back.
ENDED = frozenset({Status.REJECTED, Status.CANCELLED, Status.EXPIRED, Status.INVALIDATED, Status.FAILED})
# Ended by people: where others could still complete its signatures, its coins stay locked.
KEEPING = frozenset({Status.CANCELLED, Status.REJECTED})
# Ended before its transaction reached the network, so far as the platform knew.
ENDED_UNSENT = ENDED - {Status.INVALIDATED}
# The final transaction is stored and must reach the network.
TO_BROADCAST = frozenset({Status.SIGNED, Status.STALLED})
# Under way: a version with a higher fee, or one that sends everything back to the vault, may still replace
# it.
REPLACEABLE = TO_BROADCAST | {Status.PENDING, Status.BROADCASTING}
# Its signers still need its signatures: it waits for more, or has to be broadcast (again after a
# reorganisation).
TO_FINISH = REPLACEABLE | {Status.CONFIRMED}
# The threshold was met: the final transaction exists.
FINALISED = REPLACEABLE - {Status.PENDING} | {Status.PROVEN, Status.CONFIRMED, Status.REPLACED, Status.FAILED}
# Signatures are out or will be, and its transaction is in no block.
_UNMINED = (*sorted(REPLACEABLE), Status.REPLACED)
_SIGNED = (*sorted(TO_BROADCAST), Status.BROADCASTING)
# What each event makes of which statuses. Signatures stay valid: a holder of enough of them can finalise a
# proposal that has ended here, and bring it to the network.
_MOVES: dict[LifecycleEvent, tuple[Iterable[Status], Status]] = {
    LifecycleEvent.THRESHOLD_MET: ((Status.PENDING,), Status.SIGNED),
    LifecycleEvent.THRESHOLD_LOST: ((Status.PENDING,), Status.REJECTED),
    LifecycleEvent.REFUSED: ((Status.PENDING,), Status.REJECTED),
    LifecycleEvent.PROVEN: ((Status.PENDING,), Status.PROVEN),
    LifecycleEvent.CANCEL: ((Status.PENDING, Status.STALLED, Status.BROADCASTING), Status.CANCELLED),
    LifecycleEvent.EXPIRE: ((Status.PENDING,), Status.EXPIRED),
    LifecycleEvent.REACHED_NETWORK: ((*TO_BROADCAST, Status.REPLACED, *ENDED_UNSENT), Status.BROADCASTING),
    LifecycleEvent.BACKEND_DOWN: (TO_BROADCAST, Status.STALLED),
    LifecycleEvent.APPROVAL_ASKED: (TO_BROADCAST, Status.PENDING),
    LifecycleEvent.REFUSED_FOR_GOOD: (TO_BROADCAST, Status.FAILED),
    LifecycleEvent.MINED: ((Status.BROADCASTING,), Status.CONFIRMED),
    LifecycleEvent.REORGANISED: ((Status.CONFIRMED,), Status.BROADCASTING),
    LifecycleEvent.REPLACED: (_SIGNED, Status.REPLACED),
    LifecycleEvent.COIN_SPENT: (_UNMINED, Status.INVALIDATED),
    LifecycleEvent.INPUT_GONE: (_UNMINED, Status.INVALIDATED),
    LifecycleEvent.REOPENED: ((Status.REPLACED, Status.INVALIDATED), Status.BROADCASTING),
}
TRANSITIONS = {(status, event): to for event, (statuses, to) in _MOVES.items() for status in statuses} | {
    (status, LifecycleEvent.RELEASED): status for status in KEEPING
}


class IllegalTransition(StateConflict):
    """That event cannot happen to a proposal in that status."""

    def __init__(self, status: Status, event: LifecycleEvent) -> None:
        super().__init__(f"A proposal that is {status} cannot take the event {event}.")
        self.status = status
        self.event = event


def next_status(status: Status, event: LifecycleEvent) -> Status:
    """Raises IllegalTransition."""
    try:
        return TRANSITIONS[status, event]
    except KeyError:
        raise IllegalTransition(status, event) from None


class Observation(StrEnum):
    """Where a proposal's transaction is, judged by its coins."""

    ABSENT = "absent"
    IN_MEMPOOL = "in-mempool"
    MINED = "mined"
    # In another block than the one that is recorded.
    MINED_ELSEWHERE = "mined-elsewhere"
    # A newer version of it is on the network instead.
    OUTBID = "outbid"
    # A confirmed transaction that is not ours took a coin.
    COIN_SPENT = "coin-spent"
    # One of its coins is a deposit that left the chain, or the change of a transaction of ours that can no
    # longer be mined.
    INPUT_GONE = "input-gone"


# How a status gets to the network. A proposal that is PENDING or ended unsent is seen on chain where signers
# combined their signatures without the platform: the coins moved, and the record must say so.
_TO_NETWORK: dict[Status, tuple[LifecycleEvent, ...]] = {
    Status.PENDING: (LifecycleEvent.THRESHOLD_MET, LifecycleEvent.REACHED_NETWORK),
    Status.INVALIDATED: (LifecycleEvent.REOPENED,),
    **dict.fromkeys((*TO_BROADCAST, Status.REPLACED, *ENDED_UNSENT), (LifecycleEvent.REACHED_NETWORK,)),
}
_BACK = LifecycleEvent.REORGANISED


def _lost(event: LifecycleEvent) -> dict[Status, tuple[LifecycleEvent, ...]]:
    """Its transaction can no longer be mined: the coins of one that has ended need not stay locked."""
    unmined, kept = dict.fromkeys(_UNMINED, (event,)), dict.fromkeys(KEEPING, (LifecycleEvent.RELEASED,))
    return {**unmined, Status.CONFIRMED: (_BACK, event), **kept}


_SEEN: dict[Observation, dict[Status, tuple[LifecycleEvent, ...]]] = {
    # The replacement of a REPLACED one has ended.
    Observation.ABSENT: {
        Status.CONFIRMED: (_BACK,),
        **dict.fromkeys((Status.REPLACED, Status.INVALIDATED), (LifecycleEvent.REOPENED,)),
    },
    Observation.IN_MEMPOOL: {**_TO_NETWORK, Status.CONFIRMED: (_BACK,)},
    Observation.MINED: {
        status: (*events, LifecycleEvent.MINED)
        for status, events in {**_TO_NETWORK, Status.BROADCASTING: ()}.items()
    },
    Observation.MINED_ELSEWHERE: {Status.CONFIRMED: (_BACK, LifecycleEvent.MINED)},
    Observation.OUTBID: {
        **dict.fromkeys(_SIGNED, (LifecycleEvent.REPLACED,)),
        Status.INVALIDATED: (LifecycleEvent.REOPENED, LifecycleEvent.REPLACED),
        Status.CONFIRMED: (_BACK, LifecycleEvent.REPLACED),
    },
    Observation.COIN_SPENT: _lost(LifecycleEvent.COIN_SPENT),
    Observation.INPUT_GONE: _lost(LifecycleEvent.INPUT_GONE),
}
# Pairs that are not here change nothing.
EVENTS = {(status, seen): events for seen, some in _SEEN.items() for status, events in some.items()}


def events_for(status: Status, sight: Observation) -> tuple[LifecycleEvent, ...]:
    """The events, in order, for a proposal in `status` whose transaction is seen so; usually none."""
    return EVENTS.get((status, sight), ())


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
    if observation is Observation.INPUT_GONE:
        return Kind.COIN_MISSING
    if status is Status.BROADCASTING and observation is Observation.ABSENT and waited >= GRACE:
        return Kind.NOT_IN_MEMPOOL
    is_slow = observation is Observation.IN_MEMPOOL and waited >= PATIENCE and is_cheap
    return Kind.SLOW if is_slow and status is Status.BROADCASTING else None


def advice_for(kind: Kind, *, may_be_replaced: bool) -> Advice:
    match kind:
        case Kind.DOUBLE_SPENT:
            return "none"
        case Kind.NOT_IN_MEMPOOL:
            return "resend"
        case Kind.COIN_MISSING:
            return "cancel"
        case Kind.CONFLICT | Kind.SLOW | Kind.FEE_TOO_LOW:
            return "bump" if may_be_replaced else "wait"


def words_of(
    kind: Kind, *, rival: str | None, pays: FeeRate, required_rate: FeeRate | None, since: datetime
) -> str:
    """``rival``: the other transaction's txid. ``required_rate``: the node's estimate when the trouble was
    found.
    """
    match kind:
        case Kind.CONFLICT:
            return f"The transaction {rival} in the mempool spends one of its coins: one of the two is mined."
        case Kind.DOUBLE_SPENT:
            return f"The confirmed transaction {rival} spends one of its coins: this one is never mined."
        case Kind.COIN_MISSING:
            return (
                "A deposit that it spends is in no block and not in the mempool any more: it can only be "
                "mined if that deposit returns. It is offered again at each block."
            )
        case Kind.NOT_IN_MEMPOOL:
            return "It was sent, and the mempool does not have it now. It is offered again at each block."
        case Kind.SLOW:
            return (
                f"It pays {pays} and has waited since {minute(since)}; for a block within half a "
                f"day the chain asks for {required_rate}."
            )
        case Kind.FEE_TOO_LOW:
            return f"It pays {pays}, and nodes ask for more. It is offered again regularly."
