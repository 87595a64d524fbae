"""The price of a bitcoin by day, from the operator's own table.

A file has the columns ``date`` (ISO 8601), ``currency`` (ISO 4217) and ``rate`` (units of the currency per
bitcoin, plain decimal notation), separated by commas, and one line for each day. Nothing is a float.
"""

import csv
import re
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from decimal import ROUND_HALF_EVEN, Context, Decimal
from typing import Final

# Banks publish no rate at weekends and on holidays: the last one before them is used.
OLDEST_RATE: Final = timedelta(days=7)
# A line for each day of half a century.
MAX_DAYS: Final = 20_000
COLUMNS: Final = ["date", "currency", "rate"]
_CURRENCY: Final = re.compile(r"[A-Z]{3}")
_DAY: Final = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_RATE: Final = re.compile(r"(0|[1-9][0-9]{0,14})(\.[0-9]{1,8})?")
_CENT: Final = Decimal("0.01")
# 16 digits of satoshi times 23 of a rate: nothing is rounded but the result.
_EXACT: Final = Context(prec=60)


class BadRates(ValueError):
    """A malformed table. The message names the line."""


@dataclass(frozen=True)
class Rate:
    """``per_btc``: units of ``currency`` for one bitcoin, on ``day``."""

    currency: str
    day: date
    per_btc: Decimal

    def value_of(self, sats: int) -> Decimal:
        """In the currency, rounded half to even to two places."""
        exact = _EXACT.multiply(Decimal(sats).scaleb(-8), self.per_btc)
        return exact.quantize(_CENT, ROUND_HALF_EVEN, _EXACT)


@dataclass(frozen=True)
class DailyRates:
    """``days``: in order."""

    currency: str
    days: Sequence[date]
    rates: Sequence[Decimal]

    def on(self, day: date) -> Rate | None:
        """That day's, or the last one before it that is not too old."""
        place = bisect_right(self.days, day) - 1
        if place < 0 or day - self.days[place] > OLDEST_RATE:
            return None
        return Rate(self.currency, self.days[place], self.rates[place])


def parse_rates(text: str) -> DailyRates:
    """Raises BadRates, also where the last line has no line feed: a rate may be cut short there."""
    if not text.endswith("\n"):
        raise BadRates("the last line has no line feed: is the file still being written?")
    lines = csv.reader(text.splitlines(), strict=True)
    try:
        if next(lines, None) != COLUMNS:
            raise BadRates("line 1 is not date,currency,rate")
        return _table([(lines.line_num, cells) for cells, _ in zip(lines, range(MAX_DAYS + 1), strict=False)])
    except csv.Error as error:
        raise BadRates(f"line {lines.line_num} is no CSV: {error}") from None


def _table(lines: Sequence[tuple[int, list[str]]]) -> DailyRates:
    if not lines:
        raise BadRates("it has no rate")
    if len(lines) > MAX_DAYS:
        raise BadRates(f"it has more than {MAX_DAYS:,} days")
    found: dict[date, Decimal] = {}
    currency = lines[0][1][1] if len(lines[0][1]) == len(COLUMNS) else ""
    for number, cells in lines:
        rate = _rate(number, cells)
        if rate.currency != currency:
            raise BadRates(f"line {number} is in {rate.currency}, and line 2 in {currency}: use one currency")
        if rate.day in found:
            raise BadRates(f"line {number} has {rate.day} a second time")
        found[rate.day] = rate.per_btc
    days = sorted(found)
    return DailyRates(currency, days, [found[day] for day in days])


def _rate(number: int, cells: list[str]) -> Rate:
    if len(cells) != len(COLUMNS):
        raise BadRates(f"line {number} has {len(cells)} columns, not {len(COLUMNS)}")
    day, currency, rate = cells
    if not _CURRENCY.fullmatch(currency):
        raise BadRates(f"line {number}: the currency is three capital letters, like EUR")
    if not _RATE.fullmatch(rate) or Decimal(rate) == 0:
        raise BadRates(f"line {number}: the rate is a number above 0 with a point, like 81234.56")
    try:
        return Rate(currency, _day(day), Decimal(rate))
    except ValueError:
        raise BadRates(f"line {number}: the date is written like 2026-05-01") from None


def _day(text: str) -> date:
    """Raises ValueError. Python takes more forms of ISO 8601 than a person can tell apart."""
    if not _DAY.fullmatch(text):
        raise ValueError(text)
    return date.fromisoformat(text)
