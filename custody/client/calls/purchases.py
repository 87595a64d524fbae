"""The caller's own purchases."""

import re
from dataclasses import dataclass

from pydantic import TypeAdapter

from custody.client.errors import BadAnswer
from custody.client.flow import Core, Plan, call, read
from custody.client.method import method
from custody.schemas.common import Few
from custody.schemas.purchases import MAX_PURCHASES, PurchaseTransaction

# Python reads no number of thousands of digits.
_COUNT = re.compile(r"[0-9]{1,18}")
_PURCHASES = TypeAdapter(Few[PurchaseTransaction])


# A person's, in a lifetime. An answer that always names a next page would fill any memory.
MOST_LISTED = 50_000


@dataclass(frozen=True)
class PurchaseList:
    """``total`` counts all; ``has_more``: go on with ``after`` as the last id."""

    items: tuple[PurchaseTransaction, ...]
    total: int
    has_more: bool


class PurchaseCalls:
    @method
    @staticmethod
    def purchases(core: Core, *, after: str | None = None, limit: int | None = None) -> Plan[PurchaseList]:
        """``GET /api/v1/purchases``: one page, the newest first."""
        return (yield from _page(core, after, limit))

    @method
    @staticmethod
    def every_purchase(core: Core) -> Plan[list[PurchaseTransaction]]:
        """``GET /api/v1/purchases``, page after page to the end, up to ``MOST_LISTED``."""
        found: list[PurchaseTransaction] = []
        while True:
            after = found[-1].id if found else None
            page = yield from _page(core, after, MAX_PURCHASES)
            found += page.items
            if not page.has_more:
                return found
            if not page.items or found[-1].id == after or len(found) > MOST_LISTED:
                raise BadAnswer(f"purchases: no end after {len(found):,} of them")


def _page(core: Core, after: str | None, limit: int | None) -> Plan[PurchaseList]:
    request = core.build("GET", "/api/v1/purchases", query={"after": after, "limit": limit})
    response = yield from call(core, request, repeatable=True)
    items = read(response, _PURCHASES)
    total = response.headers.get("x-total-count", "")
    return PurchaseList(
        tuple(items), int(total) if _COUNT.fullmatch(total) else len(items), "next" in response.links
    )
