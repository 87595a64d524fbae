"""The most that one payment can send from given coins, and the selection that costs least.

A payment to given recipients costs so much for each coin that it spends, and every coin that is economic
brings more than that: the most is sent by the largest coins, as many as a transaction takes.
"""

from collections.abc import Sequence

from custody.server.domain.selection import MAX_INPUTS, CoinT, Plan, Selection, settle
from multisig.units import Sats


def spent_at_once(largest: Sequence[CoinT], plan: Plan, max_fee: Sats) -> Sequence[CoinT]:
    """As many of them as a transaction takes, without a fee above the cap. ``largest``: economic ones, the
    largest first.
    """
    count = min(len(largest), MAX_INPUTS)
    while count and plan.fee(count, with_change=False) > max_fee:
        count -= 1
    return largest[:count]


def most_of(largest: Sequence[CoinT], plan: Plan, room: int | None = None) -> Sats:
    """The largest target that they pay, where target and fee together are ``room`` at most (None: no bound).

    Under a bound the change costs its output, and what is too small for one goes to the fee: so each number
    of coins is tried. Other coins than the largest may add up without change, and let a few satoshis more
    through.
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
    """The least fee at which the largest of them pay the target; None where all together do not."""
    settled = (settle(largest[:count], plan) for count in range(1, min(len(largest), MAX_INPUTS) + 1))
    return min((each for each in settled if each is not None), key=lambda each: each.fee, default=None)
