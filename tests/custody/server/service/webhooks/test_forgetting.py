"""What webhooks were told is forgotten after thirty days, and the count of a workspace's events goes on."""

from sqlalchemy import func, select

from custody.server.service.jobs.tidying import Tidying
from custody.server.service.webhook_events import WEBHOOK
from custody.server.service.webhooks.forgetting import TOLD
from custody.server.store.models import Job, WebhookDelivery, WebhookEvent
from tests.support.custody import ok
from tests.support.receiver import status
from tests.support.webhooks import ADMIN, Hooked


def rows(hooked: Hooked) -> tuple[int, int, int]:
    """Deliveries, events, jobs."""
    with hooked.world.platform.services.store.read() as db:
        counts = [
            db.scalar(select(func.count()).select_from(table)) for table in (WebhookDelivery, WebhookEvent)
        ]
        jobs = db.scalar(select(func.count()).where(Job.kind == WEBHOOK))
        return counts[0] or 0, counts[1] or 0, jobs or 0


def forget(hooked: Hooked) -> int:
    return Tidying(hooked.world.platform.services.store, hooked.world.clock, TOLD).run_due()


def later(hooked: Hooked, days: int) -> None:
    hooked.world.clock.advance(days=days)
    hooked.admin.headers.update(hooked.world.as_user(ADMIN).headers)


def test_jobs_after_a_day_and_deliveries_after_thirty(hooked: Hooked) -> None:
    for _ in range(3):
        hooked.ping()
    hooked.world.deliver_webhooks()
    assert rows(hooked) == (3, 3, 3)
    later(hooked, 1)
    assert forget(hooked) == 3
    assert rows(hooked) == (3, 3, 0)
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


def test_the_sweeps_of_a_running_server_forget(hooked: Hooked) -> None:
    hooked.ping()
    hooked.world.deliver_webhooks()
    later(hooked, 1)
    hooked.world.platform.background.expiry().run_due()
    assert rows(hooked)[2] == 0
