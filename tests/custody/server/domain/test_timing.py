"""Lock times look like everybody's: mostly the tip, sometimes a little before, none where we are behind."""

import random
from itertools import islice

import pytest
from hypothesis import given
from hypothesis import strategies as st

from custody.server.domain.fees import CEILING, FALLBACK, FLOOR, bounded
from custody.server.domain.timing import FIRST_TIME, MAX_TIP_AGE_SECONDS, choose_locktime, other_locktimes
from multisig import FeeRate


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
    assert list(islice(other_locktimes(2), 5)) == [2, 1, 0, FIRST_TIME, FIRST_TIME + 1]


@pytest.mark.parametrize(
    ("estimate", "rate"),
    [(None, FALLBACK), (FeeRate(1), FLOOR), (FeeRate(10**9), CEILING), (FeeRate(7_777), FeeRate(7_777))],
)
def test_an_estimate_is_kept_within_bounds(estimate, rate):
    assert bounded(estimate) == rate
