"""Programs by the console: their accounts, secrets shown once, and webhooks with their deliveries."""

from tests.support.custody import ok
from tests.support.platform import As


def test_a_program_gets_its_secret_and_a_wrong_network_is_told_beside_its_field(desk, browse, here):
    person = browse("admin").open(f"{here}/programs/new")
    assert "Approve payments as a signer" not in person.words, "no program gets that right"
    typed, chosen = {"name": "Ledger", "expires_on": "2026-06-30"}, (("rights", "VIEW_BALANCES"),)
    person.send(f"{here}/programs/new", networks="10.1.2.3/8", **typed, repeated=chosen, status=422)
    assert "10.1.0.0/16" in person.page.by_id("networks-problem").words
    assert "10.1.2.3/8" in person.html
    person.send(f"{here}/programs/new", networks="192.0.2.0/24")
    assert person.facts["Ends"] == "30 Jun 2026, 23:59 UTC", "in the review"
    person.confirm(f"{here}/programs/new")
    assert person.facts["Ends"] == "30 Jun 2026, 23:59 UTC"
    secret = f"{person.url}/secret"
    review = person.send(secret, overlap_hours="0").html
    person.confirm(secret)
    bearer = {"Authorization": f"Bearer {person.page.by_id('secret').words}"}
    person.html = review
    person.confirm(secret, status=409)
    assert "its secret was shown that once" in person.words, "the page was loaded again"
    assert ok(As(desk.world.http, bearer).get("/api/v1/own-service-account"))["name"] == "Ledger"


def test_a_webhook_whose_secret_is_loaded_again_is_not_made_twice(desk, browse, here):
    new = f"{here}/webhooks/new"
    person = browse("admin").open(new)
    for url, words in (("http://hooks.example.org/x", "https://"), ("https://127.0.0.1/x", "is an address")):
        person.send(new, url=url, every_kind="yes", status=422)
        assert words in person.page.by_id("url-problem").words, "before the review"
    review = person.send(new, url="https://hooks.example.org/x", every_kind="yes").html
    person.confirm(new)
    assert person.page.by_id("secret").words
    person.html = review
    person.confirm(new, status=409)
    assert len(ok(desk.admin.get("/api/v1/webhooks", workspace_id=desk.workspace_id))) == 1


def test_a_new_secret_that_ends_another_says_so_and_is_made_once_for_two_who_look(desk, browse, here):
    made = ok(desk.tell("create-webhook", url="https://hooks.example.org/x", kinds=["*"]))
    rights = {"rights": ["VIEW_BALANCES"], "networks": ["192.0.2.0/24"], "expires_at": "2026-06-30T00:00:00Z"}
    program = ok(desk.tell("create-service-account", name="Ledger", **rights))["service_account_id"]
    ok(desk.tell("issue-service-secret", service_account_id=program))
    person, other = browse("admin"), browse("admin")
    for one, path, typed in (
        (f"{here}/programs/{program}", "secret", {"overlap_hours": "24"}),
        (f"{here}/webhooks/{made['webhook_id']}", "change", {"do": "rotate"}),
    ):
        action = f"{one}/{path}"
        for each in (person, other):
            each.open(one).post_one(action, **typed)
            assert each.facts["Valid secrets"] == "one"
            assert "ends at once" not in each.words
        person.confirm(action)
        assert person.page.by_id("secret").words
        other.confirm(action, status=409)
        assert "Look at it again" in other.words
        other.open(one).post_one(action, **typed)
        assert other.facts["Valid secrets"].startswith("two, the former one until ")
        assert "ends at once: see first that nothing uses it" in other.words


def test_a_delivery_that_failed_is_sent_again(desk, browse, here):
    made = ok(desk.tell("create-webhook", url="https://hooks.example.org/x", kinds=["*"]))
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
