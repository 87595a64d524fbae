"""A vault's history: the order of its movements within a block, the balance after each, the cursor of a page;
and the price of a bitcoin by day, from the operator's own table.

Movements are ordered by height, and within a block parents come before children: so no balance is ever
negative, and a later confirmation comes after an earlier one. Pending movements have no balance; they come
last, in the order in which they were first seen.

A file of prices has the columns ``date`` (ISO 8601), ``currency`` (ISO 4217) and ``rate`` (units of the
currency per bitcoin, plain decimal notation), separated by commas, and one line for each day. Nothing is a
float.
"""

import csv
import re
from bisect import bisect_right
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import ROUND_HALF_EVEN, Context, Decimal
from graphlib import CycleError, TopologicalSorter
from itertools import accumulate
from typing import Final

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_CURSOR = re.compile(
    r"(?:(?P<height>[0-9]{1,10})\.(?P<place>[0-9]{1,10}))?(?:_(?P<seen>[0-9]{1,17})_(?P<txid>[0-9a-f]{64}))?"
)


def in_order(txids: Iterable[str], spends: Mapping[str, Collection[str]]) -> list[str]:
    """One block's transactions: parents first, and by txid among those that do not depend on each other.

    ``spends``: by txid, the transactions whose coins it spends, in this block or before. A faulty
    explorer may report two transactions that spend each other, which no block can hold: then the order is
    by txid.
    """
    block = sorted(txids)
    within = set(block)
    sorter = TopologicalSorter({txid: within.intersection(spends.get(txid, ())) for txid in block})
    try:
        sorter.prepare()
    except CycleError:
        return block
    found: list[str] = []
    while sorter.is_active():
        ready = sorted(sorter.get_ready())
        found += ready
        sorter.done(*ready)
    return found


def balances(before: int, amounts: Iterable[int]) -> list[int]:
    """The balance after each, in satoshi."""
    return list(accumulate(amounts, initial=before))[1:]


@dataclass(frozen=True)
class Cursor:
    """The last movement of a page: a confirmed one by (height, place), a pending one by (first seen, txid).

    When pages go from the oldest on, a pending cursor also keeps the last confirmed place. A movement that
    confirms between two pages is then shown again at its new place, with its balance, and none is left out.
    """

    confirmed: tuple[int, int] | None = None
    pending: tuple[datetime, str] | None = None

    def __str__(self) -> str:
        place = "" if self.confirmed is None else f"{self.confirmed[0]}.{self.confirmed[1]}"
        if self.pending is None:
            return place
        seen, txid = self.pending
        return f"{place}_{(seen - _EPOCH) // timedelta(microseconds=1)}_{txid}"

    @classmethod
    def parse(cls, text: str) -> "Cursor | None":
        """None for text that is not a cursor."""
        found = _CURSOR.fullmatch(text)
        if found is None or not text:
            return None
        height, place, seen, txid = found.group("height", "place", "seen", "txid")
        confirmed = None if height is None else (int(height), int(place))
        pending = None if seen is None else (_EPOCH + timedelta(microseconds=int(seen)), txid)
        return cls(confirmed, pending)


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
