"""Webhook events are written in the transaction of the change, for the workspace's own webhooks alone."""

from collections.abc import Mapping

import pytest

from custody.schemas.webhooks import EventKind
from custody.server.rules.audit import Event
from custody.server.rules.credentials import PLATFORM
from custody.server.rules.webhooks import CARRIES, EVENT_OF_ACTION
from custody.server.store.models import JobRow, WebhookDeliveryRow
from custody.server.store.models import WebhookEventRow as Stored
from custody.server.vaults.stored import place_of
from custody.server.webhooks.events import WEBHOOK
from tests.support.custody import CAFE, SHOP, Desk, ok
from tests.support.databases import statements_of
from tests.support.platform import register_key, seed
from tests.support.profiles import forward, grant, pay_profile
from tests.support.replacing import forget_mempool
from tests.support.staff import change_role, remove
from tests.support.token_desk import BOB, TokenDesk
from tests.support.two_people import DORA, ask, decide, ruled
from tests.support.webhooks import told

URL = "https://hooks.example.org/"


def listen(desk: Desk, *kinds: str, url: str = URL, workspace_id: int | None = None) -> str:
    body = {"workspace_id": workspace_id or desk.workspace_id, "url": url, "kinds": list(kinds) or ["*"]}
    return ok(desk.admin.post("/api/v1/create-webhook", body))["webhook_id"]


def kinds(desk: Desk) -> list[str]:
    return [kind for kind, _ in told(desk.world, desk.workspace_id)]


def event_data(desk: Desk, kind: str) -> list[Mapping]:
    return [data for each, data in told(desk.world, desk.workspace_id) if each == kind]


def test_a_send_from_its_proposal_to_its_confirmation(funded: Desk) -> None:
    listen(funded)
    psbt_id = ok(funded.propose(50_000))["psbt_id"]
    funded.approve("bob", psbt_id)
    funded.approve("carol", psbt_id)
    funded.settle()
    funded.chain.mine(1)
    funded.settle()
    assert kinds(funded) == [
        "proposal.created",
        "proposal.approved",
        "proposal.approved",
        "proposal.signed",
        "proposal.broadcasting",
        "proposal.confirmed",
    ], "its change is no deposit"
    final = event_data(funded, "proposal.confirmed")[0]
    shown = funded.proposal(psbt_id)
    assert final["psbt_id"] == psbt_id
    assert (final["status"], final["txid"]) == ("CONFIRMED", shown["txid"])
    assert (final["vault_id"], final["amount_sats"]) == (funded.vault["id"], 50_000)
    assert final["block_height"] is not None
    assert [data["user_id"] for data in event_data(funded, "proposal.approved")] == [
        funded.user_ids["bob"],
        funded.user_ids["carol"],
    ]


def test_a_lost_key_and_the_approval_that_goes_with_it(funded: Desk) -> None:
    psbt_id = ok(funded.propose(50_000))["psbt_id"]
    funded.approve("bob", psbt_id)
    listen(funded)
    bob, carol = funded.signers["bob"], funded.signers["carol"]
    key_id = ok(bob.get("/api/v1/keys"))[0]["ID"]
    ok(bob.post("/api/v1/revoke-key", {"key_id": key_id, "reason": "lost"}))
    assert kinds(funded) == ["proposal.approval_withdrawn", "key.revoked"]
    lost = {"key_id": key_id, "user_id": funded.user_ids["bob"], "reason": "lost"}
    assert event_data(funded, "key.revoked") == [lost | {"vault_ids": [funded.vault["id"]]}]
    ok(register_key(carol, seed(42), replace=True))
    assert event_data(funded, "key.revoked")[1]["reason"] == "superseded"


def test_a_deposit_is_seen_and_confirmed(desk: Desk) -> None:
    listen(desk)
    (txid,) = desk.deposit(100_000, blocks=0)
    assert kinds(desk) == ["deposit.seen"]
    desk.mine()
    desk.watcher.look()
    assert kinds(desk) == ["deposit.seen", "deposit.confirmed"]
    seen, confirmed = told(desk.world, desk.workspace_id)
    assert seen[1] | {"vault_id": desk.vault["id"], "txid": txid, "amount_sats": 100_000} == seen[1]
    assert (seen[1]["block_height"], confirmed[1]["block_hash"]) == (None, desk.chain.tip().hash)
    # Another branch has it in another block.
    desk.reorganise(1, 2, [desk.chain.transaction(txid).transaction])
    assert kinds(desk)[2:] == ["deposit.confirmed"]
    assert event_data(desk, "deposit.confirmed")[1]["block_height"] == desk.chain.tip().height - 1
    # A third one takes it back, until it is mined again.
    desk.reorganise(2, 3)
    desk.mine()
    assert kinds(desk)[3:] == ["deposit.unconfirmed", "deposit.confirmed"]
    desk.deposit(50_000, blocks=0)
    forget_mempool(desk)
    desk.watcher.look()
    assert kinds(desk)[5:] == ["deposit.seen", "deposit.removed"]


