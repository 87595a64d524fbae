"""What the chain shows of a proposal's transaction, and the events that follow from it: one table."""

from enum import StrEnum

from custody.schemas.proposals import ProposalStatus as Status
from custody.server.domain.lifecycle import ENDED_UNSENT, Event


class Sight(StrEnum):
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
    # A coin of it was the change of a transaction of ours that cannot be mined any more.
    INPUT_GONE = "input-gone"


# A pair that is not here asks for nothing. PENDING, and what ended unsent, may be seen on chain where signers put their
# signatures together without the platform: the coins moved, and the record must say so.
EVENTS: dict[tuple[Status, Sight], tuple[Event, ...]] = {
    (Status.PENDING, Sight.IN_MEMPOOL): (Event.THRESHOLD_MET, Event.REACHED_NETWORK),
    (Status.PENDING, Sight.MINED): (Event.THRESHOLD_MET, Event.REACHED_NETWORK, Event.MINED),
    (Status.PENDING, Sight.COIN_SPENT): (Event.COIN_SPENT,),
    (Status.PENDING, Sight.INPUT_GONE): (Event.INPUT_GONE,),
    (Status.SIGNED, Sight.IN_MEMPOOL): (Event.REACHED_NETWORK,),
    (Status.SIGNED, Sight.MINED): (Event.REACHED_NETWORK, Event.MINED),
    (Status.SIGNED, Sight.OUTBID): (Event.REPLACED,),
    (Status.SIGNED, Sight.COIN_SPENT): (Event.COIN_SPENT,),
    (Status.SIGNED, Sight.INPUT_GONE): (Event.INPUT_GONE,),
    (Status.STALLED, Sight.IN_MEMPOOL): (Event.REACHED_NETWORK,),
    (Status.STALLED, Sight.MINED): (Event.REACHED_NETWORK, Event.MINED),
    (Status.STALLED, Sight.OUTBID): (Event.REPLACED,),
    (Status.STALLED, Sight.COIN_SPENT): (Event.COIN_SPENT,),
    (Status.STALLED, Sight.INPUT_GONE): (Event.INPUT_GONE,),
    (Status.BROADCASTING, Sight.MINED): (Event.MINED,),
    (Status.BROADCASTING, Sight.OUTBID): (Event.REPLACED,),
    (Status.BROADCASTING, Sight.COIN_SPENT): (Event.COIN_SPENT,),
    (Status.BROADCASTING, Sight.INPUT_GONE): (Event.INPUT_GONE,),
    (Status.CONFIRMED, Sight.ABSENT): (Event.REORGANISED,),
    (Status.CONFIRMED, Sight.IN_MEMPOOL): (Event.REORGANISED,),
    (Status.CONFIRMED, Sight.MINED_ELSEWHERE): (Event.REORGANISED, Event.MINED),
    (Status.CONFIRMED, Sight.OUTBID): (Event.REORGANISED, Event.REPLACED),
    (Status.CONFIRMED, Sight.COIN_SPENT): (Event.REORGANISED, Event.COIN_SPENT),
    (Status.CONFIRMED, Sight.INPUT_GONE): (Event.REORGANISED, Event.INPUT_GONE),
    # What had taken its place has ended.
    (Status.REPLACED, Sight.ABSENT): (Event.REOPENED,),
    (Status.REPLACED, Sight.IN_MEMPOOL): (Event.REACHED_NETWORK,),
    (Status.REPLACED, Sight.MINED): (Event.REACHED_NETWORK, Event.MINED),
    (Status.REPLACED, Sight.COIN_SPENT): (Event.COIN_SPENT,),
    (Status.REPLACED, Sight.INPUT_GONE): (Event.INPUT_GONE,),
    (Status.INVALIDATED, Sight.ABSENT): (Event.REOPENED,),
    (Status.INVALIDATED, Sight.OUTBID): (Event.REOPENED, Event.REPLACED),
    (Status.INVALIDATED, Sight.IN_MEMPOOL): (Event.REOPENED,),
    (Status.INVALIDATED, Sight.MINED): (Event.REOPENED, Event.MINED),
    **{(status, Sight.IN_MEMPOOL): (Event.REACHED_NETWORK,) for status in ENDED_UNSENT},
    **{(status, Sight.MINED): (Event.REACHED_NETWORK, Event.MINED) for status in ENDED_UNSENT},
    # What it keeps its coins for can no longer happen.
    (Status.CANCELLED, Sight.COIN_SPENT): (Event.RELEASED,),
    (Status.CANCELLED, Sight.INPUT_GONE): (Event.RELEASED,),
}


def events_for(status: Status, sight: Sight) -> tuple[Event, ...]:
    """What happens to a proposal in `status` whose transaction is seen like that; mostly nothing."""
    return EVENTS.get((status, sight), ())
