"""Evacuations: two people start one (P89), no limit and no address book opens for more (P90), nothing is swept twice
(P91; kills: `tests/custody/server/test_crash.py`), and what cannot be moved is named (P92).
"""  # noqa: E501

import pytest
from sqlalchemy import update

from custody.advisories import Advisory
from custody.server.service.incidents.evacuations import EVACUATE
from custody.server.service.jobs.outbox import Task
from custody.server.store.models import AdvisoryPublisher, AuditEvent, Key, Proposal, StoredAdvisory
from tests.support.advisories import entry
from tests.support.custody import SHOP, ok, refused
from tests.support.evacuations import (
    START,
    again,
    ask,
    body_of,
    confirm,
    key_of,
    plan_of,
    report,
    staff,
    start,
)
from tests.support.platform import START as START_TIME
from tests.support.platform import register_key, seed


@pytest.fixture
def dora(desk):
    return staff(desk)


@pytest.fixture
def keys(desk, dora):
    return [key_of(desk, "carol")]


def stages(desk):
    return [each["stage"] for each in report(desk)["vaults"]]


def actions(desk):
    return desk.world.audit_actions("workspace:1")


class TestTwoPeople:
    def test_p89_one_alone_starts_none_whatever_the_rule_is(self, desk, dora, keys):
        plan = plan_of(desk, keys)
        body = body_of(keys, plan_hash=plan["plan_hash"])
        refused(desk.admin.post(START, body), 409, "SECOND_PERSON_NEEDED")
        change = ask(desk, keys, plan["plan_hash"])
        refused(confirm(desk.admin, change), 403, "PERMISSION_DENIED")
        refused(confirm(desk.signers["alice"], change), 403, "PERMISSION_DENIED")
        assert ok(desk.signers["alice"].get("/api/v1/changes", workspace_id=1)) == []
        assert ok(dora.get("/api/v1/changes", workspace_id=1)) == [change]
        assert ok(confirm(dora, change))["answer"]["started_by_name"] == "admin@example.org"
        found = report(desk)
        assert (found["confirmed_by_name"], found["asked_at"]) == ("dora@example.org", change["asked_at"])
        assert actions(desk)[-2:] == ["EVACUATION_STARTED", "CHANGE_CONFIRMED"]
        # The same plan again finds that it is moved.
        (vault,) = plan_of(desk, keys)["vaults"]
        assert "sweep it again there" in vault["cannot"]

    def test_p89_with_the_rule_its_role_confirms(self, desk, dora, keys):
        rule = {"workspace_id": 1, "is_on": True, "role_name": "Administrator", "cooling_off_hours": 48}
        ok(desk.admin.post("/api/v1/update-second-person-rule", rule))
        refused(desk.admin.post(START, body_of(keys, plan_hash="0" * 64)), 409, "SECOND_PERSON_NEEDED")
        # It does not cool off: a thief does not wait either.
        ok(confirm(dora, ask(desk, keys, plan_of(desk, keys)["plan_hash"])))

    def test_p89_a_plan_that_has_changed_is_not_confirmed(self, desk, dora, keys):
        change = ask(desk, keys, plan_of(desk, keys)["plan_hash"])
        erin = desk.signers["erin"]
        (key,) = ok(erin.get("/api/v1/keys"))
        ok(erin.post("/api/v1/revoke-key", {"key_id": key["ID"], "reason": "superseded"}))
        ok(register_key(erin, seed(10)))
        refused(confirm(dora, change), 409, "STATE_CONFLICT")
        assert ok(desk.admin.get("/api/v1/evacuations", workspace_id=1)) == []

    def test_the_amounts_are_not_what_is_agreed_on(self, desk, dora, keys):
        before = plan_of(desk, keys)
        desk.deposit(70_000)
        after = plan_of(desk, keys)
        assert after["vaults"][0]["amount_sats"] > before["vaults"][0]["amount_sats"] == 0
        assert after["plan_hash"] == before["plan_hash"]
        assert plan_of(desk, keys, priority="low")["plan_hash"] != before["plan_hash"]


