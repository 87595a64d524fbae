"""Coin selection never underpays, never makes dust, and conserves every satoshi, whatever the coins and the
dice. The fee of a replacement outbids by BIP-125 and at a signer's daemon.
"""

import random
from itertools import combinations, islice

from hypothesis import assume, example, given
from hypothesis import strategies as st

from custody.server.rules.fees import (
    CEILING,
    FALLBACK,
    FLOOR,
    PricedTransaction,
    bounded,
    floor_of,
    least_fee,
    settle_replacement,
)
from custody.server.rules.selection import (
    MAX_TIP_AGE_SECONDS,
    _branch_and_bound,
    choose_locktime,
    economic,
    other_locktimes,
    select_from,
)
from multisig import FeeRate, Sats
from multisig.transaction import LOCKTIME_THRESHOLD
from tests.support.selection import INPUT, OUTPUT, candidate, plan_for, select_coins, vsize_of


def coins(*amounts, **how):
    return [candidate(number, amount, **how) for number, amount in enumerate(amounts)]


AMOUNTS = st.one_of(st.integers(1, 5_000), st.integers(5_000, 10_000_000))
CANDIDATES = st.lists(st.tuples(AMOUNTS, st.integers(0, 8), st.booleans()), min_size=1, max_size=25).map(
    lambda rows: [candidate(i, *row[:2], own_change=row[2]) for i, row in enumerate(rows)]
)


@given(CANDIDATES, st.integers(0, 5_000_000), st.integers(1_000, 200_000), st.integers())
def test_the_properties_of_every_selection(candidates, target, rate, dice):
    wanted = plan_for(target, rate)
    chosen = select_coins(candidates, wanted, random.Random(dice))
    if chosen is None:
        return
    total = sum(each.amount for each in chosen.coins)
    assert total == target + chosen.change + chosen.fee, "conserves value"
    assert len({(each.txid, each.vout) for each in chosen.coins}) == len(chosen.coins), "no coin twice"
    assert set(chosen.coins) <= set(candidates)
    assert chosen.change == 0 or chosen.change >= wanted.minimum_change, "no dust"
    assert chosen.fee >= wanted.fee(len(chosen.coins), with_change=chosen.change > 0), "never underpays"
    spare = chosen.fee - wanted.fee(len(chosen.coins), with_change=False)
    if chosen.change == 0:
        assert spare < wanted.minimum_change + wanted.rate.fee_for(OUTPUT) + 1, (
            "gives no more away than change costs"
        )
    assert all(each.confirmations or each.own_change for each in chosen.coins), "no foreign unconfirmed coin"


@given(CANDIDATES, st.integers(1, 5_000_000), st.integers(1_000, 50_000), st.integers())
def test_it_finds_coins_wherever_all_economic_confirmed_ones_together_suffice(candidates, target, rate, dice):
    wanted = plan_for(target, rate)
    usable = [c for c in candidates if c.confirmations and c.amount > wanted.rate.fee_for(INPUT) + 1]
    assume(usable)
    enough = sum(c.amount for c in usable) >= target + wanted.fee(len(usable), with_change=False)
    found = select_coins(candidates, wanted, random.Random(dice))
    if enough:
        assert found is not None


@given(CANDIDATES, st.integers(0, 1_000_000), st.integers())
def test_the_same_dice_choose_the_same_coins(candidates, target, dice):
    mixed = random.Random(dice).sample(candidates, len(candidates))
    first, second = (
        select_coins(each, plan_for(target), random.Random(dice)) for each in (candidates, mixed)
    )
    assert first == second


# One coin pays exactly; two together do; two pay a satoshi less than makes change.
@example([1_000, 1_000], 1_001, 2_179)
@example([500_000, 90_318, 70_000], 90_000, 2_000)
@example([1_000_000, 50_000, 40_528, 3_000], 90_000, 2_000)
@example([90_318, 60_000, 50_000], 90_000, 2_000)
@given(
    st.lists(st.integers(1_000, 60_000), min_size=1, max_size=9),
    st.integers(1_000, 150_000),
    st.integers(1_000, 20_000),
)
def test_no_spend_without_change_is_overlooked_among_few_coins(amounts, target, rate):
    """Beside it all sets of coins, each looked at."""
    wanted = plan_for(target, rate)
    cost = wanted.fee(2, with_change=False) - wanted.fee(1, with_change=False) + 1
    worth = [amount for amount in amounts if amount > cost]
    fees = []
    for count in range(1, len(worth) + 1):
        least = wanted.fee(count, with_change=False)
        too_much = wanted.minimum_change + wanted.fee(count, with_change=True)
        paid = (sum(chosen) - target for chosen in combinations(worth, count))
        fees += [fee for fee in paid if least <= fee < too_much]
    found = _branch_and_bound(economic(coins(*amounts), wanted), wanted)
    assert (None if found is None else found.fee) == min(fees, default=None)
    if found is not None and found.fee * 20 < target:
        assert select_from(coins(*amounts), wanted, random.Random(1)) == found


def test_deep_coins_come_before_shallow_ones():
    deep, shallow = candidate(1, 200_000, 6), candidate(2, 900_000, 1)
    assert select_coins([shallow, deep], plan_for(100_000), random.Random(1)).coins == (deep,)
    assert select_coins([shallow], plan_for(100_000), random.Random(1)).coins == (shallow,)


