"""Purchases: the provider's signed webhook, and each member's own list."""

from urllib.parse import urlencode

from pydantic import TypeAdapter
from starlette.concurrency import run_in_threadpool
from starlette.responses import Response

from custody.schemas.common import Done
from custody.schemas.purchases import PurchasesQuery, PurchaseTransaction
from custody.server.domain.errors import Invalid, NotFound, WebhookRefused
from custody.server.domain.purchases import SIGNATURE_HEADER
from custody.server.web.endpoint import Call, Door, Endpoint, Unit

_LIST = TypeAdapter(list[PurchaseTransaction])


async def purchases_webhook(call: Call[None]) -> Done:
    """What the purchase provider reports, signed over the body as it was sent (``Moonpay-Signature-V2``)."""
    body = await call.request.body()
    header = call.request.headers.get(SIGNATURE_HEADER)
    await run_in_threadpool(call.services.purchases.receive, header, body, call.trace_id)
    return Done()


def purchases(call: Call[PurchasesQuery]) -> Response:
    """The caller's own purchases, the newest first."""
    page = call.services.purchases.page(call.db, call.caller, call.body)
    headers = {"X-Total-Count": str(page.total)}
    if page.has_more:
        query = urlencode({"after": page.items[-1].id, "limit": call.body.limit})
        headers["Link"] = f'</api/v1/purchases?{query}>; rel="next"'
    return Response(
        _LIST.dump_json(page.items, by_alias=True), media_type="application/json", headers=headers
    )


ENDPOINTS = (
    Endpoint(
        "POST",
        "/webhooks/purchases",
        purchases_webhook,
        Done,
        Door.OPEN,
        Unit.OWN,
        refuses=(Invalid, WebhookRefused),
    ),
    Endpoint(
        "GET",
        "/api/v1/purchases",
        purchases,
        list[PurchaseTransaction],
        Door.SIGNED_IN,
        Unit.READ,
        PurchasesQuery,
        refuses=(NotFound,),
    ),
)