class TestPlan:
    def test_who_takes_the_place_and_what_would_move(self, desk, keys):
        desk.deposit(5_000_000, 400_000)
        ok(desk.propose(100_000))
        psbt_id = ok(desk.propose(90_000, recipients=[SHOP]))["psbt_id"]
        desk.approve("alice", psbt_id)
        plan = plan_of(desk, keys)
        (vault,) = plan["vaults"]
        assert (vault["exposed"], vault["m"], vault["replacement_name"]) == (1, 2, "Treasury (new)")
        ids = [str(desk.user_ids[name]) for name in ("alice", "bob", "erin")]
        assert [signer["user_id"] for signer in vault["signers"]] == ids
        assert vault["signers"][2]["instead_of_user_id"] == str(desk.user_ids["carol"])
        assert (len(vault["cancels"]), vault["holds"]) == (1, [psbt_id])
        assert vault["held_sats"] == 5_400_000
        assert "1 proposals without a signature are cancelled first." in vault["notes"]

    def test_a_member_with_another_key_stays(self, desk, keys):
        carol = desk.signers["carol"]
        ok(carol.post("/api/v1/revoke-key", {"key_id": keys[0], "reason": "superseded"}))
        ok(register_key(carol, seed(11)))
        (vault,) = plan_of(desk, keys)["vaults"]
        assert [each["instead_of_user_id"] for each in vault["signers"]] == [None] * 3
        assert keys[0] not in [each["key_id"] for each in vault["signers"]]

    def test_p92_where_nobody_can_take_the_place_it_says_why(self, desk, keys):
        two = [*keys, key_of(desk, "bob")]
        (vault,) = plan_of(desk, two)["vaults"]
        assert (vault["signers"], vault["exposed"]) == ([], 2)
        assert "register another device" in vault["cannot"]
        alice = desk.user_ids["alice"]
        (vault,) = plan_of(desk, keys, substitutes={keys[0]: alice})["vaults"]
        assert f"User {alice} cannot take the place" in vault["cannot"]
        unknown = body_of(["nobody"])
        refused(desk.admin.post("/api/v1/preview-evacuation", unknown), 422, "VALIDATION")

    def test_p92_no_key_that_an_advisory_concerns_takes_a_place(self, desk, keys):
        """Nobody said on which device erin's key is: it counts as exposed, though no vault has it."""
        trezor = {"maker": "trezor", "model": "Trezor Model T", "firmware": "2.8.1"}
        body = Advisory.model_validate(entry()).model_dump(mode="json")
        with desk.world.platform.services.store.write() as db:
            ids = [desk.user_ids[name] for name in ("alice", "bob")]
            db.execute(update(Key).where(Key.user_id.in_(ids)).values(**trezor))
            made = {"key": "", "epoch": 0, "serial": 1, "digest": "", "line": b"", "taken_at": START_TIME}
            db.add(AdvisoryPublisher(root="root", **made))
            db.flush()
            kept = {"name": "X", "serial": 1, "body": body, "taken_at": START_TIME}
            db.add(StoredAdvisory(id=7, root="root", **kept))
        (vault,) = plan_of(desk, [], advisory_id=7)["vaults"]
        assert (vault["exposed"], "register another device" in vault["cannot"]) == (1, True)

    def test_the_most_urgent_stands_first_and_accounts_are_counted(self, desk, keys):
        """Each key has one unused account left: the second vault is the one that finds none."""
        other = ok(desk.create_vault("Petty cash", m=1))
        desk.deposit(50_000_000)
        (first, second) = plan_of(desk, keys)["vaults"]
        assert (first["vault_name"], second["vault_name"]) == ("Petty cash", "Treasury")
        assert first["vault_id"] == other["id"]
        assert [bool(each["cannot"]) for each in (first, second)] == [True, True]
        assert "account" in first["cannot"]


