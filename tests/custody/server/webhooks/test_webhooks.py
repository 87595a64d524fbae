"""Creating, changing and deleting webhooks, and how long the log of their deliveries is kept."""

import pytest
from sqlalchemy import func, select

from custody.schemas.webhooks import MAX_WEBHOOKS, WebhookWithSecret
from custody.server.jobs.tidying import Tidying
from custody.server.store.models import JobRow, WebhookDeliveryRow, WebhookEventRow, WebhookRow
from custody.server.webhooks.delivery import EXPIRED_LOGS
from custody.server.webhooks.events import WEBHOOK
from tests.support.custody import ok, refused
from tests.support.platform import As, World
from tests.support.receiver import status
from tests.support.webhooks import ADMIN, Hooked

URL = "https://hooks.example.org/{}"


@pytest.fixture
def admin(world: World) -> As:
    world.organisation("Acme", ADMIN)
    return world.as_user(ADMIN)


def create(user: As, path: object = "", workspace_id: int = 1, **more: object):
    body = {"workspace_id": workspace_id, "url": URL.format(path), "kinds": ["*"], **more}
    return user.post("/api/v1/create-webhook", body)


def listed(user: As, workspace_id: int = 1) -> list[dict]:
    return ok(user.get("/api/v1/webhooks", workspace_id=workspace_id))


def change(user: As, webhook: dict, **changes: object):
    body = {"workspace_id": 1, "webhook_id": webhook["webhook_id"], **changes}
    return user.post("/api/v1/update-webhook", body)


def test_p49_the_secret_is_shown_once_and_not_stored_readably(world: World, admin: As) -> None:
    made = ok(create(admin, kinds=["vault.created", "proposal.created", "vault.created"]))
    assert made["secret"].startswith("whsec_")
    assert len(made["secret"]) == len("whsec_") + 44
    assert made["kinds"] == ["proposal.created", "vault.created"]
    (shown,) = listed(admin)
    assert {**shown, "secret": made["secret"]} == made
    with world.platform.services.store.read() as db:
        stored = db.get_one(WebhookRow, made["webhook_id"])
        assert made["secret"].encode() not in stored.sealed_secret
    assert made["secret"] not in repr(WebhookWithSecret.model_validate(made))


def test_p51_a_url_that_leads_inside_is_refused(admin: As) -> None:
    for url in (
        "http://hooks.example.org/",
        "https://127.0.0.1/",
        "https://user:password@hooks.example.org/",
    ):
        problem = refused(create(admin, url=url), 422, "VALIDATION")
        assert [fault["pointer"] for fault in problem["errors"]] == ["/url"]
        assert "password" not in str(problem).replace("user, password or fragment", "")
    problem = refused(create(admin, kinds=["vault.created", "vault.stolen"]), 422, "VALIDATION")
    assert [fault["pointer"] for fault in problem["errors"]] == ["/kinds/1"]
    refused(create(admin, kinds=[]), 422, "VALIDATION")
    assert listed(admin) == []


def test_a_workspace_has_so_many_and_each_url_once(admin: As) -> None:
    made = [ok(create(admin, number)) for number in range(MAX_WEBHOOKS)]
    refused(create(admin, "one-more"), 409, "STATE_CONFLICT")
    body = {"workspace_id": 1, "webhook_id": made[0]["webhook_id"]}
    ok(admin.post("/api/v1/delete-webhook", body))
    refused(create(admin, 1), 409, "STATE_CONFLICT")
    ok(create(admin, 0))
    assert URL.format(0) in [hook["url"] for hook in listed(admin)]


def test_what_changes_nothing_is_not_recorded(world: World, admin: As) -> None:
    made = ok(create(admin))
    before = world.audit_actions("workspace:1")
    same = ok(change(admin, made, kinds=["*"], enabled=True))
    assert same == {**made, "secret": None}
    assert world.audit_actions("workspace:1") == before
    assert ok(change(admin, made, kinds=["vault.created"], enabled=False))["disabled_reason"] == "by-a-member"
    assert world.audit_actions("workspace:1") == [*before, "WEBHOOK_UPDATED"]


def test_deliveries_are_read_page_by_page_the_newest_first(world: World, admin: As) -> None:
    made = ok(create(admin))
    own = {"workspace_id": 1, "webhook_id": made["webhook_id"]}
    sent = []
    for _ in range(5):
        sent.append(ok(admin.post("/api/v1/test-webhook", own))["delivery_id"])
        world.clock.advance(seconds=1)
    first = admin.get("/api/v1/webhook-deliveries", **own, limit=2)
    assert (first.headers["X-Total-Count"], 'rel="next"' in first.headers["Link"]) == ("5", True)
    found = [row["delivery_id"] for row in ok(first)]
    while found[-1] != sent[0]:
        page = ok(admin.get("/api/v1/webhook-deliveries", **own, limit=2, after=found[-1]))
        found += [row["delivery_id"] for row in page]
    assert found == sent[::-1]
    other = ok(create(admin, "other"))
    query = {"workspace_id": 1, "webhook_id": other["webhook_id"], "after": sent[0]}
    refused(admin.get("/api/v1/webhook-deliveries", **query), 404, "NOT_FOUND")


def rows(hooked: Hooked) -> tuple[int, int, int]:
    """Deliveries, events, jobs."""
    with hooked.world.platform.services.store.read() as db:
        counts = [
            db.scalar(select(func.count()).select_from(table))
            for table in (WebhookDeliveryRow, WebhookEventRow)
        ]
        jobs = db.scalar(select(func.count()).where(JobRow.kind == WEBHOOK))
        return counts[0] or 0, counts[1] or 0, jobs or 0


def forget(hooked: Hooked) -> int:
    return Tidying(hooked.world.platform.services.store, hooked.world.clock, EXPIRED_LOGS)()


def later(hooked: Hooked, days: int) -> None:
    hooked.world.clock.advance(days=days)
    hooked.admin.headers.update(hooked.world.as_user(ADMIN).headers)


def test_jobs_after_a_day_and_deliveries_after_thirty(hooked: Hooked) -> None:
    for _ in range(3):
        hooked.ping()
    hooked.world.deliver_webhooks()
    assert rows(hooked) == (3, 3, 3)
    later(hooked, 1)
    hooked.world.platform.background.expiry()()
    assert rows(hooked) == (3, 3, 0), "as in a running server"
    later(hooked, 28)
    assert forget(hooked) == 0
    later(hooked, 1)
    forget(hooked)
    assert rows(hooked) == (0, 1, 0)
    assert hooked.ping()["sequence"] == 4


def test_what_is_not_delivered_yet_stays(hooked: Hooked) -> None:
    hooked.receiver.answer = status(500)
    sent = hooked.ping()
    hooked.world.deliver_webhooks()
    later(hooked, 31)
    forget(hooked)
    assert rows(hooked) == (1, 1, 1)
    hooked.world.deliver_webhooks()
    assert hooked.deliveries()[0]["status"] == "failed"
    ok(hooked.own("update-webhook", enabled=True))
    ok(hooked.call("redeliver-webhook", delivery_id=sent["delivery_id"]))
    forget(hooked)
    assert rows(hooked)[0] == 1
