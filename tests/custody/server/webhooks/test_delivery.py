"""Deliveries reach a real receiver at least once, or end after three days; no workspace takes more than its
share of the workers (P51).
"""

import ssl
from dataclasses import replace
from datetime import datetime, timedelta

import pytest
from sqlalchemy import select
from sqlalchemy.orm import Session

from custody.client.webhooks import NotGenuine
from custody.server.mail.jobs import plain
from custody.server.rotation import rotate
from custody.server.rules.webhooks import AFTER_A_HANG
from custody.server.secrets import Purpose
from custody.server.store.models import JobRow, WebhookDeliveryRow, WebhookRow
from tests.support.custody import ok, refused
from tests.support.receiver import HOST, TAKEN, Answer, Receiver, status
from tests.support.webhooks import ADMIN, Hooked

KINDS_OF_TROUBLE = (
    (status(500), 500, "refused"),
    (status(404), 404, "refused"),
    (status(204), 204, None),
    (status(302, "Location: https://127.0.0.1/"), 302, "redirected"),
    (lambda _line, _own: None, None, "bad-answer"),
)


def attempts_until_it_ends(hooked: Hooked, delivery_id: str) -> int:
    """Moves the clock from one attempt to the next; how many there were."""
    while (row := stored(hooked, delivery_id)).next_attempt_at is not None:
        hooked.world.clock.now = max(hooked.world.clock.now, row.next_attempt_at)
        hooked.world.deliver_webhooks()
    sign_in_again(hooked)
    return row.attempts


def stored(hooked: Hooked, delivery_id: str) -> WebhookDeliveryRow:
    with hooked.world.platform.services.store.read() as db:
        return db.get_one(WebhookDeliveryRow, delivery_id)


def sign_in_again(hooked: Hooked) -> None:
    hooked.admin.headers.update(hooked.world.as_user(ADMIN).headers)


def test_an_event_arrives_signed_and_is_tried_again_until_it_is_taken(hooked: Hooked) -> None:
    hooked.receiver.answer = status(503)
    sent = hooked.ping()
    assert [hooked.world.deliver_webhooks() for _ in range(2)] == [1, 0], "not at once"
    hooked.receiver.answer = TAKEN
    hooked.world.clock.advance(seconds=10)
    assert [hooked.world.deliver_webhooks() for _ in range(2)] == [1, 0]
    (again, event), (first, second) = hooked.taken(), hooked.receiver.arrived
    assert (event.id, event.kind, event.sequence) == (sent["event_id"], "ping", 1)
    assert event.data == {"webhook_id": hooked.webhook["webhook_id"]}
    assert (again, first.body) == (event, second.body), "the event's id is the receiver's idempotency key"
    assert first.headers["webhook-signature"] != second.headers["webhook-signature"], "signed at its own time"
    assert second.headers["content-type"] == "application/json"
    assert second.headers["webhook-id"] == sent["event_id"]
    (row,) = hooked.deliveries()
    assert (row["status"], row["attempts"], row["response_status"]) == ("delivered", 2, 200)
    assert row["error"] is row["next_attempt_at"] is hooked.shown()["failing_since"] is None


def test_how_it_went_is_in_the_log_and_not_what_was_answered(hooked: Hooked) -> None:
    for answer, code, error in KINDS_OF_TROUBLE:
        hooked.receiver.answer = answer
        ping = hooked.ping()
        hooked.world.deliver_webhooks()
        (row,) = [each for each in hooked.deliveries() if each["delivery_id"] == ping["delivery_id"]]
        assert (row["response_status"], row["error"]) == (code, error)
        assert row["status"] == ("delivered" if error is None else "pending")


def test_a_running_server_delivers_by_itself(hooked: Hooked) -> None:
    with hooked.world.platform.background.running():
        hooked.ping()
        assert hooked.receiver.reached.wait(10)


def test_a_receiver_that_fails_for_days_is_told_nothing_more(hooked: Hooked) -> None:
    hooked.receiver.answer = status(500)
    for _ in range(2):
        attempts_until_it_ends(hooked, hooked.ping()["delivery_id"])
    shown = hooked.shown()
    assert (shown["enabled"], shown["disabled_reason"]) == (False, "unanswered")
    assert hooked.world.audit_actions(f"workspace:{hooked.workspace_id}")[-1] == "WEBHOOK_DISABLED"
    hooked.world.deliver_mail()
    mail = hooked.world.mail.sent[-1]
    assert (mail.to, "was disabled" in mail.subject, plain(HOST) in mail.text) == (ADMIN, True, True)
    refused(hooked.own("test-webhook"), 409, "STATE_CONFLICT")
    hooked.receiver.answer = TAKEN
    assert ok(hooked.own("update-webhook", enabled=True))["failing_since"] is None
    hooked.ping()
    hooked.world.deliver_webhooks()
    assert hooked.deliveries()[0]["status"] == "delivered"


