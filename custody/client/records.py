"""Purchases, all pages of them."""

from custody.client.calls import PurchaseCalls
from custody.client.errors import BadAnswer
from custody.client.flow import Core
from custody.common.exchange import Plan, method
from custody.schemas.purchases import MAX_PURCHASES, PurchaseTransaction

# Bounds the memory where a faulty platform always names a next page.
MOST_LISTED = 50_000


class EveryPurchaseCalls:
    @method
    @staticmethod
    def every_purchase(core: Core) -> Plan[list[PurchaseTransaction]]:
        """``GET /api/v1/purchases``, page after page to the end, up to ``MOST_LISTED``."""
        found: list[PurchaseTransaction] = []
        while True:
            left_out, after = len(core.unreadable), found[-1].id if found else None
            page = yield from PurchaseCalls.purchases.plan(core, after=after, limit=MAX_PURCHASES)
            found += page
            if len(page) + len(core.unreadable) - left_out < MAX_PURCHASES:
                return found
            if not page or found[-1].id == after or len(found) > MOST_LISTED:
                raise BadAnswer(f"purchases: no end after {len(found):,} of them")
