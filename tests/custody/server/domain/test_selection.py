"""Coin selection never underpays, never makes dust, and conserves every satoshi,
whatever the coins and the dice.
"""

import random
from itertools import combinations, islice

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from custody.server.domain.fees import CEILING, FALLBACK, FLOOR, bounded
from custody.server.domain.selection import (
    MAX_TIP_AGE_SECONDS,
    Candidate,
    Plan,
    _branch_and_bound,
    choose_locktime,
    economic,
    other_locktimes,
)
from multisig import FeeRate, Sats
from multisig.transaction import LOCKTIME_THRESHOLD
from tests.support.selection import select_coins

DUST = 330
# 2-of-3 P2WSH: 104.5 vB for an input, 43 for an output.
BASE, INPUT, OUTPUT = 54, 105, 43


def vsize(inputs, with_change):
    return BASE + INPUT * inputs + (OUTPUT if with_change else 0)


def plan(target, rate=2_000):
    rate = FeeRate(rate)
    return Plan(Sats(target), rate, vsize, Sats(max(DUST, rate.fee_for(INPUT))))


def coin(number, amount, confirmations=6, *, own_change=False):
    return Candidate(f"{number:064x}", 0, Sats(amount), confirmations, own_change)


def coins(*amounts, **how):
    return [coin(number, amount, **how) for number, amount in enumerate(amounts)]


AMOUNTS = st.one_of(st.integers(1, 5_000), st.integers(5_000, 10_000_000))
CANDIDATES = st.lists(st.tuples(AMOUNTS, st.integers(0, 8), st.booleans()), min_size=1, max_size=25).map(
    lambda rows: [coin(i, *row[:2], own_change=row[2]) for i, row in enumerate(rows)]
)


@given(CANDIDATES, st.integers(0, 5_000_000), st.integers(1_000, 200_000), st.integers())
def test_the_properties_of_every_selection(candidates, target, rate, dice):
    wanted = plan(target, rate)
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
    wanted = plan(target, rate)
    usable = [c for c in candidates if c.confirmations and c.amount > wanted.rate.fee_for(INPUT) + 1]
    assume(usable)
    enough = sum(c.amount for c in usable) >= target + wanted.fee(len(usable), with_change=False)
    found = select_coins(candidates, wanted, random.Random(dice))
    if enough:
        assert found is not None


@given(CANDIDATES, st.integers(0, 1_000_000), st.integers())
def test_the_same_dice_choose_the_same_coins(candidates, target, dice):
    mixed = random.Random(dice).sample(candidates, len(candidates))
    first, second = (select_coins(each, plan(target), random.Random(dice)) for each in (candidates, mixed))
    assert first == second


def test_an_exact_match_needs_no_change():
    wanted = plan(90_000)
    exact = 90_000 + wanted.fee(1, with_change=False)
    chosen = select_coins(coins(500_000, exact, 70_000), wanted, random.Random(1))
    assert (chosen.change, [c.amount for c in chosen.coins]) == (0, [exact])


def test_two_coins_that_match_together_are_found_by_branch_and_bound():
    wanted = plan(90_000)
    pair = 90_000 + wanted.fee(2, with_change=False)
    chosen = select_coins(coins(1_000_000, 50_000, pair - 50_000, 3_000), wanted, random.Random(1))
    assert (chosen.change, sorted(c.amount for c in chosen.coins)) == (0, sorted([50_000, pair - 50_000]))


def test_of_two_spends_without_change_the_one_of_the_lower_fee_is_chosen():
    wanted = plan(90_000, rate=10_000)
    one, pair = (90_000 + wanted.fee(count, with_change=False) for count in (1, 2))
    # The pair has nothing to spare, and yet a second input costs more than the one coin gives away.
    chosen = select_coins(coins(50_000, pair - 50_000, one + 500), wanted, random.Random(1))
    assert [c.amount for c in chosen.coins] == [one + 500]
    assert (
        select_coins(coins(50_000, pair - 50_000, one + 5_000), wanted, random.Random(1)).fee == pair - 90_000
    )


@given(
    st.lists(st.integers(1_000, 60_000), min_size=1, max_size=9),
    st.integers(1_000, 150_000),
    st.integers(1_000, 20_000),
)
def test_no_spend_without_change_is_overlooked_among_few_coins(amounts, target, rate):
    """Beside it all sets of coins, each looked at."""
    wanted = plan(target, rate)
    cost = wanted.fee(2, with_change=False) - wanted.fee(1, with_change=False) + 1
    worth = [amount for amount in amounts if amount > cost]
    spare = wanted.minimum_change + wanted.fee(1, with_change=True) - wanted.fee(1, with_change=False)
    fees = []
    for count in range(1, len(worth) + 1):
        least = wanted.fee(count, with_change=False)
        paid = (sum(chosen) - target for chosen in combinations(worth, count))
        fees += [fee for fee in paid if least <= fee < least + spare]
    found = _branch_and_bound(economic(coins(*amounts), wanted), wanted)
    assert (None if found is None else found.fee) == min(fees, default=None)


