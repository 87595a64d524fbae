"""Webhooks: who is told of a workspace's events, and how the deliveries went."""

from urllib.parse import urlencode

from pydantic import TypeAdapter
from starlette.responses import Response

from custody.schemas.common import Done
from custody.schemas.queries import WorkspaceQuery
from custody.schemas.users import PermissionName
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
from custody.server.domain.errors import StateConflict
from custody.server.web.endpoint import Call, Endpoint, Unit

MANAGERS = frozenset({PermissionName.MANAGE_WORKSPACE})
_LIST = TypeAdapter(list[WebhookDelivery])


def create_webhook(call: Call[CreateWebhookRequest]) -> WebhookWithSecret:
    """An address on the Internet that is told of the workspace's events. Its secret is shown here and never again."""
    return call.services.webhooks.create(call.db, call.caller, call.access, call.body)


def webhooks(call: Call[WorkspaceQuery]) -> list[Webhook]:
    """The workspace's webhooks, the oldest first."""
    return call.services.webhooks.all(call.db, call.access)


def update_webhook(call: Call[UpdateWebhookRequest]) -> WebhookWithSecret:
    """Changes the kinds, enables or disables, makes a new secret. While a new secret takes the old one's place, both sign."""
    return call.services.webhooks.update(call.db, call.caller, call.access, call.body)


def delete_webhook(call: Call[WebhookRequest]) -> Done:
    """Deletes a webhook and the log of its deliveries."""
    call.services.webhooks.delete(call.db, call.caller, call.access, call.body.webhook_id)
    return Done()


def webhook_deliveries(call: Call[WebhookDeliveriesQuery]) -> Response:
    """What a webhook was told in the last thirty days, the newest first, and how it answered."""
    page = call.services.webhooks.deliveries(call.db, call.access, call.body)
    headers = {"X-Total-Count": str(page.total)}
    if page.has_more:
        query = call.body.model_dump(exclude={"after"}) | {"after": page.items[-1].delivery_id}
        headers["Link"] = f'</api/v1/webhook-deliveries?{urlencode(query)}>; rel="next"'
    return Response(_LIST.dump_json(page.items), media_type="application/json", headers=headers)


def redeliver_webhook(call: Call[RedeliverWebhookRequest]) -> WebhookDelivery:
    """Sends an event once more, with the same id, however the delivery ended."""
    return call.services.webhooks.redeliver(call.db, call.caller, call.access, call.body.delivery_id)


def test_webhook(call: Call[WebhookRequest]) -> WebhookDelivery:
    """Sends an event of the kind ``ping``."""
    return call.services.webhooks.test(call.db, call.caller, call.access, call.body.webhook_id)


ENDPOINTS = (
    Endpoint(
        "POST",
        "/api/v1/create-webhook",
        create_webhook,
        WebhookWithSecret,
        MANAGERS,
        Unit.WRITE,
        CreateWebhookRequest,
        refuses=(StateConflict,),
    ),
    Endpoint("GET", "/api/v1/webhooks", webhooks, list[Webhook], MANAGERS, Unit.READ, WorkspaceQuery),
    Endpoint(
        "POST",
        "/api/v1/update-webhook",
        update_webhook,
        WebhookWithSecret,
        MANAGERS,
        Unit.WRITE,
        UpdateWebhookRequest,
    ),
    Endpoint("POST", "/api/v1/delete-webhook", delete_webhook, Done, MANAGERS, Unit.WRITE, WebhookRequest),
    Endpoint(
        "GET",
        "/api/v1/webhook-deliveries",
        webhook_deliveries,
        list[WebhookDelivery],
        MANAGERS,
        Unit.READ,
        WebhookDeliveriesQuery,
    ),
    Endpoint(
        "POST",
        "/api/v1/redeliver-webhook",
        redeliver_webhook,
        WebhookDelivery,
        MANAGERS,
        Unit.WRITE,
        RedeliverWebhookRequest,
        refuses=(StateConflict,),
    ),
    Endpoint(
        "POST",
        "/api/v1/test-webhook",
        test_webhook,
        WebhookDelivery,
        MANAGERS,
        Unit.WRITE,
        WebhookRequest,
        refuses=(StateConflict,),
    ),
)
