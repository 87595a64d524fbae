"""The most that one payment can send from given coins, and the selection that costs least.

Each economic coin is worth more than its input costs, so the largest coins send the most: as many of them as
a transaction takes.
"""

from collections.abc import Sequence

from custody.server.domain.selection import MAX_INPUTS, CoinT, Plan, Selection, settle
from multisig.units import Sats


def spent_at_once(largest: Sequence[CoinT], plan: Plan, max_fee: Sats) -> Sequence[CoinT]:
    """As many coins as a transaction takes with a fee within the cap. ``largest``: the economic coins, the
    largest first.
    """
    count = min(len(largest), MAX_INPUTS)
    while count and plan.fee(count, with_change=False) > max_fee:
        count -= 1
    return largest[:count]


def most_of(largest: Sequence[CoinT], plan: Plan, room: int | None = None) -> Sats:
    """The largest target that they pay with target and fee at most ``room`` together (None: no bound).

    A bound leaves change, which costs an output or, where it is too small, goes to the fee: so each number of
    coins is tried. A set of other coins without change could send a few satoshis more.
    """
    most, total = 0, 0
    for count, coin in enumerate(largest, start=1):
        total += coin.amount
        if room is None or total <= room:
            most = max(most, total - plan.fee(count, with_change=False))
        else:
            given_away = min(room, total - plan.minimum_change)
            most = max(most, given_away - plan.fee(count, with_change=True))
    return Sats(most)


def select_cheapest(largest: Sequence[CoinT], plan: Plan) -> Selection[CoinT] | None:
    """The selection with the lowest fee among the prefixes of ``largest``; None where none pays the
    target.
    """
    settled = (settle(largest[:count], plan) for count in range(1, min(len(largest), MAX_INPUTS) + 1))
    return min((each for each in settled if each is not None), key=lambda each: each.fee, default=None)
