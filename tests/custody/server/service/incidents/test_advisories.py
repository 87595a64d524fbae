"""Handing a publisher's list to the platform: who may, what is believed, who is told; and which vaults it
exposes.
"""

import pytest
from sqlalchemy import update

from custody.advisories import Advisory
from custody.server.domain.credentials import OPERATOR
from custody.server.domain.errors import StateConflict
from custody.server.service.incidents.advisories import Exposure, exposures
from custody.server.store.models import AdvisoryPublisher, Key, StoredAdvisory, WebhookEvent
from tests.support.advisories import Publisher, affected, entry, secret, trust
from tests.support.custody import ok, refused
from tests.support.platform import key_offer, register_key

PUBLISHER = Publisher()
HANDED_OVER = Publisher([secret(1), secret(2)])


@pytest.fixture
def trusting(desk):
    """The operator has set the publisher's key; Bob's device is another maker's."""
    trust(desk, PUBLISHER.root)
    know(desk, alice=COLDCARD, bob=TREZOR, carol=TREZOR)
    return desk


def take(desk, told, who=None):
    body = {"workspace_id": desk.workspace_id, "list": told.line.decode()}
    return (who or desk.admin).post("/api/v1/take-advisories", body)


def exposures_shown(desk, advisory_id: int, who=None):
    person = who or desk.admin
    return person.get("/api/v1/exposures", workspace_id=desk.workspace_id, advisory_id=advisory_id)


def test_a_list_is_taken_shown_and_told_of_once(trusting):
    desk = trusting
    url = "https://hooks.example.org/flaws"
    asked = {"workspace_id": desk.workspace_id, "url": url, "kinds": ["vault.exposed"]}
    hook = ok(desk.admin.post("/api/v1/create-webhook", asked))
    told = PUBLISHER.list(1, entry())
    for _ in range(2):
        taken = ok(take(desk, told))
    assert (taken["publisher"], taken["serial"], taken["is_over"]) == (PUBLISHER.root, 1, False)
    (shown,) = taken["advisories"]
    # Any signer's daemon gets the file itself.
    assert ok(desk.signers["carol"].get("/api/v1/advisories"))[0]["list"] == told.line.decode()
    (found,) = ok(exposures_shown(desk, shown["advisory_id"]))
    assert (found["name"], found["exposed_keys"], found["keys_to_spare"]) == ("Treasury", 1, 1)
    assert [key["concern"] for key in found["keys"]] == ["exposed"]

    chain = f"workspace:{desk.workspace_id}"
    assert desk.world.audit_actions().count("ADVISORIES_TAKEN") == 1
    assert desk.world.audit_actions(chain).count("VAULTS_EXPOSED") == 1
    query = {"workspace_id": desk.workspace_id, "webhook_id": hook["webhook_id"]}
    (delivery,) = ok(desk.admin.get("/api/v1/webhook-deliveries", **query))
    assert delivery["kind"] == "vault.exposed"
    (event,) = desk.rows(WebhookEvent)
    assert event.payload == {
        "advisory": "COLDCARD-2026-07",
        "severity": "stop-using",
        "is_drill": False,
        "vault_ids": [desk.vault["id"]],
    }
    desk.world.deliver_mail()
    mails = [mail for mail in desk.world.mail.sent if "signing key" in mail.subject]
    assert [mail.to for mail in mails] == ["alice@example.org"]
    assert "Your key on a test network is on coldcard Coldcard 5.5.0. It is exposed." in mails[0].text


def test_only_what_is_new_is_told_and_what_is_gone_is_withdrawn(trusting):
    desk = trusting
    ok(take(desk, PUBLISHER.list(1, entry(), entry("TREZOR-1", affected("trezor")))))
    (before, gone) = ok(desk.admin.get("/api/v1/advisories"))[0]["advisories"]
    changed = entry("JADE-1", affected("jade"), drill=True)
    ok(take(desk, HANDED_OVER.list(2, entry(), changed)))
    after = ok(desk.admin.get("/api/v1/advisories"))[0]
    assert [each["name"] for each in after["advisories"]] == ["COLDCARD-2026-07", "JADE-1"]
    assert (after["epoch"], after["advisories"][0]) == (2, before)
    assert desk.world.audit_actions(f"workspace:{desk.workspace_id}").count("VAULTS_EXPOSED") == 2
    # What it exposed can still be read: sweeps name it.
    assert len(ok(exposures_shown(desk, gone["advisory_id"]))) == 1
    assert [row.withdrawn_at is None for row in desk.rows(StoredAdvisory)] == [True, False, True]


