"""Webhooks through the SDK, against the real platform and a real receiver."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from custody.client import ApiError, Client
from custody.schemas.common import Done
from custody.schemas.errors import ErrorCode
from custody.schemas.webhooks import (
    CreateWebhookRequest,
    DeliveryStatus,
    RedeliverWebhookRequest,
    UpdateWebhookRequest,
    WebhookRequest,
)
from tests.support.sdk import sdk
from tests.support.webhooks import ADMIN, Hooked, open_hooked


@pytest.fixture
def hooked(tmp_path: Path) -> Iterator[Hooked]:
    with open_hooked(tmp_path) as opened:
        yield opened


@pytest.fixture
def admin(hooked: Hooked) -> Client:
    return sdk(hooked.world, ADMIN)


def test_a_webhook_from_its_making_to_its_end(hooked: Hooked, admin: Client) -> None:
    made = admin.create_webhook(
        CreateWebhookRequest(workspace_id=1, url=hooked.receiver.url("/other"), kinds=("vault.created",))
    )
    assert made.secret is not None
    own = WebhookRequest(workspace_id=1, webhook_id=made.webhook_id)
    first, second = admin.test_webhook(own), admin.test_webhook(own)
    hooked.world.deliver_webhooks()
    assert {event.id for event in hooked.taken(made.secret)} == {first.event_id, second.event_id}
    page = admin.webhook_deliveries(1, made.webhook_id, limit=1)
    assert (len(page.items), page.total, page.has_more) == (1, 2, True)
    rest = admin.webhook_deliveries(1, made.webhook_id, after=page.items[0].delivery_id)
    assert (len(rest.items), rest.has_more) == (1, False)
    assert {each.status for each in (*page.items, *rest.items)} == {DeliveryStatus.DELIVERED}
    body = RedeliverWebhookRequest(workspace_id=1, delivery_id=first.delivery_id)
    assert admin.redeliver_webhook(body).status is DeliveryStatus.PENDING
    changed = admin.update_webhook(
        UpdateWebhookRequest(workspace_id=1, webhook_id=made.webhook_id, kinds=("*",), enabled=False)
    )
    assert (changed.kinds, changed.enabled, changed.secret) == (["*"], False, None)
    ids = {webhook.webhook_id for webhook in admin.webhooks(1)}
    assert ids == {hooked.webhook["webhook_id"], made.webhook_id}
    assert admin.delete_webhook(own) == Done()
    assert len(admin.webhooks(1)) == 1


def test_p51_a_url_that_leads_inside_is_named(admin: Client) -> None:
    body = CreateWebhookRequest(workspace_id=1, url="https://169.254.169.254/latest", kinds=("*",))
    with pytest.raises(ApiError) as caught:
        admin.create_webhook(body)
    assert caught.value.problem.code == ErrorCode.VALIDATION