def test_one_that_fails_slowly_is_left_in_peace_as_one_that_hangs(hooked: Hooked) -> None:
    """Whatever is slow: the name, an address without a server, or an error that comes late."""
    for answer in (status(500), status(302, "Location: /"), lambda _line, _own: None):
        seconds = take(hooked, 9, answer)
        ping = hooked.ping()
        hooked.world.deliver_webhooks()
        assert (seconds, stored(hooked, ping["delivery_id"]).attempts) == ([9], 1)
        left = hooked.ping()
        assert (left["attempts"], quiet_until(hooked)) == (0, None), "a test says that it is there again"
        hooked.world.deliver_webhooks()
        assert quiet_until(hooked) == hooked.world.clock() + AFTER_A_HANG
        hooked.receiver.answer = TAKEN
        hooked.world.clock.advance(hours=1)
        hooked.world.deliver_webhooks()
        sign_in_again(hooked)


def quiet_until(hooked: Hooked) -> datetime | None:
    with hooked.world.platform.services.store.read() as db:
        return db.get_one(WebhookRow, hooked.webhook["webhook_id"]).quiet_until


def take(hooked: Hooked, seconds: float, answer: Answer, hands: int = 1) -> list[float]:
    """From now on so much passes before each answer of the receiver's, while so many hands wait for one;
    what has passed.
    """
    passed: list[float] = []

    def answer_late(line: ssl.SSLSocket, own: Receiver) -> None:
        passed.append(seconds)
        answer(line, own)

    hooked.receiver.answer = answer_late
    jobs = hooked.world.platform.background.webhook_jobs
    jobs.timer = lambda: sum(passed)
    began_at = hooked.world.clock()
    jobs._shares._clock = lambda: began_at + timedelta(seconds=sum(passed) / hands)
    return passed


def test_a_tenant_whose_receivers_take_long_leaves_workers_to_the_others(hooked: Hooked) -> None:
    """P51: the receiver accepts each delivery after nine seconds, while its owner asks for more."""
    other = hooked.world.organisation("Umbrella", "other@example.org")
    admin = hooked.world.as_user("other@example.org")
    ids = {"workspace_id": other.workspace_id}
    hook = {**ids, "url": hooked.receiver.url("/other"), "kinds": ["*"]}
    made = ok(admin.post("/api/v1/create-webhook", hook))
    for _ in range(20):
        hooked.ping()
    passed = take(hooked, 9, TAKEN, hands=3)
    ok(admin.post("/api/v1/test-webhook", {**ids, "webhook_id": made["webhook_id"]}))
    hooked.world.deliver_webhooks()
    lines = [request.line for request in hooked.receiver.arrived]
    assert [line.split()[1] for line in lines] == ["/hook"] * 10 + ["/other"]
    waiting = [row for row in hooked.deliveries() if row["status"] == "pending"]
    assert {row["attempts"] for row in waiting} == {0}
    assert len(waiting) == 10
    passed.append(60)
    hooked.world.clock.advance(minutes=1)
    hooked.world.deliver_webhooks()
    assert len(hooked.receiver.arrived) > 11, "it goes on, at its pace"


def test_an_old_secret_that_cannot_be_read_any_more_keeps_nothing_back(hooked: Hooked) -> None:
    new = ok(hooked.own("update-webhook", rotate_secret=True))["secret"]
    for lost in ("sealed_old_secret", "sealed_secret"):
        with hooked.world.platform.services.store.write() as db:
            setattr(db.get_one(WebhookRow, hooked.webhook["webhook_id"]), lost, b"sealed with a lost file")
        hooked.ping()
        hooked.world.deliver_webhooks()
        assert len(hooked.taken(new)) == 1, "without any secret nothing is sent unsigned"
    assert {row["error"] for row in hooked.deliveries()} == {None, "secret-unreadable"}


def test_410_says_that_the_receiver_is_gone(hooked: Hooked) -> None:
    hooked.receiver.answer = status(410)
    hooked.ping()
    hooked.ping()
    hooked.world.deliver_webhooks()
    assert len(hooked.receiver.arrived) == 1
    shown = hooked.shown()
    assert (shown["enabled"], shown["disabled_reason"]) == (False, "gone")
    errors = sorted((row["status"], row["error"]) for row in hooked.deliveries())
    assert errors == [("failed", "refused"), ("failed", "webhook-disabled")]


