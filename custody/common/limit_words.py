"""The words for what a spending limit bounds, wherever one is shown: each payment, or the sum of all payments
of a week or a month.
"""

from datetime import datetime
from typing import Final

IN_EACH_PAYMENT: Final = "in each payment, however many there are"
WEEKDAYS: Final = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")


def bounds(*, per_cycle: bool, period: str, day: int) -> str:
    """The words after an amount, as in ``At most 0.5 BTC`` …"""
    return f"in all payments of {cycle_words(period, day)} together" if per_cycle else IN_EACH_PAYMENT


def cycle_words(period: str, day: int) -> str:
    """``day``: of the week from Monday on, or of the month."""
    if period == "W":
        return f"a week from {WEEKDAYS[day - 1]} (UTC)"
    return "a calendar month (UTC)" if day == 1 else f"a month from day {day} (UTC)"


def until(reset: datetime) -> str:
    """The day on which a new cycle begins, at 00:00 UTC: ``1 December``."""
    return f"{reset.day} {reset:%B}"
