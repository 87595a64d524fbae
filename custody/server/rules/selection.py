"""Which coins pay for a movement, and what the change and the fee are.

Deeply confirmed coins first (six blocks where foreign, one where our own change), then any confirmed coin,
then our own unconfirmed change; never foreign unconfirmed coins. Within a tier: branch and bound for a spend
without change, else a single random draw (after Bitcoin Core's wallet/spend.cpp and coinselection.cpp).

The most that given coins can send, and the selection that costs least: each economic coin is worth more than
its input costs, so the largest coins send the most, as many of them as a transaction takes.

Also the lock time against fee sniping, and how long a proposal waits for its signatures.
"""

import itertools
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum
from functools import cache
from itertools import accumulate
from operator import attrgetter
from typing import Final, Generic, Protocol, TypeVar

from multisig.transaction import LOCKTIME_THRESHOLD
from multisig.units import FeeRate, Sats

FOREIGN_DEPTH = 6
OWN_CHANGE_DEPTH = 1
# Core tries 100,000 branches. Here one step skips all coins that are too large: 2,000 of them find a
# changeless spend as often as 20,000 single steps, in less than a millisecond.
MAX_TRIES = 2_000
# A Coldcard refuses fees above 10 % and warns above 5 %; below that no device does.
MAX_FEE_SHARE = 20
# Every maker's device signs 100 inputs in reasonable time.
MAX_INPUTS = 100
# A random draw may take this many coins more than needed: it uses up small coins gradually, while a stranger
# who sends thousands of them cannot make a transaction large.
SPARE_INPUTS = 10


class RandomSource(Protocol):
    """The part of `random.Random` that is used here."""

    def randrange(self, stop: int, /) -> int: ...


class Coin(Protocol):
    """A coin that can be selected. ``txid`` is in display order."""

    @property
    def txid(self) -> str: ...
    @property
    def vout(self) -> int: ...
    @property
    def amount(self) -> Sats: ...


CoinT = TypeVar("CoinT", bound=Coin)
BY_PLACE: Final = attrgetter("txid", "vout")
BY_AMOUNT: Final = attrgetter("amount")


@dataclass(frozen=True)
class Plan:
    """The amount to pay and the fee rate.

    `vsize(inputs, with_change)` estimates the signed transaction in vB; `minimum_change` is the smallest
    change output: not dust, and more than it costs to spend later.
    """

    target: Sats
    rate: FeeRate
    vsize: Callable[[int, bool], int]
    minimum_change: Sats

    def fee(self, inputs: int, *, with_change: bool) -> Sats:
        return self.rate.fee_for(self.vsize(inputs, with_change))


@dataclass(frozen=True)
class Selection(Generic[CoinT]):
    """The coins to spend, the change (0: none) and the fee. Coins = target + change + fee, exactly."""

    coins: tuple[CoinT, ...]
    change: Sats
    fee: Sats


class Tier(StrEnum):
    """Which coins may be spent, the safest first; each tier includes those before it."""

    DEEP = "deep"
    CONFIRMED = "confirmed"
    OWN_UNCONFIRMED = "own unconfirmed"


def select_from(coins: Sequence[CoinT], plan: Plan, rng: RandomSource) -> Selection[CoinT] | None:
    """Coins of one tier for `plan`, or None where the `MAX_INPUTS` largest do not suffice."""
    pool = economic(coins, plan)
    chosen = _branch_and_bound(pool, plan) or _single_random_draw(pool, plan, rng)
    return None if chosen is None else _with_modest_fee(chosen, pool, plan)


def select_fewest(coins: Sequence[CoinT], plan: Plan) -> Selection[CoinT] | None:
    """The fewest coins that suffice, the largest first; None where `MAX_INPUTS` of them do not."""
    return next(_settled(economic(coins, plan), plan), None)


def largest_first(coins: Iterable[CoinT]) -> list[CoinT]:
    """Equal amounts are ordered by outpoint, so that the result does not depend on the input's order."""
    return sorted(sorted(coins, key=BY_PLACE), key=BY_AMOUNT, reverse=True)


def economic(coins: Sequence[CoinT], plan: Plan) -> list[CoinT]:
    """Coins that are worth more than their input costs, the largest first."""
    cost = input_cost(plan)
    return largest_first([coin for coin in coins if coin.amount > cost])


def input_cost(plan: Plan) -> Sats:
    """The fee for one input: a coin must be worth more to be spent."""
    return Sats(plan.fee(2, with_change=False) - plan.fee(1, with_change=False) + 1)


def settle(coins: Sequence[CoinT], plan: Plan) -> Selection[CoinT] | None:
    """The change and the fee that follow from these coins; None where they do not cover the target."""
    total = sum(coin.amount for coin in coins)
    change = total - plan.target - plan.fee(len(coins), with_change=True)
    if change >= plan.minimum_change:
        return Selection(tuple(coins), Sats(change), Sats(total - plan.target - change))
    fee = total - plan.target
    if fee < plan.fee(len(coins), with_change=False):
        return None
    return Selection(tuple(coins), Sats(0), Sats(fee))


