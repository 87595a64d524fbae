"""Spending cycles: when the current one began and when the counters reset, at 00:00 UTC."""

from calendar import monthrange
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from typing import Literal

CyclePeriod = Literal["W", "M"]


@dataclass(frozen=True)
class Cycle:
    """How often a counter begins anew, and on which day. Raises ValueError for a day that the period does not have."""

    period: CyclePeriod
    day: int

    def __post_init__(self) -> None:
        if not 1 <= self.day <= (7 if self.period == "W" else 31):
            raise ValueError(
                "a cycle starts on a day from 1 to 7 (Monday is 1), or from 1 to 31 of the month"
            )

    def start(self, now: datetime) -> datetime:
        return cycle_start(now, self.period, self.day)

    def next_reset(self, now: datetime) -> datetime:
        return next_reset(now, self.period, self.day)

    @property
    def in_words(self) -> str:
        return "week" if self.period == "W" else "month"

    def __str__(self) -> str:
        return f"{self.period} from day {self.day}"


def cycle_start(now: datetime, period: CyclePeriod, day: int) -> datetime:
    """The last reset at or before `now`. `day`: 1–7 (Monday = 1) for W; 1–31, clamped to the month's end, for M."""
    today = now.astimezone(UTC).date()
    start = _weekly_start(today, day) if period == "W" else _monthly_start(today, day)
    return datetime.combine(start, time(), UTC)


def next_reset(now: datetime, period: CyclePeriod, day: int) -> datetime:
    """The first reset after `now`."""
    start = cycle_start(now, period, day).date()
    following = start + timedelta(days=7) if period == "W" else _reset_day(*_month_after(start), day)
    return datetime.combine(following, time(), UTC)


def _weekly_start(today: date, day: int) -> date:
    if not 1 <= day <= 7:
        raise ValueError("a weekly cycle starts on a day from 1 (Monday) to 7")
    return today - timedelta(days=(today.isoweekday() - day) % 7)


def _monthly_start(today: date, day: int) -> date:
    if not 1 <= day <= 31:
        raise ValueError("a monthly cycle starts on a day from 1 to 31")
    this_month = _reset_day(today.year, today.month, day)
    if this_month <= today:
        return this_month
    before = today.replace(day=1) - timedelta(days=1)
    return _reset_day(before.year, before.month, day)


def _reset_day(year: int, month: int, day: int) -> date:
    return date(year, month, min(day, monthrange(year, month)[1]))


def _month_after(moment: date) -> tuple[int, int]:
    return (moment.year + 1, 1) if moment.month == 12 else (moment.year, moment.month + 1)