def test_one_failure_leaves_the_receiver_in_peace_for_a_while(hooked: Hooked) -> None:
    """Twenty events to one that hangs are one attempt and not twenty: the others' deliveries do not wait
    for it.
    """
    hooked.receiver.answer = status(500)
    for _ in range(20):
        hooked.ping()
    assert hooked.world.deliver_webhooks() == 2, "one fails, another one finds that out for all the rest"
    assert len(hooked.receiver.arrived) == 1
    waiting = [row for row in hooked.deliveries() if not row["attempts"]]
    assert len({row["next_attempt_at"] for row in waiting}) == 1
    assert sorted(row["attempts"] for row in hooked.deliveries()) == [0] * 19 + [1]
    hooked.receiver.answer = TAKEN
    hooked.world.clock.advance(seconds=10)
    hooked.world.deliver_webhooks()
    assert {row["status"] for row in hooked.deliveries()} == {"delivered"}


def test_killed_between_the_answer_and_our_record_it_is_delivered_twice_and_never_lost(
    hooked: Hooked,
) -> None:
    hooked.ping()
    outbox = hooked.world.platform.background.outbox("webhooks")
    task = outbox.lease()
    assert task is not None
    # What would have closed the job in a transaction is dropped: this worker ends here.
    hooked.world.platform.background.webhook_jobs(task)
    assert len(hooked.receiver.arrived) == 1
    assert hooked.deliveries()[0]["status"] == "pending"
    hooked.world.clock.advance(minutes=5)
    hooked.world.deliver_webhooks()
    first, second = (request.body for request in hooked.receiver.arrived)
    assert first == second
    assert hooked.deliveries()[0]["status"] == "delivered"


def test_deleted_while_it_is_under_way(hooked: Hooked) -> None:
    def answer(line: ssl.SSLSocket, own: Receiver) -> None:
        ok(hooked.own("delete-webhook"))
        TAKEN(line, own)

    hooked.receiver.answer = answer
    hooked.ping()
    assert hooked.world.deliver_webhooks() == 1
    assert ok(hooked.admin.get("/api/v1/webhooks", workspace_id=hooked.workspace_id)) == []
    assert hooked.world.deliver_webhooks() == 0


def test_redelivered_it_has_the_same_event_id(hooked: Hooked) -> None:
    sent = hooked.ping()
    refused(hooked.call("redeliver-webhook", delivery_id=sent["delivery_id"]), 409, "STATE_CONFLICT")
    hooked.world.deliver_webhooks()
    again = ok(hooked.call("redeliver-webhook", delivery_id=sent["delivery_id"]))
    assert (again["status"], again["attempts"]) == ("pending", 0)
    hooked.world.deliver_webhooks()
    first, second = hooked.taken()
    assert (first, len(hooked.deliveries())) == (second, 1)
    # Also where its job died, or is no more.
    for end in (lambda _db, job: setattr(job, "dead_at", hooked.world.clock()), Session.delete):
        other = hooked.ping()
        with hooked.world.platform.services.store.write() as db:
            end(db, db.scalars(select(JobRow).order_by(JobRow.id.desc())).first())
        ok(hooked.call("redeliver-webhook", delivery_id=other["delivery_id"]))
        hooked.world.deliver_webhooks()
        assert hooked.taken()[-1].id == other["event_id"]


def test_for_a_day_after_a_rotation_both_secrets_are_good(hooked: Hooked) -> None:
    old = hooked.webhook["secret"]
    new = ok(hooked.own("update-webhook", rotate_secret=True))["secret"]
    assert new != old
    hooked.ping()
    hooked.world.deliver_webhooks()
    assert hooked.taken(old) == hooked.taken(new)
    hooked.world.clock.advance(days=1)
    sign_in_again(hooked)
    hooked.receiver.arrived.clear()
    hooked.ping()
    hooked.world.deliver_webhooks()
    assert len(hooked.taken(new)) == 1
    with pytest.raises(NotGenuine):
        hooked.taken(old)


def test_p51_a_host_that_is_allowed_no_more_is_not_called(hooked: Hooked) -> None:
    hooked.ping()
    jobs = hooked.world.platform.background.webhook_jobs
    jobs.tools = replace(jobs.tools, webhook_hosts=frozenset())
    hooked.world.deliver_webhooks()
    assert (hooked.deliveries()[0]["error"], hooked.receiver.arrived) == ("address-not-public", [])


def test_the_platforms_own_secret_may_change_between_two_deliveries(hooked: Hooked) -> None:
    services = hooked.world.platform.services
    done = rotate(services.store, services.tools.audit, services.tools.secrets, Purpose.WEBHOOK)
    assert (done.reencrypted, done.dropped, done.still_read) == (1, 1, 0)
    hooked.ping()
    hooked.world.deliver_webhooks()
    assert len(hooked.taken()) == 1