def test_deep_coins_come_before_shallow_ones():
    deep, shallow = coin(1, 200_000, 6), coin(2, 900_000, 1)
    assert select_coins([shallow, deep], plan(100_000), random.Random(1)).coins == (deep,)
    assert select_coins([shallow], plan(100_000), random.Random(1)).coins == (shallow,)


def test_our_own_change_is_deep_at_one_block_and_may_be_spent_unconfirmed_when_nothing_else_does():
    change = coin(1, 200_000, 1, own_change=True)
    assert select_coins([change, coin(2, 200_000, 3)], plan(50_000), random.Random(1)).coins == (change,)
    waiting = coin(3, 200_000, 0, own_change=True)
    assert select_coins([waiting], plan(50_000), random.Random(1)).coins == (waiting,)
    assert (
        select_coins([waiting, coin(4, 100_000, 1)], plan(50_000), random.Random(1)).coins[0].confirmations
        == 1
    )


def test_foreign_unconfirmed_coins_are_never_spent():
    assert select_coins(coins(10_000_000, confirmations=0), plan(1_000), random.Random(1)) is None


def test_change_that_would_cost_more_than_it_brings_goes_to_the_fee():
    wanted = plan(90_000, rate=10_000)
    amount = 90_000 + wanted.fee(1, with_change=True) + wanted.minimum_change - 1
    chosen = select_coins(coins(amount), wanted, random.Random(1))
    assert (chosen.change, chosen.fee) == (0, amount - 90_000)
    chosen = select_coins(coins(amount + 1), wanted, random.Random(1))
    assert chosen.change == wanted.minimum_change


def test_the_fee_stays_below_a_twentieth_where_coins_allow():
    """A Coldcard refuses a tenth and warns at a twentieth of the outputs."""
    wanted = plan(2_000, rate=5_000)
    small = coin(1, 2_000 + wanted.fee(1, with_change=False))
    alone = select_coins([small], wanted, random.Random(1))
    assert alone.fee * 20 > 2_000 + alone.change
    chosen = select_coins([small, coin(2, 1_000_000)], wanted, random.Random(1))
    assert chosen.fee * 20 < 2_000 + chosen.change


def test_a_data_only_transaction_needs_a_coin_too():
    chosen = select_coins(coins(100_000), plan(0), random.Random(1))
    assert len(chosen.coins) == 1
    assert chosen.change == 100_000 - chosen.fee


@pytest.mark.parametrize("amounts", [[], [100], [99_000]])
def test_too_little_is_none(amounts):
    assert select_coins(coins(*amounts), plan(99_000), random.Random(1)) is None


def test_many_coins_take_bounded_time():
    many = coins(*(1_000_000 + number * 17 for number in range(2_000)))
    chosen = select_coins(many, plan(50_000_003), random.Random(1))
    assert chosen is not None
    assert len(chosen.coins) <= 100


class Dice:
    """Gives the numbers it was told to."""

    def __init__(self, *numbers):
        self.numbers = list(numbers)

    def randrange(self, _stop):
        return self.numbers.pop(0)


def test_nine_times_in_ten_it_is_the_tip():
    assert choose_locktime(1_000, 60, Dice(9)) == 1_000


def test_one_time_in_ten_it_is_up_to_a_hundred_blocks_back():
    assert choose_locktime(1_000, 60, Dice(0, 99)) == 901
    assert choose_locktime(10, 60, Dice(0, 99)) == 0


def test_an_old_tip_gives_none():
    assert choose_locktime(1_000, MAX_TIP_AGE_SECONDS + 1, Dice()) == 0
    assert choose_locktime(1_000, MAX_TIP_AGE_SECONDS, Dice(5)) == 1_000


@given(st.integers(0, 10**6), st.integers())
def test_it_is_never_ahead_of_the_tip(tip, seed):
    assert tip - 100 < choose_locktime(tip, 0, random.Random(seed)) <= tip or tip < 100


def test_the_others_go_down_from_the_tip_and_then_begin_long_ago():
    assert list(islice(other_locktimes(2), 5)) == [2, 1, 0, LOCKTIME_THRESHOLD, LOCKTIME_THRESHOLD + 1]


@pytest.mark.parametrize(
    ("estimate", "rate"),
    [(None, FALLBACK), (FeeRate(1), FLOOR), (FeeRate(10**9), CEILING), (FeeRate(7_777), FeeRate(7_777))],
)
def test_an_estimate_is_kept_within_bounds(estimate, rate):
    assert bounded(estimate) == rate
