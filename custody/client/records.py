"""Purchases."""

import re
from dataclasses import dataclass
from typing import Generic, TypeVar

from pydantic import TypeAdapter

from custody.client.errors import BadAnswer
from custody.client.flow import Core, call, next_page, read_list
from custody.exchange import Plan, Reply, method
from custody.schemas.common import LATER, Few
from custody.schemas.purchases import MAX_PURCHASES, PurchaseTransaction

# Python refuses to parse numbers of thousands of digits.
_COUNT = re.compile(r"[0-9]{1,18}")
_PURCHASES = TypeAdapter(Few[PurchaseTransaction], config=LATER)
# Bounds the memory where a faulty platform always names a next page.
MOST_LISTED = 50_000
Item = TypeVar("Item")


@dataclass(frozen=True)
class Page(Generic[Item]):
    """One page of a list. ``total`` counts all; ``has_more``: ask again with ``after`` as the last id."""

    items: tuple[Item, ...]
    total: int
    has_more: bool


class PurchaseCalls:
    @method
    @staticmethod
    def purchases(
        core: Core, *, after: str | None = None, limit: int | None = None
    ) -> Plan[Page[PurchaseTransaction]]:
        """``GET /api/v1/purchases``: one page, the newest first."""
        return (yield from _purchases(core, after, limit))

    @method
    @staticmethod
    def every_purchase(core: Core) -> Plan[list[PurchaseTransaction]]:
        """``GET /api/v1/purchases``, page after page to the end, up to ``MOST_LISTED``."""
        found: list[PurchaseTransaction] = []
        while True:
            after = found[-1].id if found else None
            page = yield from _purchases(core, after, MAX_PURCHASES)
            found += page.items
            if not page.has_more:
                return found
            if not page.items or found[-1].id == after or len(found) > MOST_LISTED:
                raise BadAnswer(f"purchases: no end after {len(found):,} of them")


def _purchases(core: Core, after: str | None, limit: int | None) -> Plan[Page[PurchaseTransaction]]:
    request = core.build("GET", "/api/v1/purchases", query={"after": after, "limit": limit})
    return _counted(core, (yield from call(core, request, repeatable=True)), _PURCHASES)


def _counted(core: Core, reply: Reply, items: TypeAdapter[list[Item]]) -> Page[Item]:
    read_items = read_list(core, reply, items)
    total = reply.headers.get("x-total-count", "")
    return Page(
        tuple(read_items),
        int(total) if _COUNT.fullmatch(total) else len(read_items),
        next_page(reply) is not None,
    )