def _branch_and_bound(pool: Sequence[CoinT], plan: Plan) -> Selection[CoinT] | None:
    """A set of coins that pays the target without change at the lowest fee; depth first, largest coin
    first.
    """
    amounts = [coin.amount for coin in pool]
    # `bisect` needs ascending order.
    rising = [-amount for amount in amounts]
    remaining = list(accumulate(reversed(amounts), initial=0))[::-1]

    @cache
    def needed(count: int) -> int:
        return plan.target + plan.fee(count, with_change=False)

    @cache
    def makes_change(count: int) -> int:
        """The least that makes a change output: what is below it goes to the fee."""
        return plan.target + plan.minimum_change + plan.fee(count, with_change=True)

    best: tuple[int, ...] | None = None
    best_total = sum(amounts) + 1
    stack: list[tuple[int, int, tuple[int, ...]]] = [(0, 0, ())]
    tries = 0
    while stack and tries < MAX_TRIES:
        tries += 1
        start, total, taken = stack.pop()
        lacking = needed(len(taken) + 1) - total
        too_much = min(makes_change(len(taken) + 1), best_total) - total
        index = bisect_left(rising, 1 - too_much, start)
        if remaining[index] < lacking or len(taken) == MAX_INPUTS:
            continue
        amount = amounts[index]
        if amount >= lacking:
            best, best_total = (*taken, index), total + amount
            stack.append((index + 1, total, taken))
        else:
            # The branch without this coin also skips all others of its amount.
            smaller = bisect_left(rising, 1 - amount, index)
            stack.append((smaller, total, taken))
            stack.append((index + 1, total + amount, (*taken, index)))
    if best is None:
        return None
    selection = settle([pool[position] for position in best], plan)
    return selection if selection is not None and selection.change == 0 else None


def _single_random_draw(pool: Sequence[CoinT], plan: Plan, rng: RandomSource) -> Selection[CoinT] | None:
    """Coins in random order until they pay the target, the fee and a change output; the fewest possible where
    that would take many more than needed.
    """
    fewest = next(_settled(pool, plan), None)
    if fewest is None:
        return None
    most = min(MAX_INPUTS, len(fewest.coins) + SPARE_INPUTS)
    drawn: list[CoinT] = []
    for coin in _shuffled(pool, rng, most):
        drawn.append(coin)
        selection = settle(drawn, plan)
        if selection is not None and selection.change:
            return selection
    return fewest


def _settled(pool: Sequence[CoinT], plan: Plan) -> Iterator[Selection[CoinT]]:
    """Of the largest coins of ``pool`` (largest first), one, two and so on: those that suffice."""
    settled = (settle(pool[:count], plan) for count in range(1, min(len(pool), MAX_INPUTS) + 1))
    return (each for each in settled if each is not None)


def _with_modest_fee(selection: Selection[CoinT], pool: Sequence[CoinT], plan: Plan) -> Selection[CoinT]:
    """Adds coins until the fee is a modest share of the outputs, as more coins make more change; where none
    helps, the selection stays as it is.
    """
    if _is_modest(selection, plan):
        return selection
    return next((larger for larger in _settled(pool, plan) if _is_modest(larger, plan)), selection)


def _is_modest(selection: Selection[CoinT], plan: Plan) -> bool:
    return selection.fee * MAX_FEE_SHARE < plan.target + selection.change


def _shuffled(pool: Sequence[CoinT], rng: RandomSource, most: int) -> Iterator[CoinT]:
    """At most ``most`` coins in random order: a lazy Fisher-Yates shuffle."""
    order = list(pool)
    for index in range(min(most, len(order))):
        other = index + rng.randrange(len(order) - index)
        order[index], order[other] = order[other], order[index]
        yield order[index]


# Core, wallet/spend.cpp: with an older tip we are behind, and a lock time would only identify our wallet.
MAX_TIP_AGE_SECONDS = 8 * 60 * 60
# One time in ten, up to a hundred blocks back, so that transactions that are signed late do not stand out.
BACKDATE_ONE_IN = 10
BACKDATE_BLOCKS = 100
# Signals replaceability (BIP-125) and enables the lock time, without a relative one (BIP-68).
SEQUENCE = 0xFFFFFFFD
# Long enough for a signer's holiday.
PROPOSAL_LIFETIME = timedelta(days=14)


def choose_locktime(tip_height: int, tip_age_seconds: float, rng: RandomSource) -> int:
    """The height before which the transaction may not be mined; 0 for none."""
    if tip_age_seconds > MAX_TIP_AGE_SECONDS:
        return 0
    if rng.randrange(BACKDATE_ONE_IN) == 0:
        return max(0, tip_height - rng.randrange(BACKDATE_BLOCKS))
    return tip_height


def other_locktimes(tip_height: int) -> Iterator[int]:
    """Further lock times for replacements, none in the future: the heights from the tip down, of which the
    first hundred look like other wallets'; then times long past, for a chain of a few blocks.
    """
    return itertools.chain(range(tip_height, -1, -1), itertools.count(LOCKTIME_THRESHOLD))


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
    return min(_settled(largest, plan), key=lambda each: each.fee, default=None)