def test_a_forward_is_a_proposal_and_to_the_vault_a_deposit(desk: Desk) -> None:
    grant(desk, "Signer", "PAYMENT_INIT")
    pay_profile(desk, "alice", 100_000)
    listen(desk)
    psbt_id = ok(forward(desk, "alice", 50_000))["psbt_id"]
    desk.approve("alice", psbt_id)
    desk.settle()
    assert [kind for kind in kinds(desk) if kind.startswith("proposal.")] == [
        "proposal.created",
        "proposal.approved",
        "proposal.signed",
        "proposal.broadcasting",
    ]
    assert [data["amount_sats"] for data in event_data(desk, "deposit.seen")] == [50_000]
    assert event_data(desk, "proposal.created")[0]["tx_type"] == "forward"


def test_vaults_limits_and_members(desk: Desk) -> None:
    listen(desk)
    vault = ok(desk.create_vault("Second"))
    desk.limit("1", vault_id=vault["id"])
    desk.limit_role("1", role_id=2)
    dora = desk.world.member(desk.workspace_id, "dora@example.org").user_id
    ok(change_role(desk.admin, dora, 1))
    ok(change_role(desk.admin, dora, 2))
    ok(remove(desk.admin, dora))
    assert told(desk.world, desk.workspace_id) == [
        ("vault.created", {"vault_id": vault["id"]}),
        ("vault.limit_changed", {"vault_id": vault["id"]}),
        ("role.limit_changed", {"role_id": 2}),
        ("member.added", {"user_id": dora, "role_id": 2}),
        ("member.role_changed", {"user_id": dora, "role_id": 1}),
        ("member.role_changed", {"user_id": dora, "role_id": 2}),
        ("member.removed", {"user_id": dora}),
    ]


def test_a_freeze_and_what_waits_for_a_second_person(desk: Desk) -> None:
    listen(desk)
    world = desk.world
    desk.freeze(reason="a word of a person")
    desk.unfreeze()
    dora = ruled(world, desk.admin)
    before = len(kinds(desk))
    ids = []
    for place, decision in zip((SHOP, CAFE, BOB), ("confirm", "decline", None), strict=True):
        change = ok(ask(desk.admin, "add-whitelist-address", name=f"a word of {decision}", address=place))
        ids.append(change["change_id"])
        if decision is not None:
            ok(decide(dora, change, decision))
    world.clock.advance(days=7)
    world.platform.background.expiry()()
    found = told(world, 1)
    assert [kind for kind, _ in found if kind.startswith("vault")] == ["vault.frozen", "vault.unfrozen"]
    words = ("requested", "confirmed", "requested", "declined", "requested", "expired")
    asked = [data for kind, data in found if kind.startswith("change.")]
    assert [kind for kind, _ in found[before:] if kind.startswith("change.")] == [
        f"change.{w}" for w in words
    ]
    assert asked[1] == {
        "change_id": ids[0], "path": "/api/v1/add-whitelist-address", "asked_by": 1,
        "decided_by": ok(world.as_user(DORA).get("/api/v1/get-user-info"))["UUID"],
    }  # fmt: skip
    assert (asked[5]["change_id"], asked[5]["decided_by"]) == (ids[2], None)
    assert "a word" not in str(found)