def test_forged_older_and_foreign_lists_change_nothing(trusting):
    desk = trusting
    ok(take(desk, HANDED_OVER.list(5, entry())))
    kept = desk.rows(AdvisoryPublisher)[0].digest
    stranger = Publisher([secret(9)])
    forged = HANDED_OVER.list(6, entry()).signed(secret(9), bytes(32))
    for told in (stranger.list(6, entry()), forged, Publisher([secret(1), secret(9)]).list(6)):
        assert "bad-advisories" in take(desk, told).text
    for told in (HANDED_OVER.list(4), HANDED_OVER.list(5), PUBLISHER.list(6)):
        refused(take(desk, told), 409, "STATE_CONFLICT")
    over = HANDED_OVER.list(6, expires="2026-02-28T00:00:00Z")
    assert "expired" in refused(take(desk, over), 409, "STATE_CONFLICT")["detail"]
    assert [row.digest for row in desk.rows(AdvisoryPublisher)] == [kept]
    services = desk.world.platform.services
    with pytest.raises(StateConflict), services.store.write() as db:
        services.advisories.take(db, OPERATOR, HANDED_OVER.list(4).line)
    # A key that the operator no longer trusts is shown no longer.
    trust(desk)
    assert ok(desk.admin.get("/api/v1/advisories")) == []


def test_who_may_hand_in_and_who_sees_which_vaults(trusting):
    desk = trusting
    told = PUBLISHER.list(1, entry())
    refused(take(desk, told, desk.signers["alice"]), 403, "PERMISSION_DENIED")
    (shown,) = ok(take(desk, told))["advisories"]
    assert len(ok(exposures_shown(desk, shown["advisory_id"], desk.signers["alice"]))) == 1
    refused(exposures_shown(desk, shown["advisory_id"] + 1), 404, "NOT_FOUND")
    other = desk.world.organisation("Other", "owner@example.org")
    stranger = desk.world.as_user("owner@example.org")
    found = stranger.get(
        "/api/v1/exposures", workspace_id=other.workspace_id, advisory_id=shown["advisory_id"]
    )
    assert ok(found) == []


COLDCARD = {"maker": "coldcard", "model": "Coldcard", "firmware": "5.5.0"}
TREZOR = {"maker": "trezor", "model": "Trezor Model T", "firmware": "2.8.1"}


def know(desk, **devices: dict) -> None:
    """As if the signers' machines had said so at the registration."""
    with desk.world.platform.services.store.write() as db:
        for name, device in devices.items():
            db.execute(update(Key).where(Key.user_id == desk.user_ids[name]).values(**device))


def exposed(desk, said: dict, organisation_id: int = 1) -> list[Exposure]:
    with desk.world.platform.services.store.read() as db:
        return exposures(db, organisation_id, Advisory.model_validate(said))


def test_exposed_keys_are_counted_and_what_is_unknown_counts(desk):
    know(desk, alice=COLDCARD, bob=TREZOR)
    (found,) = exposed(desk, entry())
    assert (found.name, found.exposed_keys, found.required, found.total) == ("Treasury", 2, 2, 3)
    told = {key.user_id: key.concern for key in found.keys}
    assert told == {desk.user_ids["alice"]: "exposed", desk.user_ids["carol"]: "unknown"}
    know(desk, carol=TREZOR, alice=TREZOR)
    assert exposed(desk, entry()) == []
    assert len(exposed(desk, entry("TREZOR-1", affected("trezor")))) == 1


def test_those_that_the_exposed_keys_alone_move_come_first_then_the_largest(desk):
    know(desk, alice=COLDCARD, bob=COLDCARD, carol=TREZOR)
    for name, device in desk.devices.items():
        more = key_offer(device, accounts=4)["vault_accounts"]
        ok(register_key(desk.signers[name], device, vault_accounts=more))
    ok(desk.create_vault("All three", m=3))
    ok(desk.create_vault("Small"))
    ok(desk.create_vault("Empty"))
    addresses = {vault["name"]: vault["receive_address"] for vault in desk.wallets()}
    for name, amount in (("All three", 900_000), ("Small", 10_000), ("Treasury", 50_000)):
        desk.deposit(amount, blocks=0 if name == "Small" else 1, to=addresses[name])
    found = exposed(desk, entry())
    assert [each.name for each in found] == ["Treasury", "Small", "Empty", "All three"]
    assert [each.amount_sats for each in found] == [50_000, 10_000, 0, 900_000]
    assert [each.keys_to_spare for each in found] == [0, 0, 0, 1]


def test_p88_a_drill_never_sees_a_vault_of_mainnet(desk):
    assert len(exposed(desk, entry(drill=True))) == 1
    with desk.world.platform.services.store.write() as db:
        db.execute(update(Key).values(network="mainnet"))
    assert exposed(desk, entry(drill=True)) == []
    assert len(exposed(desk, entry())) == 1


def test_another_organisations_vaults_are_not_seen(desk):
    assert exposed(desk, entry(), organisation_id=2) == []
