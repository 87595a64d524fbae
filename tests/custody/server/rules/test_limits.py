"""Limits alone (P19, P22) and over random movements, against a model that keeps everything."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
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
    ],
)
def test_p19_equal_to_the_limit_passes_and_one_more_does_not(policy, usage, requested, passes):
    assert fits(policy, usage, requested) is passes


@pytest.mark.parametrize(
    ("usage", "requested", "passes"),
    [
        (Usage(40, held=60), 60, True),
        (Usage(40, held=50), 60, True),
        (Usage(40, held=50), 61, False),
        # Lowered to 100 while 150 were reserved: what raises nothing passes, what raises does not (P22).
        (Usage(0, held=150), 150, True),
        (Usage(0, held=150), 151, False),
        (Usage(120, held=30), 5, True),
        (Usage(120, held=30), 31, False),
    ],
)
def test_a_family_counts_once_for_its_largest_version(usage, requested, passes):
    assert fits(PER_CYCLE, usage, requested) is passes


def test_what_is_over_used_leaves_nothing():
    assert (unused_of(10, 4), unused_of(10, 10), unused_of(10, 11)) == (6, 0, 0)


def test_a_sum_of_movements_may_exceed_all_there_is():
    assert btc(3 * MAX_MONEY) == "63000000.00000000"
    assert btc(123) == format_btc(Sats(123)) == "0.00000123"


def at(year, month, day, hour=12):
    return datetime(year, month, day, hour, tzinfo=UTC)


@pytest.mark.parametrize(
    ("now", "period", "day", "start", "reset"),
    [
        (at(2025, 6, 4), "W", 1, (2025, 6, 2), (2025, 6, 9)),
        (at(2025, 6, 4), "W", 3, (2025, 6, 4), (2025, 6, 11)),
        (at(2025, 6, 4), "W", 7, (2025, 6, 1), (2025, 6, 8)),
        (at(2025, 3, 30), "M", 31, (2025, 2, 28), (2025, 3, 31)),
        (at(2024, 2, 29), "M", 31, (2024, 2, 29), (2024, 3, 31)),
        (at(2024, 2, 28), "M", 30, (2024, 1, 30), (2024, 2, 29)),
        (at(2025, 12, 31), "M", 31, (2025, 12, 31), (2026, 1, 31)),
        (at(2025, 12, 31), "M", 15, (2025, 12, 15), (2026, 1, 15)),
        (at(2025, 1, 1, 0), "M", 1, (2025, 1, 1), (2025, 2, 1)),
        (at(2024, 2, 29), "M", 29, (2024, 2, 29), (2024, 3, 29)),
        (at(2025, 3, 1), "M", 29, (2025, 2, 28), (2025, 3, 29)),
        (at(2000, 2, 29), "M", 31, (2000, 2, 29), (2000, 3, 31)),
        (at(2100, 2, 28), "M", 29, (2100, 2, 28), (2100, 3, 29)),
        (at(2025, 4, 30), "M", 31, (2025, 4, 30), (2025, 5, 31)),
        (at(2025, 5, 30), "M", 31, (2025, 4, 30), (2025, 5, 31)),
        (at(2024, 12, 31, 23), "W", 2, (2024, 12, 31), (2025, 1, 7)),
    ],
)
def test_the_cycle_around_a_moment(now, period, day, start, reset):
    assert Cycle(period, day).start(now) == datetime(*start, tzinfo=UTC)
    assert Cycle(period, day).next_reset(now) == datetime(*reset, tzinfo=UTC)


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
