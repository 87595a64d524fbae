"""Limits alone (P19, P22) and over random movements, against a model that keeps everything."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from custody.common.text import btc
from custody.server.rules.limits import (
    Cycle,
    SpendingPolicy,
    Usage,
    fits,
    unused_of,
)
from multisig import MAX_MONEY, Sats, format_btc

MONTHLY = Cycle("M", 1)
PER_CYCLE = SpendingPolicy(Sats(100), MONTHLY)
PER_MOVEMENT = SpendingPolicy(Sats(100), MONTHLY, is_per_cycle=False)


@pytest.mark.parametrize(
    ("policy", "usage", "requested", "passes"),
    [
        (PER_CYCLE, Usage(0), 100, True),
        (PER_CYCLE, Usage(0), 101, False),
        (PER_CYCLE, Usage(40), 60, True),
        (PER_CYCLE, Usage(40), 61, False),
        (PER_CYCLE, Usage(100), 1, False),
        (PER_MOVEMENT, Usage(10**18), 100, True),
        (PER_MOVEMENT, Usage(0), 101, False),
        (SpendingPolicy(Sats(0), MONTHLY), Usage(0), 1, False),
        # A family counts once, for its largest version.
        (PER_CYCLE, Usage(40, held=60), 60, True),
        (PER_CYCLE, Usage(40, held=50), 60, True),
        (PER_CYCLE, Usage(40, held=50), 61, False),
        # Lowered to 100 while 150 were reserved: what raises nothing passes, what raises does not (P22).
        (PER_CYCLE, Usage(0, held=150), 150, True),
        (PER_CYCLE, Usage(0, held=150), 151, False),
        (PER_CYCLE, Usage(120, held=30), 5, True),
        (PER_CYCLE, Usage(120, held=30), 31, False),
    ],
)
def test_p19_equal_to_the_limit_passes_and_one_more_does_not(policy, usage, requested, passes):
    assert fits(policy, usage, requested) is passes


def test_what_is_over_used_leaves_nothing():
    assert (unused_of(10, 4), unused_of(10, 10), unused_of(10, 11)) == (6, 0, 0)


def test_a_sum_of_movements_may_exceed_all_there_is():
    assert btc(3 * MAX_MONEY) == "63000000.00000000"
    assert btc(123) == format_btc(Sats(123)) == "0.00000123"


def at(year, month, day, hour=12):
    return datetime(year, month, day, hour, tzinfo=UTC)


# hypothesis wants its bounds without a zone and adds it itself.
FIRST, LAST = at(2000, 1, 1).replace(tzinfo=None), at(2100, 1, 1).replace(tzinfo=None)
MOMENTS = st.datetimes(min_value=FIRST, max_value=LAST, timezones=st.just(UTC))


def is_reset_day(day, period, number):
    """Read off the calendar, a day at a time."""
    if period == "W":
        return day.isoweekday() == number
    is_last = (day + timedelta(days=1)).month != day.month
    return day.day == number or (is_last and day.day < number)


@given(MOMENTS, st.sampled_from(["W", "M"]), st.integers(1, 31))
@example(at(2024, 2, 29), "M", 31)
@example(at(2100, 2, 28), "M", 29)
@example(at(2025, 12, 31), "M", 31)
@example(at(2025, 1, 1, 0), "M", 1)
@example(at(2024, 12, 31, 23), "W", 2)
def test_the_calendar_says_the_same(now, period, number):
    number = number if period == "M" else (number - 1) % 7 + 1
    cycle, today = Cycle(period, number), now.date()
    back = next(n for n in range(32) if is_reset_day(today - timedelta(days=n), period, number))
    ahead = next(n for n in range(1, 32) if is_reset_day(today + timedelta(days=n), period, number))
    midnight = datetime(today.year, today.month, today.day, tzinfo=UTC)
    assert cycle.start(now) == midnight - timedelta(days=back)
    assert cycle.next_reset(now) == midnight + timedelta(days=ahead)


@pytest.mark.parametrize(("period", "day"), [("W", 0), ("W", 8), ("M", 0), ("M", 32)])
def test_a_day_that_does_not_exist_is_refused(period, day):
    with pytest.raises(ValueError, match="a day from 1"):
        Cycle(period, day)
