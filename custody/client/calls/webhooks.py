"""Webhooks of a workspace, and the log of their deliveries. For the receiver's side see ``custody.client.webhooks``."""

from dataclasses import dataclass

from pydantic import TypeAdapter

from custody.client.flow import Core, Plan, call, read
from custody.client.method import method
from custody.schemas.common import Done, Few
from custody.schemas.webhooks import (
    CreateWebhookRequest,
    RedeliverWebhookRequest,
    UpdateWebhookRequest,
    Webhook,
    WebhookDelivery,
    WebhookRequest,
    WebhookWithSecret,
)

_WEBHOOKS = TypeAdapter(Few[Webhook])
_DELIVERIES = TypeAdapter(Few[WebhookDelivery])


@dataclass(frozen=True)
class DeliveryList:
    """``total`` counts all; ``has_more``: go on with ``after`` as the last id."""

    items: tuple[WebhookDelivery, ...]
    total: int
    has_more: bool


class WebhookCalls:
    @method
    @staticmethod
    def webhooks(core: Core, workspace_id: int) -> Plan[list[Webhook]]:
        """``GET /api/v1/webhooks``."""
        request = core.build("GET", "/api/v1/webhooks", query={"workspace_id": workspace_id})
        return read((yield from call(core, request, repeatable=True)), _WEBHOOKS)

    @method
    @staticmethod
    def create_webhook(core: Core, body: CreateWebhookRequest) -> Plan[WebhookWithSecret]:
        """``POST /api/v1/create-webhook``. The secret is shown in this answer alone."""
        request = core.build("POST", "/api/v1/create-webhook", body)
        return read((yield from call(core, request, repeatable=False)), WebhookWithSecret)

    @method
    @staticmethod
    def update_webhook(core: Core, body: UpdateWebhookRequest) -> Plan[WebhookWithSecret]:
        """``POST /api/v1/update-webhook``. A new secret is shown in this answer alone."""
        request = core.build("POST", "/api/v1/update-webhook", body)
        return read((yield from call(core, request, repeatable=False)), WebhookWithSecret)

    @method
    @staticmethod
    def delete_webhook(core: Core, body: WebhookRequest) -> Plan[Done]:
        """``POST /api/v1/delete-webhook``."""
        request = core.build("POST", "/api/v1/delete-webhook", body)
        return read((yield from call(core, request, repeatable=False)), Done)

    @method
    @staticmethod
    def test_webhook(core: Core, body: WebhookRequest) -> Plan[WebhookDelivery]:
        """``POST /api/v1/test-webhook``."""
        request = core.build("POST", "/api/v1/test-webhook", body)
        return read((yield from call(core, request, repeatable=False)), WebhookDelivery)

    @method
    @staticmethod
    def redeliver_webhook(core: Core, body: RedeliverWebhookRequest) -> Plan[WebhookDelivery]:
        """``POST /api/v1/redeliver-webhook``."""
        request = core.build("POST", "/api/v1/redeliver-webhook", body)
        return read((yield from call(core, request, repeatable=False)), WebhookDelivery)

    @method
    @staticmethod
    def webhook_deliveries(
        core: Core, workspace_id: int, webhook_id: str, *, after: str | None = None, limit: int | None = None
    ) -> Plan[DeliveryList]:
        """``GET /api/v1/webhook-deliveries``: one page, the newest first."""
        query = {"workspace_id": workspace_id, "webhook_id": webhook_id, "after": after, "limit": limit}
        request = core.build("GET", "/api/v1/webhook-deliveries", query=query)
        response = yield from call(core, request, repeatable=True)
        items = read(response, _DELIVERIES)
        total = response.headers.get("x-total-count", "")
        return DeliveryList(
            tuple(items), int(total) if total.isdecimal() else len(items), "next" in response.links
        )
