"""Programs by the console: their accounts, secrets shown once, and webhooks with their deliveries."""

import pytest

from tests.support.custody import ok
from tests.support.platform import As


@pytest.fixture
def here(desk):
    return f"/console/w/{desk.workspace_id}"


def test_an_account_is_made_gets_its_secret_once_and_is_revoked(desk, browse, here):
    person = browse("admin").open(f"{here}/programs/new")
    assert "Approve payments as a signer" not in person.words, "no program gets that right"
    typed = {"name": "Ledger", "networks": "192.0.2.0/24\n2001:db8::/48", "expires_on": "2026-06-30"}
    person.send(f"{here}/programs/new", **typed, repeated=(("rights", "VIEW_BALANCES"),))
    assert person.facts["Networks"] == "192.0.2.0/24; 2001:db8::/48"
    person.confirm(f"{here}/programs/new")
    one = person.url
    assert person.facts["Ends"] == "30 Jun 2026, 23:59 UTC"
    person.send(f"{one}/secret", overlap_hours="1").confirm(f"{one}/secret")
    secret = person.page.by_id("secret").words
    program = As(desk.world.http, {"Authorization": f"Bearer {secret}"})
    assert ok(program.get("/api/v1/own-service-account"))["name"] == "Ledger"
    assert secret not in person.open(one).html
    person.send(f"{one}/change", name="Bookkeeping").confirm(f"{one}/change")
    assert "Bookkeeping" in person.page.all("h1")[0].words
    person.send(f"{one}/revoke").confirm(f"{one}/revoke")
    assert [cells[:2] for cells in person.rows] == [["Bookkeeping", "revoked"]]
    assert program.get("/api/v1/own-service-account").status_code == 401


def test_a_wrong_network_is_told_beside_its_field(browse, here):
    person = browse("admin").open(f"{here}/programs/new")
    typed = {"name": "Ledger", "networks": "10.1.2.3/8", "expires_on": "2026-06-30"}
    person.send(f"{here}/programs/new", **typed, repeated=(("rights", "VIEW_BALANCES"),), status=422)
    assert "10.1.0.0/16" in person.page.by_id("networks-problem").words
    assert "10.1.2.3/8" in person.html


def test_a_webhook_is_made_tested_told_again_and_deleted(desk, browse, here):
    person = browse("admin").open(f"{here}/webhooks/new")
    person.send(f"{here}/webhooks/new", url="https://hooks.example.org/custody", every_kind="yes")
    assert person.facts["Events"] == "all events"
    person.confirm(f"{here}/webhooks/new")
    secret = person.page.by_id("secret").words
    (made,) = ok(desk.admin.get("/api/v1/webhooks", workspace_id=desk.workspace_id))
    one = f"{here}/webhooks/{made['webhook_id']}"
    assert secret.startswith("whsec_")
    assert secret not in person.open(one).html
    person.send(f"{one}/test")
    assert person.rows[0][:3] == ["ping", "waits", "0"]
    person.post_one(f"{one}/change", do="kinds", kinds="deposit.seen").confirm(f"{one}/change")
    assert "It receives: deposit seen." in person.words
    person.post_one(f"{one}/change", do="disable").confirm(f"{one}/change")
    assert "a member switched it off" in person.facts["State"]
    person.post_one(f"{one}/change", do="rotate").confirm(f"{one}/change")
    assert person.page.by_id("secret").words not in {"", secret}
    person.open(one).send(f"{one}/delete").confirm(f"{one}/delete")
    assert "There is no webhook yet." in person.words


def test_a_delivery_that_failed_is_sent_again(desk, browse, here):
    body = {"workspace_id": desk.workspace_id, "url": "https://hooks.example.org/x", "kinds": ["*"]}
    made = ok(desk.admin.post("/api/v1/create-webhook", body))
    one = f"{here}/webhooks/{made['webhook_id']}"
    person = browse("admin").open(one).send(f"{one}/test")
    for _ in range(20):
        desk.world.deliver_webhooks()
        desk.world.clock.advance(hours=8)
        desk.world.deliver_webhooks()
    person.sign_in("admin@example.org").open(one)
    assert person.rows[0][1].startswith("failed")
    person.send(f"{one}/redeliver")
    assert person.rows[0][1].startswith("waits")