def test_a_token_and_its_calls_by_their_statuses(desk: Desk) -> None:
    """What was cancelled has failed; what is mined is confirmed with its effect."""
    tokens = TokenDesk(desk)
    tokens.fund(100_000, 100_000)
    listen(desk)
    made = ok(tokens.create())
    tokens.finish(made["psbt_id"])
    called = ok(tokens.call(made["contract_uid"], "init"))
    ok(desk.admin.post("/api/v1/cancel-psbt", {"workspace_id": 1, "psbt_id": called["psbt_id"]}))
    again = ok(tokens.call(made["contract_uid"], "init"))
    tokens.finish(again["psbt_id"])
    found = [(kind, data) for kind, data in told(desk.world, 1) if kind.startswith(("token.", "call."))]
    assert [kind for kind, _ in found] == [
        "token.broadcasting", "token.confirmed", "call.failed", "call.broadcasting", "call.confirmed",
    ]  # fmt: skip
    assert [data.get("call_uid") for _, data in found] == [
        None, None, called["call_uid"], again["call_uid"], again["call_uid"],
    ]  # fmt: skip
    last = found[-1][1]
    assert last["txid"] == desk.proposal(again["psbt_id"])["txid"]
    assert (last["contract_uid"], last["function_name"]) == (made["contract_uid"], "init")
    assert kinds(desk).count("proposal.created") == 3


def test_two_webhooks_share_an_event_and_only_what_is_wanted_is_written(funded: Desk) -> None:
    wants_one = listen(funded, "proposal.created")
    wants_all = listen(funded, url="https://other.example.org/")
    assert funded.propose(10**15).status_code == 403
    assert kinds(funded) == [], "what fails tells nothing"
    psbt_id = ok(funded.propose(50_000))["psbt_id"]
    assert kinds(funded) == ["proposal.created"]
    assert len(funded.rows(WebhookDeliveryRow)) == 2
    here = {"workspace_id": funded.workspace_id, "enabled": False}
    ok(funded.admin.post("/api/v1/update-webhook", {**here, "webhook_id": wants_all}))
    ok(funded.decline("alice", psbt_id))
    assert kinds(funded) == ["proposal.created"], "what no webhook wants is not written"
    ok(funded.admin.post("/api/v1/update-webhook", {**here, "webhook_id": wants_one}))
    ok(funded.propose(50_000))
    assert kinds(funded) == ["proposal.created"], "nor where nobody listens"


def test_thirty_deposits_and_ten_webhooks_cost_the_writers_turn_as_many_statements_as_two_and_one(
    desk: Desk,
) -> None:
    """A block may bring thousands of deposits, and all writers wait while they are stored."""

    def statements(deposits: int) -> int:
        with statements_of(desk.store) as asked:
            desk.deposit(*range(10_000, 10_000 + deposits), blocks=1)
        return len(asked)

    listen(desk)
    statements(2)
    few = statements(2)
    for number in range(9):
        listen(desk, url=f"{URL}{number}")
    assert statements(30) == few
    told = 2 * (2 + 2) + 2 * 30 * 10
    assert len(desk.rows(WebhookDeliveryRow)) == len(desk.rows(JobRow, JobRow.kind == WEBHOOK)) == told
    numbers = [one.sequence for one in desk.rows(Stored)]
    assert sorted(numbers) == list(range(1, 2 * (2 + 2 + 30) + 1))


def test_p24_another_workspaces_webhook_hears_nothing(funded: Desk) -> None:
    body = {"workspace_id": 1, "org_id": 1, "name": "Second", "network": "testnet"}
    ok(funded.admin.post("/api/v1/create-workspace", body))
    listen(funded, workspace_id=2)
    funded.propose(50_000)
    funded.deposit(100_000)
    assert funded.rows(Stored) == []


def test_nothing_told_of_has_words_of_people_in_it(funded: Desk) -> None:
    """P50 and P49: only ids and numbers; texts are read through the API, with its permissions."""
    listen(funded)
    secret = "to whom and what for"
    psbt_id = ok(funded.propose(50_000, description=secret))["psbt_id"]
    for name in ("bob", "carol"):
        ok(funded.decline(name, psbt_id, reason=secret))
    found = told(funded.world, funded.workspace_id)
    declined = ["proposal.declined"] * 2
    assert sorted(kind for kind, _ in found) == ["proposal.created", *declined, "proposal.rejected"]
    assert secret not in str(found)
    assert all(set(data) == set(CARRIES[EventKind(kind)]) for kind, data in found)


def test_an_action_of_the_log_that_is_told_of_cannot_be_recorded_without_saying_what(desk: Desk) -> None:
    services = desk.world.platform.services
    action = next(iter(EVENT_OF_ACTION))
    with services.store.write() as db:
        access = place_of(db, desk.workspace_id)
        with pytest.raises(AssertionError, match=action):
            services.tools.audit.record(db, PLATFORM, Event(action, ""), access)
