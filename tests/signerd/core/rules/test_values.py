"""Weekdays and hours on the wall's clock, through summer time and around the date line."""

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from signerd.core.rules.values import Hours, clock_text, minute_of_day

WORK = frozenset(range(5))


def hours(
    zone: str = "UTC", opens: str = "08:00", closes: str = "18:00", days: frozenset[int] = WORK
) -> Hours:
    return Hours(ZoneInfo(zone), days, minute_of_day(opens), minute_of_day(closes))


@pytest.mark.parametrize(
    ("moment", "inside"),
    [
        ("2026-01-02T07:59:59.999Z", False),
        ("2026-01-02T08:00:00Z", True),
        ("2026-01-02T17:59:59.999Z", True),
        ("2026-01-02T18:00:00Z", False),
        ("2026-01-03T12:00:00Z", False),
    ],
)
def test_it_opens_on_the_minute_and_closes_on_the_minute(moment: str, inside: bool) -> None:
    assert hours().contain(datetime.fromisoformat(moment)) is inside


@pytest.mark.parametrize(
    ("zone", "moment", "inside"),
    [
        # The same minute of UTC, before and after summer time begins (29 March 2026 in Europe).
        ("Europe/Berlin", "2026-03-27T06:30:00Z", False),
        ("Europe/Berlin", "2026-03-30T06:30:00Z", True),
        # Friday evening in California is Saturday in UTC; Monday morning in Auckland is Sunday.
        ("America/Los_Angeles", "2026-01-03T01:30:00Z", True),
        ("Pacific/Auckland", "2026-01-04T20:00:00Z", True),
    ],
)
def test_the_zone_decides_on_day_and_hour(zone: str, moment: str, inside: bool) -> None:
    assert hours(zone).contain(datetime.fromisoformat(moment)) is inside


def test_a_day_ends_at_24() -> None:
    late = hours(opens="22:00", closes="24:00")
    assert late.contain(datetime(2026, 1, 2, 23, 59, 59, tzinfo=UTC))
    assert not late.contain(datetime(2026, 1, 3, 0, 0, tzinfo=UTC))


@given(st.datetimes(min_value=datetime(2009, 1, 3), max_value=datetime(2100, 1, 1)))  # noqa: DTZ001 - hypothesis wants them so
def test_it_is_always_within_a_whole_week(moment: datetime) -> None:
    week = hours("America/St_Johns", "00:00", "24:00", frozenset(range(7)))
    assert week.contain(moment.replace(tzinfo=UTC))
    never_on_this_day = hours("UTC", "00:00", "24:00", frozenset(range(7)) - {moment.weekday()})
    assert not never_on_this_day.contain(moment.replace(tzinfo=UTC))
    assert never_on_this_day.contain(moment.replace(tzinfo=UTC) + timedelta(days=1))


@given(st.integers(0, 24 * 60))
def test_a_time_of_day_reads_as_it_is_written(minute: int) -> None:
    assert minute_of_day(clock_text(minute)) == minute


@pytest.mark.parametrize("text", ["", "8:00", "08:60", "24:01", "25:00", "08:00 ", "٠٨:٠٠", "08:00:00"])
def test_what_no_clock_shows_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="time of day"):
        minute_of_day(text)