class TestWork:
    def test_p90_p91_from_the_yes_to_the_confirmation(self, desk, dora, keys):
        """Bound to the address book, above every limit: the sweep goes through, and nothing else does."""
        controls = {"vault_id": desk.vault["id"], "only_address_book": True, "maker_may_approve": False}
        ok(desk.admin.post("/api/v1/update-vault-controls", {"workspace_id": 1, **controls}))
        limit = {"vault_id": desk.vault["id"], "transaction_limit": "0.001", "cycle_period": "W"}
        ok(desk.admin.post("/api/v1/update-vault", {"workspace_id": 1, "cycle_day": 2, **limit}))
        desk.deposit(300_000_000, 50_000_000)
        refused(desk.propose(10_000), 403, "NOT_IN_ADDRESS_BOOK")
        before = ok(desk.admin.get("/api/v1/get-my-limits", workspace_id=1))["Used"]
        start(desk, dora, keys)
        desk.settle()
        (row,) = report(desk)["vaults"]
        assert row["stage"] == "awaiting-approval"
        (psbt_id,) = row["psbt_ids"]
        old, new = sorted(desk.wallets(), key=lambda each: each["name"])
        assert (new["id"], new["name"], new["m"]) == (row["replacement_id"], "Treasury (new)", old["m"])
        assert new["detailed_vault_limits"]["Limit"] == "0.00100000"
        shown = ok(desk.admin.get("/api/v1/vault-controls", workspace_id=1, vault_id=new["id"]))
        assert (shown["only_address_book"], shown["maker_may_approve"]) == (True, False)
        sweep = desk.proposal(psbt_id)
        assert sweep["recipients"] == [new["address"]] == [row["replacement_address"]]
        assert sweep["amounts_sats"] == [350_000_000 - sweep["fee_sats"]] == [row["swept_sats"]]
        assert ok(desk.admin.get("/api/v1/get-my-limits", workspace_id=1))["Used"] == before
        desk.sign_off(psbt_id)
        assert stages(desk) == ["signed"]
        desk.settle()
        assert stages(desk) == ["broadcast"]
        assert report(desk)["confirmed_at"] is None
        desk.mine()
        found = report(desk)
        assert (stages(desk), found["vaults"][0]["left_sats"]) == (["confirmed"], 0)
        assert None not in (found["replaced_at"], found["proposed_at"], found["confirmed_at"])
        assert {each["confirmed_sats"] for each in desk.wallets()} == {0, row["swept_sats"]}

    def test_p91_the_job_again_makes_nothing_again(self, desk, dora, keys):
        desk.deposit(1_000_000)
        start(desk, dora, keys)
        work = desk.world.platform.background.handlers[EVACUATE]
        desk.outbox.run_due()
        (row,) = report(desk)["vaults"]
        task = Task(1, EVACUATE, f"{report(desk)['evacuation_id']}:{row['vault_id']}", {}, 1)
        for _ in range(2):
            work(task)
        assert report(desk)["vaults"] == [row]
        assert (len(desk.wallets()), len(desk.rows(Proposal))) == (2, 1)

    def test_unsigned_proposals_give_their_coins_back(self, desk, dora, keys):
        desk.deposit(2_000_000)
        psbt_id = ok(desk.propose(100_000))["psbt_id"]
        start(desk, dora, keys)
        desk.settle()
        assert desk.proposal(psbt_id)["status"] == "CANCELLED"
        assert report(desk)["vaults"][0]["swept_sats"] > 1_900_000

    def test_p92_what_comes_later_is_named_and_swept_again(self, desk, dora, keys):
        desk.deposit(1_000_000)
        start(desk, dora, keys)
        desk.settle()
        desk.deposit(250_000, to=desk.vault["address"])
        (row,) = report(desk)["vaults"]
        assert (row["left_sats"], row["may_sweep_again"]) == (250_000, True)
        ok(again(desk, row["vault_id"]))
        desk.settle()
        (row,) = report(desk)["vaults"]
        assert (row["left_sats"], len(row["psbt_ids"]), row["may_sweep_again"]) == (0, 2, False)
        # Nothing is left: asked again, nothing is made.
        ok(again(desk, row["vault_id"]))
        desk.settle()
        assert report(desk)["vaults"][0]["psbt_ids"] == row["psbt_ids"]

    def test_p92_a_freeze_stops_it_until_two_unfreeze(self, desk, dora, keys):
        desk.deposit(1_000_000)
        here = {"workspace_id": 1, "vault_id": desk.vault["id"]}
        ok(desk.signers["alice"].post("/api/v1/freeze-vault", here))
        assert any("frozen" in note for note in plan_of(desk, keys)["vaults"][0]["notes"])
        start(desk, dora, keys)
        desk.settle()
        (row,) = report(desk)["vaults"]
        assert (row["stage"], "is frozen" in row["reason"], row["psbt_ids"]) == ("left", True, [])
        for name in ("alice", "bob"):
            ok(desk.signers[name].post("/api/v1/unfreeze-vault", here))
        ok(again(desk, row["vault_id"]))
        desk.settle()
        assert (stages(desk), len(desk.wallets())) == (["awaiting-approval"], 2)
        assert [event.action for event in desk.rows(AuditEvent, AuditEvent.action.like("EVACUATION%"))] == [
            "EVACUATION_STARTED", "EVACUATION_LEFT", "EVACUATION_SWEPT_AGAIN",
        ]  # fmt: skip

    def test_a_declined_sweep_has_ended_and_is_made_again(self, desk, dora, keys):
        desk.deposit(1_000_000)
        start(desk, dora, keys)
        desk.settle()
        desk.reject(report(desk)["vaults"][0]["psbt_ids"][0])
        assert stages(desk) == ["ended"]
        ok(again(desk, desk.vault["id"]))
        desk.settle()
        assert stages(desk) == ["awaiting-approval"]
