"""Cycles reset at 00:00 UTC on their day; a day beyond the month's end is the month's end (P20)."""

from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from custody.server.domain.cycles import Cycle, cycle_start, next_reset


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
    assert cycle_start(now, period, day) == datetime(*start, tzinfo=UTC)
    assert next_reset(now, period, day) == datetime(*reset, tzinfo=UTC)


def test_another_zone_changes_nothing():
    eastern = datetime(2025, 6, 1, 23, 30, tzinfo=timezone(timedelta(hours=-5)))
    assert cycle_start(eastern, "W", 1) == datetime(2025, 6, 2, tzinfo=UTC)


# hypothesis wants its bounds without a zone and adds it itself.
FIRST, LAST = at(2000, 1, 1).replace(tzinfo=None), at(2100, 1, 1).replace(tzinfo=None)
MOMENTS = st.datetimes(min_value=FIRST, max_value=LAST, timezones=st.just(UTC))


@given(MOMENTS, st.sampled_from(["W", "M"]), st.integers(1, 31))
def test_every_moment_lies_in_its_own_cycle(now, period, day):
    day = day if period == "M" else (day - 1) % 7 + 1
    start, reset = cycle_start(now, period, day), next_reset(now, period, day)
    assert start <= now < reset
    assert cycle_start(reset, period, day) == reset
    assert cycle_start(reset - timedelta(microseconds=1), period, day) == start


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
def test_a_cycle_of_a_day_that_does_not_exist_cannot_be_made(period, day):
    with pytest.raises(ValueError, match="a day from 1"):
        Cycle(period, day)


@pytest.mark.parametrize(("period", "day"), [("W", 0), ("W", 8), ("M", 0), ("M", 32)])
def test_a_day_that_does_not_exist_is_refused(period, day):
    with pytest.raises(ValueError, match="day from 1"):
        next_reset(at(2025, 1, 1), period, day)
