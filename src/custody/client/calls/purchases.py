"""The caller's own purchases."""

from dataclasses import dataclass

from pydantic import TypeAdapter

from custody.client.flow import Core, Plan, call, read
from custody.client.method import method
from custody.schemas.purchases import MAX_PURCHASES, PurchaseTransaction

_PURCHASES = TypeAdapter(list[PurchaseTransaction])


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
        """``GET /api/v1/purchases``, page after page to the end."""
        found: list[PurchaseTransaction] = []
        while True:
            page = yield from _page(core, found[-1].id if found else None, MAX_PURCHASES)
            found += page.items
            if not page.has_more:
                return found


def _page(core: Core, after: str | None, limit: int | None) -> Plan[PurchaseList]:
    request = core.build("GET", "/api/v1/purchases", query={"after": after, "limit": limit})
    response = yield from call(core, request, repeatable=True)
    items = read(response, _PURCHASES)
    total = response.headers.get("x-total-count", "")
    return PurchaseList(
        tuple(items), int(total) if total.isdecimal() else len(items), "next" in response.links
    )
