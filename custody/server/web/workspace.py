"""A workspace's webhooks, and each member's purchases."""

from pydantic import TypeAdapter
from starlette.concurrency import run_in_threadpool
from starlette.responses import Response

from custody.schemas.common import Done, Listed
from custody.schemas.permissions import Auth, PermissionName
from custody.schemas.purchases import PurchasesQuery, PurchaseTransaction
from custody.schemas.queries import WorkspaceQuery
from custody.schemas.webhooks import (
    CreateWebhookRequest,
    RedeliverWebhookRequest,
    UpdateWebhookRequest,
    Webhook,
    WebhookDeliveriesQuery,
    WebhookDelivery,
    WebhookRequest,
    WebhookWithSecret,
)
from custody.server.domain.errors import (
    Invalid,
    NotFound,
    StateConflict,
    WebhookRefused,
)
from custody.server.domain.purchases import SIGNATURE_HEADER
from custody.server.web.endpoint import Call, Endpoint, Unit, page_response

WEBHOOK_MANAGERS = frozenset({PermissionName.MANAGE_WORKSPACE})
_PURCHASES = TypeAdapter(Listed[PurchaseTransaction])
_DELIVERIES = TypeAdapter(Listed[WebhookDelivery])


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


def create_webhook(call: Call[CreateWebhookRequest]) -> WebhookWithSecret:
    """An address on the Internet that is told of the workspace's events. Its secret is shown here and never again."""  # noqa: E501
    return call.services.webhooks.create(call.db, call.caller, call.access, call.body)


def webhooks(call: Call[WorkspaceQuery]) -> Listed[Webhook]:
    """The workspace's webhooks, the oldest first."""
    return call.services.webhooks.all(call.db, call.access)


def update_webhook(call: Call[UpdateWebhookRequest]) -> WebhookWithSecret:
    """Changes the kinds, enables or disables, makes a new secret. While a new secret takes the old one's place, both sign."""  # noqa: E501
    return call.services.webhooks.update(call.db, call.caller, call.access, call.body)


def delete_webhook(call: Call[WebhookRequest]) -> Done:
    """Deletes a webhook and the log of its deliveries."""
    call.services.webhooks.delete(call.db, call.caller, call.access, call.body.webhook_id)
    return Done()


def webhook_deliveries(call: Call[WebhookDeliveriesQuery]) -> Response:
    """What a webhook was told in the last thirty days, the newest first, and how it answered."""
    page = call.services.webhooks.deliveries(call.db, call.access, call.body)
    return page_response(call, _DELIVERIES, page, "delivery_id")


def redeliver_webhook(call: Call[RedeliverWebhookRequest]) -> WebhookDelivery:
    """Sends an event once more, with the same id, however the delivery ended."""
    return call.services.webhooks.redeliver(call.db, call.caller, call.access, call.body.delivery_id)


def test_webhook(call: Call[WebhookRequest]) -> WebhookDelivery:
    """Sends an event of the kind ``ping``."""
    return call.services.webhooks.test(call.db, call.caller, call.access, call.body.webhook_id)


ENDPOINTS = (
    Endpoint(
        "POST", "/webhooks/purchases", purchases_webhook, Done, Auth.OPEN, Unit.OWN,
        refuses=(Invalid, WebhookRefused),
    ),
    Endpoint(
        "GET", "/api/v1/purchases", purchases, Listed[PurchaseTransaction], Auth.SIGNED_IN, Unit.READ,
        PurchasesQuery, refuses=(NotFound,),
    ),
    Endpoint(
        "POST", "/api/v1/create-webhook", create_webhook, WebhookWithSecret, WEBHOOK_MANAGERS, Unit.WRITE,
        CreateWebhookRequest, needs_second_person=True, refuses=(StateConflict,),
    ),
    Endpoint(
        "GET", "/api/v1/webhooks", webhooks, Listed[Webhook], WEBHOOK_MANAGERS, Unit.READ, WorkspaceQuery,
    ),
    Endpoint(
        "POST", "/api/v1/update-webhook", update_webhook, WebhookWithSecret, WEBHOOK_MANAGERS, Unit.WRITE,
        UpdateWebhookRequest,
        needs_second_person=True,
    ),
    Endpoint(
        "POST", "/api/v1/delete-webhook", delete_webhook, Done, WEBHOOK_MANAGERS, Unit.WRITE, WebhookRequest,
        needs_second_person=True,
    ),
    Endpoint(
        "GET", "/api/v1/webhook-deliveries", webhook_deliveries, Listed[WebhookDelivery], WEBHOOK_MANAGERS,
        Unit.READ, WebhookDeliveriesQuery,
    ),
    Endpoint(
        "POST", "/api/v1/redeliver-webhook", redeliver_webhook, WebhookDelivery, WEBHOOK_MANAGERS, Unit.WRITE,
        RedeliverWebhookRequest, refuses=(StateConflict,),
    ),
    Endpoint(
        "POST", "/api/v1/test-webhook", test_webhook, WebhookDelivery, WEBHOOK_MANAGERS, Unit.WRITE,
        WebhookRequest, refuses=(StateConflict,),
    ),
)  # fmt: skip
