"""A platform with a webhook, and its receiver."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx
from sqlalchemy import select

from custody.client.webhooks import verify
from custody.schemas.webhooks import WebhookEvent
from custody.server.store.models import WebhookEventRow as StoredEvent
from tests.support.certificates import certificate_for
from tests.support.custody import ok
from tests.support.platform import As, World, open_world
from tests.support.receiver import HOST, Receiver, receiver

ADMIN = "admin@example.org"


@dataclass
class Hooked:
    """``webhook``: the answer that created it, with its secret."""

    world: World
    admin: As
    receiver: Receiver
    workspace_id: int
    webhook: dict

    def call(self, path: str, **body: object) -> httpx.Response:
        return self.admin.post(f"/api/v1/{path}", {"workspace_id": self.workspace_id, **body})

    def own(self, path: str, **body: object) -> httpx.Response:
        return self.call(path, webhook_id=self.webhook["webhook_id"], **body)

    def ping(self) -> dict:
        return ok(self.own("test-webhook"))

    def deliveries(self, **query: object) -> list[dict]:
        ids = {"workspace_id": self.workspace_id, "webhook_id": self.webhook["webhook_id"]}
        return ok(self.admin.get("/api/v1/webhook-deliveries", **ids, **query))

    def shown(self) -> dict:
        (found,) = ok(self.admin.get("/api/v1/webhooks", workspace_id=self.workspace_id))
        return found

    def taken(self, secret: str | None = None) -> list[WebhookEvent]:
        """The deliveries, read by the SDK, which raises for a wrong signature."""
        return [
            verify(each.headers, each.body, secret or self.webhook["secret"], clock=self.world.clock)
            for each in self.receiver.arrived
        ]


@contextmanager
def open_hooked(folder: Path, database_url: str | None = None) -> Iterator[Hooked]:
    ca, context = certificate_for(folder, HOST)
    with (
        receiver(context) as own,
        open_world(
            folder / "state",
            database_url=database_url,
            resolve=lambda _host: ["127.0.0.1"],
            webhook_allow=HOST,
            webhook_ca_file=ca,
        ) as world,
    ):
        placed = world.organisation("Acme", ADMIN)
        admin = world.as_user(ADMIN)
        body = {"workspace_id": placed.workspace_id, "url": own.url(), "kinds": ["*"]}
        made = ok(admin.post("/api/v1/create-webhook", body))
        yield Hooked(world, admin, own, placed.workspace_id, made)


def told(world: World, workspace_id: int = 1) -> list[tuple[str, dict]]:
    """The kind and data of every event of the workspace."""
    query = select(StoredEvent).where(StoredEvent.workspace_id == workspace_id)
    with world.platform.services.store.read() as db:
        found = db.scalars(query.order_by(StoredEvent.sequence)).all()
        assert [event.sequence for event in found] == list(range(1, len(found) + 1))
        return [(event.kind, json.loads(json.dumps(event.payload))) for event in found]