def test_our_own_change_is_deep_at_one_block_and_may_be_spent_unconfirmed_when_nothing_else_does():
    change = candidate(1, 200_000, 1, own_change=True)
    assert select_coins([change, candidate(2, 200_000, 3)], plan_for(50_000), random.Random(1)).coins == (
        change,
    )
    waiting = candidate(3, 200_000, 0, own_change=True)
    assert select_coins([waiting], plan_for(50_000), random.Random(1)).coins == (waiting,)
    assert (
        select_coins([waiting, candidate(4, 100_000, 1)], plan_for(50_000), random.Random(1))
        .coins[0]
        .confirmations
        == 1
    )


def test_the_fee_stays_below_a_twentieth_where_coins_allow():
    """A Coldcard refuses a tenth and warns at a twentieth of the outputs."""
    wanted = plan_for(2_000, rate=5_000)
    small = candidate(1, 2_000 + wanted.fee(1, with_change=False))
    alone = select_coins([small], wanted, random.Random(1))
    assert alone.fee * 20 > 2_000 + alone.change
    chosen = select_coins([small, candidate(2, 1_000_000)], wanted, random.Random(1))
    assert chosen.fee * 20 < 2_000 + chosen.change


def test_many_coins_take_bounded_time():
    many = coins(*(1_000_000 + number * 17 for number in range(2_000)))
    chosen = select_coins(many, plan_for(50_000_003), random.Random(1))
    assert chosen is not None
    assert len(chosen.coins) <= 100


class Dice:
    """Gives the numbers it was told to."""

    def __init__(self, *numbers):
        self.numbers = list(numbers)

    def randrange(self, _stop):
        return self.numbers.pop(0)


def test_the_others_go_down_from_the_tip_and_then_begin_long_ago():
    assert list(islice(other_locktimes(2), 5)) == [2, 1, 0, LOCKTIME_THRESHOLD, LOCKTIME_THRESHOLD + 1]


RATES = st.none() | st.integers(0, 10**9).map(FeeRate)


@given(RATES, RATES)
@example(None, None)
def test_a_rate_is_no_lower_than_the_node_takes_now_and_never_absurd(least, estimate):
    """Nor lower than other nodes pass on, whatever one says."""
    floor, rate = floor_of(least), bounded(estimate, floor_of(least))
    assert FeeRate(100) <= floor <= rate <= CEILING
    if least is None:
        assert floor == FLOOR
    elif FeeRate(100) <= least <= CEILING:
        assert floor == least
    if estimate is not None and floor <= estimate <= CEILING:
        assert rate == estimate
    assert estimate is not None or rate == max(FALLBACK, floor)


@given(st.integers(0, 10**6), st.integers(0, MAX_TIP_AGE_SECONDS), st.integers())
def test_the_lock_time_is_the_tip_or_up_to_a_hundred_blocks_before_it(tip, age, seed):
    assert max(-1, tip - 100) < choose_locktime(tip, age, random.Random(seed)) <= tip


def test_nine_times_in_ten_it_is_the_tip_and_an_old_tip_gives_none():
    assert choose_locktime(1_000, 60, Dice(9)) == 1_000
    assert choose_locktime(1_000, 60, Dice(0, 99)) == 901
    assert choose_locktime(1_000, MAX_TIP_AGE_SECONDS + 1, Dice()) == 0


SIZES = st.integers(110, 5_000)
PRICED = st.builds(PricedTransaction, st.integers(100, 500_000).map(Sats), SIZES)


@given(st.lists(PRICED, min_size=1, max_size=5), SIZES)
def test_the_least_fee_outbids_every_rival_and_one_less_does_not(rivals, vsize):
    fee = least_fee(rivals, vsize)

    def outbids(paid: int) -> bool:
        """Rules 3 and 4, and a higher rate, in whole numbers."""
        return all(paid >= rival.fee + vsize and paid * rival.vsize > rival.fee * vsize for rival in rivals)

    assert outbids(fee)
    assert not outbids(fee - 1)


@given(
    st.integers(1, 400_000),
    st.integers(1_000, 100_000),
    st.integers(1, 4),
    st.lists(PRICED, max_size=3),
    st.booleans(),
)
def test_what_is_settled_adds_up_and_outbids(target, rate, inputs, rivals, pays):
    total = 100_000 * inputs
    wanted = plan_for(target if pays else 0, rate)
    spent = [candidate(number, 100_000) for number in range(inputs)]
    settled = settle_replacement(spent, wanted, rivals, pays=pays)
    if settled is None:
        spare, vsize = total - wanted.target, vsize_of(inputs, with_change=True)
        fee = max(wanted.rate.fee_for(vsize), least_fee(rivals, vsize))
        assert spare - fee < wanted.minimum_change
        return
    assert wanted.target + settled.change + settled.fee == total
    assert settled.coins == tuple(spent)
    vsize = wanted.vsize(inputs, settled.change > 0)
    assert settled.fee >= max(wanted.rate.fee_for(vsize), least_fee(rivals, vsize))
    assert settled.change >= wanted.minimum_change or (pays and settled.change == 0)
