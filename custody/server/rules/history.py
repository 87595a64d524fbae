"""A vault's history: the order of its movements within a block, the balance after each, the cursor of a page.

Movements are ordered by height, and within a block parents come before children: so no balance is ever
negative, and a later confirmation comes after an earlier one. Pending movements have no balance; they come
last, in the order in which they were first seen.
"""

import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from graphlib import CycleError, TopologicalSorter
from itertools import accumulate

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
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
        return f"{place}_{(seen - EPOCH) // timedelta(microseconds=1)}_{txid}"

    @classmethod
    def parse(cls, text: str) -> "Cursor | None":
        """None for text that is not a cursor."""
        found = _CURSOR.fullmatch(text)
        if found is None or not text:
            return None
        height, place, seen, txid = found.group("height", "place", "seen", "txid")
        confirmed = None if height is None else (int(height), int(place))
        pending = None if seen is None else (EPOCH + timedelta(microseconds=int(seen)), txid)
        return cls(confirmed, pending)
