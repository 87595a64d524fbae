"""Each member's purchases."""

from pydantic import TypeAdapter
from starlette.concurrency import run_in_threadpool
from starlette.responses import Response

from custody.schemas.common import Done, Listed
from custody.schemas.permissions import Auth
from custody.schemas.purchases import PurchasesQuery, PurchaseTransaction
from custody.server.domain.errors import Invalid, NotFound, WebhookRefused
from custody.server.domain.purchases import SIGNATURE_HEADER
from custody.server.web.endpoint import Call, Endpoint, Unit, page_response

_PURCHASES = TypeAdapter(Listed[PurchaseTransaction])


async def purchases_webhook(call: Call[None]) -> Done:
    """What the purchase provider reports, signed over the body as it was sent (``Moonpay-Signature-V2``)."""
    body = await call.request.body()
    header = call.request.headers.get(SIGNATURE_HEADER)
    await run_in_threadpool(call.services.purchases.receive, header, body, call.trace_id)
    return Done()


def purchases(call: Call[PurchasesQuery]) -> Response:
    """The caller's own purchases, the newest first."""
    page = call.services.purchases.page(call.db, call.caller, call.body)
    return page_response(call, _PURCHASES, page, "id")


ENDPOINTS = (
    Endpoint(
        "POST", "/webhooks/purchases", purchases_webhook, Done, Auth.OPEN, Unit.OWN,
        refuses=(Invalid, WebhookRefused),
    ),
    Endpoint(
        "GET", "/api/v1/purchases", purchases, Listed[PurchaseTransaction], Auth.SIGNED_IN, Unit.READ,
        PurchasesQuery, refuses=(NotFound,),
    ),
)  # fmt: skip
