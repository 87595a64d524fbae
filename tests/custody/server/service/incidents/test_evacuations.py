"""Evacuations: two people start one (P89), no limit and no address book opens for more (P90), nothing is
swept twice (P91; kills: `tests/custody/server/test_crash.py`), and what cannot be moved is named (P92).
"""

import pytest
from sqlalchemy import update

from custody.advisories import Advisory
from custody.schemas.proposals import ProposalStatus as Status
from custody.server.domain.evacuation import State, stage_of
from custody.server.service.incidents import evacuation_preview
from custody.server.service.incidents.evacuations import EVACUATE
from custody.server.service.jobs.outbox import MAX_FAILURES, Task
from custody.server.store.models import AdvisoryPublisher, AuditEvent, Key, Proposal, StoredAdvisory
from tests.custody.server.service.incidents.test_advisories import COLDCARD, know
from tests.custody.server.service.test_plans import statements
from tests.support.advisories import entry, trust
from tests.support.custody import SHOP, Desk, ok, refused
from tests.support.evacuations import (
    DORA,
    START,
    add_accounts,
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
from tests.support.prepared import Story
from tests.support.staff import change_role, remove

ADMINISTRATOR = 1


@pytest.fixture
def beginning(request: pytest.FixtureRequest) -> Story:
    return a_sweep if "swept" in request.fixturenames else staff


def a_sweep(desk: Desk) -> None:
    """Two people moved a vault's coins away from Carol's key, and the sweep waits for signatures."""
    dora = staff(desk)
    desk.deposit(1_000_000)
    start(desk, dora, [key_of(desk, "carol")])
    desk.settle()


@pytest.fixture
def dora(desk):
    return desk.world.as_user(DORA)


@pytest.fixture
def swept(desk):
    """Its row in the report."""
    (row,) = report(desk)["vaults"]
    return row


@pytest.fixture
def keys(desk, dora):
    return [key_of(desk, "carol")]


def add_advisory(desk):
    """It concerns, or may, the key of each device that is not known to be another."""
    trust(desk, "root")
    with desk.world.platform.services.store.write() as db:
        _add_advisory(db)


def _add_advisory(db):
    body = Advisory.model_validate(entry()).model_dump(mode="json")
    made = {"key": "", "epoch": 0, "serial": 1, "digest": "", "line": b"", "taken_at": START_TIME}
    db.add(AdvisoryPublisher(root="root", **made))
    db.flush()
    db.add(StoredAdvisory(id=7, root="root", name="X", serial=1, body=body, taken_at=START_TIME))


def freeze(desk, vault_id):
    ok(desk.signers["alice"].post("/api/v1/freeze-vault", {"workspace_id": 1, "vault_id": vault_id}))


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
        (shown,) = ok(dora.get("/api/v1/changes", workspace_id=1, change_id=change["change_id"]))
        assert shown["plan"]["plan_hash"] == plan["plan_hash"]
        (new,) = (one for one in shown["plan"]["vaults"][0]["signers"] if one["instead_of_user_id"])
        (key,) = ok(desk.signers["erin"].get("/api/v1/keys"))
        assert (new["instead_of_user_id"], new["fingerprint"]) == (
            str(desk.user_ids["carol"]), key["MasterFingerprint"]["String"],
        )  # fmt: skip
        assert ok(confirm(dora, change))["answer"]["started_by_name"] == "admin@example.org"
        found = report(desk)
        assert (found["confirmed_by_name"], found["asked_at"]) == ("dora@example.org", change["asked_at"])
        assert actions(desk)[-2:] == ["EVACUATION_STARTED", "CHANGE_CONFIRMED"]
        # The same plan again finds that it is moved.
        (vault,) = plan_of(desk, keys)["vaults"]
        assert "sweep it again there" in vault["cannot"]

    def test_p89_with_the_rule_its_role_confirms(self, desk, dora, keys):
        body = {"org_id": 1, "workspace_id": 1, "name": "Second", "network": "testnet"}
        ok(dora.post("/api/v1/create-workspace", body))
        rule = {"workspace_id": 1, "is_on": True, "confirming_role_id": 1, "cooling_off_hours": 48}
        ok(desk.admin.post("/api/v1/update-second-person-rule", rule))
        refused(desk.admin.post(START, body_of(keys, plan_hash="0" * 64)), 409, "SECOND_PERSON_NEEDED")
        # A member's word alone that a key is exposed is no way around cooling off.
        change = ask(desk, keys, plan_of(desk, keys)["plan_hash"])
        # Who confirms need be no member of its workspace: the page of another one shows the plan too.
        (shown,) = ok(dora.get("/api/v1/changes", workspace_id=2, change_id=change["change_id"]))
        assert shown["plan"]["vaults"][0]["vault_id"] == desk.vault["id"]
        assert "cooling off" in refused(confirm(dora, change), 409, "STATE_CONFLICT")["detail"]
        add_advisory(desk)
        # An advisory does: a thief does not wait either.
        change = ask(desk, keys, plan_of(desk, keys, priority="low")["plan_hash"], priority="low")
        ok(confirm(dora, change))

    def test_p89_a_plan_that_has_changed_is_not_confirmed(self, desk, dora, keys):
        change = ask(desk, keys, plan_of(desk, keys)["plan_hash"])
        erin = desk.signers["erin"]
        (key,) = ok(erin.get("/api/v1/keys"))
        ok(erin.post("/api/v1/revoke-key", {"key_id": key["ID"], "reason": "superseded"}))
        ok(register_key(erin, seed(10)))
        (shown,) = ok(dora.get("/api/v1/changes", workspace_id=1, change_id=change["change_id"]))
        assert (shown["plan"], "has changed since" in shown["no_plan"]) == (None, True)
        refused(confirm(dora, change), 409, "STATE_CONFLICT")
        assert ok(desk.admin.get("/api/v1/evacuations", workspace_id=1)) == []

    def test_the_amounts_are_not_what_is_agreed_on(self, desk, dora, keys):
        before = plan_of(desk, keys)
        desk.deposit(70_000)
        after = plan_of(desk, keys)
        assert after["vaults"][0]["amount_sats"] > before["vaults"][0]["amount_sats"] == 0
        assert after["plan_hash"] == before["plan_hash"]
        assert plan_of(desk, keys, priority="low")["plan_hash"] != before["plan_hash"]


def test_a_sweep_that_ended_is_not_hidden_by_another():
    for sweeps, left, stage in (
        ([Status.CONFIRMED, Status.REJECTED], 1, "ended"),
        ([Status.CONFIRMED, Status.EXPIRED], 1, "ended"),
        ([Status.CONFIRMED, Status.REJECTED], 0, "confirmed"),
        ([Status.CONFIRMED], 1, "confirmed"),
        ([Status.PENDING, Status.REJECTED], 1, "awaiting-approval"),
    ):
        assert stage_of(State.PROPOSED, sweeps, left_sats=left) == stage


class TestPlan:
    def test_who_takes_the_place_and_what_would_move(self, desk, keys, monkeypatch):
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
        assert "1 proposal is cancelled first." in vault["notes"]
        assert plan_of(desk, keys, first=5, count=5)["first"] == 0
        monkeypatch.setattr(evacuation_preview, "MOST_READ", 1)
        (vault,) = plan_of(desk, keys)["vaults"]
        assert len(vault["cancels"]) + len(vault["holds"]) == 1
        assert "More than 1 proposals are open in it. Of the oldest 1:" in vault["notes"]

    def test_a_member_with_another_key_stays(self, desk, keys):
        carol = desk.signers["carol"]
        ok(carol.post("/api/v1/revoke-key", {"key_id": keys[0], "reason": "superseded"}))
        ok(register_key(carol, seed(11)))
        (vault,) = plan_of(desk, keys)["vaults"]
        assert [each["instead_of_user_id"] for each in vault["signers"]] == [None] * 3
        assert keys[0] not in [each["key_id"] for each in vault["signers"]]

    def test_p92_without_a_substitute_it_says_why(self, desk, keys):
        two = [*keys, key_of(desk, "bob")]
        (vault,) = plan_of(desk, two)["vaults"]
        assert (vault["signers"], vault["exposed"]) == ([], 2)
        assert "register another device" in vault["cannot"]
        alice = desk.user_ids["alice"]
        (vault,) = plan_of(desk, keys, substitutes={keys[0]: alice})["vaults"]
        assert f"member {alice} cannot take the place" in vault["cannot"]
        stranger = desk.world.member(1, "mallory@example.org").user_id
        ok(remove(desk.admin, stranger))
        for key, user_id in ((keys[0], stranger), (two[1], alice)):
            named = body_of(keys, substitutes={key: user_id})
            refused(desk.admin.post("/api/v1/preview-evacuation", named), 422, "VALIDATION")
        unknown = body_of(["nobody"])
        refused(desk.admin.post("/api/v1/preview-evacuation", unknown), 422, "VALIDATION")

    def test_p92_no_key_that_an_advisory_concerns_takes_a_place(self, desk, keys):
        """Nobody said on which device erin's key is: it counts as exposed, though no vault has it."""
        trezor = {"maker": "trezor", "model": "Trezor Model T", "firmware": "2.8.1"}
        with desk.world.platform.services.store.write() as db:
            ids = [desk.user_ids[name] for name in ("alice", "bob")]
            db.execute(update(Key).where(Key.user_id.in_(ids)).values(**trezor))
        add_advisory(desk)
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

    def test_a_payment_to_a_vault_changes_no_plan(self, desk, dora, keys):
        """Three vaults alike, and erin's accounts are enough for two: the amounts do not decide for which,
        and change no page.
        """
        add_accounts(desk, 6, "alice", "bob", "carol")
        more = [ok(desk.create_vault(name)) for name in ("Petty cash", "Tax")]
        before = plan_of(desk, keys)
        assert sorted(bool(each["cannot"]) for each in before["vaults"]) == [False, False, True]
        for number, vault in enumerate((desk.vault, *more), start=1):
            desk.deposit(10_000_000 * number, to=vault["address"])
            after = plan_of(desk, keys)
            assert after["plan_hash"] == before["plan_hash"]
            assert [each["vault_id"] for each in after["vaults"]] == [
                each["vault_id"] for each in before["vaults"]
            ]
        (new,) = after["new_keys"]
        assert (new["user_id"], new["vaults"]) == (str(desk.user_ids["erin"]), 2)
        moved = [each["vault_id"] for each in start(desk, dora, keys)["vaults"]]
        assert moved == [vault["id"] for vault in (*more[::-1], desk.vault)], "the largest first"

    def test_a_starter_whose_approval_is_needed_starts_none(self, desk, dora, keys):
        """Alice may not approve what she proposes: bob alone is left, where carol lost her key."""
        controls = {"vault_id": desk.vault["id"], "only_address_book": False, "maker_may_approve": False}
        ok(desk.admin.post("/api/v1/update-vault-controls", {"workspace_id": 1, **controls}))
        ok(desk.signers["carol"].post("/api/v1/revoke-key", {"key_id": keys[0], "reason": "lost"}))
        plan = plan_of(desk, keys)
        assert (plan["vaults"][0]["cannot"], len(plan["substitutes"])) == (None, 3)
        found = ok(desk.signers["alice"].post("/api/v1/preview-evacuation", body_of(keys)))
        assert "another member has to ask" in found["vaults"][0]["cannot"]
        assert found["substitutes"] == [], "names of members who sign nothing are for who may start one"


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
        assert (row["unsigned_sats"] > 0, row["swept_sats"]) == (True, 0)
        sweep = desk.proposal(psbt_id)
        assert sweep["recipients"] == [new["address"]] == [row["replacement_address"]]
        assert sweep["amounts_sats"] == [350_000_000 - sweep["fee_sats"]] == [row["unsigned_sats"]]
        assert ok(desk.admin.get("/api/v1/get-my-limits", workspace_id=1))["Used"] == before
        desk.sign_off(psbt_id)
        assert stages(desk) == ["signed"]
        row["swept_sats"] = row["unsigned_sats"]
        assert report(desk)["vaults"][0]["swept_sats"] == row["swept_sats"]
        desk.settle()
        assert stages(desk) == ["broadcast"]
        assert report(desk)["confirmed_at"] is None
        desk.mine()
        with statements(desk.world.platform.services.store) as asked:
            found = report(desk)
        assert len(asked) < 30
        assert not [said for said, _ in asked if "proposals.psbt" in said or "witness_script" in said]
        assert (stages(desk), found["vaults"][0]["left_sats"]) == (["confirmed"], 0)
        assert None not in (found["replaced_at"], found["proposed_at"], found["confirmed_at"])
        assert {each["confirmed_sats"] for each in desk.wallets()} == {0, row["swept_sats"]}
        # What an advisory exposes names it last, and says so.
        add_advisory(desk)
        with statements(desk.world.platform.services.store) as asked:
            new, old = ok(desk.admin.get("/api/v1/exposures", workspace_id=1, advisory_id=7))
        assert not [said for said, _ in asked if "descriptor" in said or "xpub" in said]
        assert (old["balance_sats"], old["replacement_name"]) == (0, new["name"])
        assert (new["replacement_name"], old["replaced_at"]) == (None, row["replaced_at"])

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
        assert report(desk)["vaults"][0]["unsigned_sats"] > 1_900_000

    def test_p92_what_comes_later_is_named_and_swept_again(self, desk, swept):
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

    def test_a_declined_sweep_has_ended_and_is_made_again(self, desk, swept):
        desk.reject(swept["psbt_ids"][0])
        assert stages(desk) == ["ended"]
        ok(again(desk, desk.vault["id"]))
        desk.settle()
        assert stages(desk) == ["awaiting-approval"]

    def test_p92_a_replacement_that_could_not_move_the_coins_on_gets_none(self, desk, dora, keys):
        """Two of its three signers lost their keys after two people's yes: nothing more is swept there."""
        controls = {"vault_id": desk.vault["id"], "only_address_book": True, "maker_may_approve": True}
        ok(desk.admin.post("/api/v1/update-vault-controls", {"workspace_id": 1, **controls}))
        desk.deposit(1_000_000)
        start(desk, dora, keys)
        desk.settle()
        (first,) = report(desk)["vaults"][0]["psbt_ids"]
        for name, number in (("erin", 10), ("bob", 12)):
            (key,) = ok(desk.signers[name].get("/api/v1/keys"))
            lost = {"key_id": key["ID"], "reason": "lost", "force": True}
            ok(desk.signers[name].post("/api/v1/revoke-key", lost))
            ok(register_key(desk.signers[name], seed(number)))
        answer = desk.submit("alice", first, desk.signed("alice", first))
        assert "too few signers of Treasury (new)" in refused(answer, 409, "REPLACEMENT_UNFIT")["detail"]
        desk.deposit(250_000, to=desk.vault["address"])
        to_it = desk.propose(10_000, recipients=[report(desk)["vaults"][0]["replacement_address"]])
        refused(to_it, 403, "NOT_IN_ADDRESS_BOOK")
        refused(again(desk, desk.vault["id"]), 409, "STATE_CONFLICT")
        (row,) = report(desk)["vaults"]
        assert (row["stage"], row["psbt_ids"]) == ("awaiting-approval", [first])
        assert "Make a new plan" in row["reason"]
        # It is planned anew, and what waited for the first replacement is cancelled.
        add_accounts(desk, 5, "alice")
        desk.world.clock.advance(minutes=1)
        start(desk, dora, keys)
        desk.settle()
        (row,) = report(desk)["vaults"]
        assert (row["stage"], row["replacement_name"]) == ("awaiting-approval", "Treasury (new 2)")
        assert (desk.proposal(first)["status"], row["unsigned_sats"] > 1_200_000) == ("CANCELLED", True)

    def test_p92_a_replacement_that_is_frozen_or_exposed_by_now_gets_none(self, desk, keys, swept):
        """By a later advisory, for certain: what is not known of a device stops no sweep."""
        row, (sweep,) = swept, swept["psbt_ids"]
        signed = desk.signed("alice", sweep)
        here = {"workspace_id": 1, "vault_id": row["replacement_id"]}
        ok(desk.signers["alice"].post("/api/v1/freeze-vault", here))
        refused(desk.submit("alice", sweep, signed), 409, "VAULT_FROZEN")
        refused(again(desk, desk.vault["id"]), 409, "STATE_CONFLICT")
        (row,) = report(desk)["vaults"]
        assert (row["stage"], "(new) is frozen" in row["reason"]) == ("awaiting-approval", True)
        assert "sweep it again there" not in (plan_of(desk, keys)["vaults"][0]["cannot"] or "")
        for name in ("alice", "bob"):
            ok(desk.signers[name].post("/api/v1/unfreeze-vault", here))
        know(desk, erin=COLDCARD)
        add_advisory(desk)
        answer = desk.submit("alice", sweep, signed)
        why = "the advisory COLDCARD-2026-07 exposes a key of Treasury (new)"
        assert why in refused(answer, 409, "REPLACEMENT_UNFIT")["detail"]
        assert why in report(desk)["vaults"][0]["reason"]
        desk.deposit(250_000, to=desk.vault["address"])
        assert why in refused(again(desk, desk.vault["id"]), 409, "STATE_CONFLICT")["detail"]
        # Nor does an ordinary payment reach it, where the address book alone is paid.
        controls = {"vault_id": desk.vault["id"], "only_address_book": True, "maker_may_approve": True}
        ok(desk.admin.post("/api/v1/update-vault-controls", {"workspace_id": 1, **controls}))
        to_it = desk.propose(10_000, recipients=[row["replacement_address"]])
        refused(to_it, 403, "NOT_IN_ADDRESS_BOOK")
        # No new plan gives erin the place either: it would move nothing, so nobody is asked for a yes.
        plan = plan_of(desk, keys)
        assert "register another device" in plan["vaults"][0]["cannot"]
        change = {"workspace_id": 1, "path": START, "body": body_of(keys, plan_hash=plan["plan_hash"])}
        told = refused(desk.admin.post("/api/v1/request-change", change), 409, "STATE_CONFLICT")["detail"]
        assert told.startswith("There is nothing to evacuate. Treasury: ")
        # What a publisher said whom the operator trusts no longer stops nothing.
        trust(desk)
        ok(desk.submit("alice", sweep, signed))

    def test_p92_a_new_plan_frees_the_coins_of_a_sweep_that_has_a_signature(self, desk, dora, keys, swept):
        row, (sweep,) = swept, swept["psbt_ids"]
        desk.approve("alice", sweep)
        freeze(desk, row["replacement_id"])
        add_accounts(desk, 5, "alice", "bob", "erin")
        desk.world.clock.advance(minutes=1)
        (vault,) = plan_of(desk, keys)["vaults"]
        assert (vault["cancels"], vault["holds"]) == ([sweep], [])
        start(desk, dora, keys)
        desk.settle()
        (new,) = report(desk)["vaults"]
        assert (new["replacement_name"], new["unsigned_sats"]) == ("Treasury (new 2)", row["unsigned_sats"])
        assert desk.proposal(sweep)["status"] == "CANCELLED"

    def test_p92_a_signed_sweep_is_not_sent_to_a_frozen_replacement(self, desk, swept):
        row, (sweep,) = swept, swept["psbt_ids"]
        desk.sign_off(sweep)
        freeze(desk, row["replacement_id"])
        desk.settle()
        shown = desk.proposal(sweep)
        assert (shown["status"], shown["failure_code"]) == ("STALLED", "vault-frozen")
        assert f"Take back {sweep}" in report(desk)["vaults"][0]["reason"]
        for name in ("alice", "bob"):
            here = {"workspace_id": 1, "vault_id": row["replacement_id"]}
            ok(desk.signers[name].post("/api/v1/unfreeze-vault", here))
        desk.world.clock.advance(minutes=10)
        desk.settle()
        assert desk.proposal(sweep)["status"] == "BROADCASTING"
        # What the network has is left there.
        freeze(desk, row["replacement_id"])
        assert report(desk)["vaults"][0]["reason"] is None

    def test_p90_who_sweeps_again_made_that_sweep(self, desk, dora, keys):
        controls = {"vault_id": desk.vault["id"], "only_address_book": False, "maker_may_approve": False}
        ok(desk.admin.post("/api/v1/update-vault-controls", {"workspace_id": 1, **controls}))
        ok(change_role(desk.admin, desk.user_ids["alice"], ADMINISTRATOR))
        desk.deposit(1_000_000)
        start(desk, dora, keys)
        desk.settle()
        desk.deposit(250_000, to=desk.vault["address"])
        ok(again(desk, desk.vault["id"], desk.signers["alice"]))
        desk.settle()
        ids = report(desk)["vaults"][0]["psbt_ids"]
        second, first = sorted(ids, key=lambda each: desk.proposal(each)["amounts_sats"])
        refused(desk.submit("alice", second, desk.signed("alice", second)), 403, "NOT_A_SIGNER")
        desk.approve("alice", first)

    def test_p90_who_left_makes_no_sweep(self, desk, dora, keys):
        start(desk, dora, keys)
        desk.settle()
        desk.deposit(1_000_000, to=desk.vault["address"])
        (row,) = report(desk)["vaults"]
        ok(again(desk, row["vault_id"], dora))
        ok(remove(desk.admin, desk.user_ids["dora"]))
        desk.settle()
        (row,) = report(desk)["vaults"]
        assert (row["stage"], "another member has to sweep again" in row["reason"]) == ("left", True)
        ok(again(desk, row["vault_id"]))
        desk.settle()
        assert stages(desk) == ["awaiting-approval"]

    def test_p92_no_number_of_failures_ends_it(self, desk, dora, keys, monkeypatch):
        desk.deposit(1_000_000)
        start(desk, dora, keys)
        with monkeypatch.context() as patched:
            patched.setitem(desk.world.platform.background.handlers, EVACUATE, lambda _task: 1 // 0)
            broken = desk.world.platform.background.outbox()
            for _ in range(MAX_FAILURES + 1):
                broken.run_due()
                desk.world.clock.advance(minutes=2)
        desk.settle()
        desk.admin = desk.world.as_user("admin@example.org")
        assert stages(desk) == ["awaiting-approval"]
