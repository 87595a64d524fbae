"""Weekdays and hours in a time zone. The moment is passed in; the zone's rules are the system's tables (IANA)."""

import re
from dataclasses import dataclass
from datetime import datetime
from zoneinfo import ZoneInfo

# As date.weekday() counts.
WEEKDAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
_CLOCK = re.compile(r"([01][0-9]|2[0-3]):([0-5][0-9])", re.ASCII)
# The end of a day, which no clock shows; ISO 8601 writes it so.
MIDNIGHT = "24:00"
MINUTES_A_DAY = 24 * 60


@dataclass(frozen=True)
class Hours:
    """From ``opens`` (included) to ``closes`` (excluded), both in minutes since midnight, on each of ``weekdays``.

    They are what a clock on the wall shows: an hour that summer time repeats counts twice, one that it skips never.
    """

    zone: ZoneInfo
    weekdays: frozenset[int]
    opens: int
    closes: int

    def contain(self, moment: datetime) -> bool:
        """``moment`` knows its own zone."""
        local = moment.astimezone(self.zone)
        minute = local.hour * 60 + local.minute
        return local.weekday() in self.weekdays and self.opens <= minute < self.closes

    def __str__(self) -> str:
        days = ", ".join(day for number, day in enumerate(WEEKDAYS) if number in self.weekdays)
        return f"{days} {clock_text(self.opens)} to {clock_text(self.closes)} {self.zone.key}"


def minute_of_day(text: str) -> int:
    """Minutes since midnight of "08:30". Raises ValueError."""
    match = _CLOCK.fullmatch(text)
    if text == MIDNIGHT:
        return MINUTES_A_DAY
    if match is None:
        raise ValueError(f'"{text}" is no time of day: write it like "08:30", at most "{MIDNIGHT}"')
    return int(match[1]) * 60 + int(match[2])


def clock_text(minute: int) -> str:
    return f"{minute // 60:02d}:{minute % 60:02d}"
