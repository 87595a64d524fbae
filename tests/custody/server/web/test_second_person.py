"""Two people for policy (P56), cooling off (P57), and the last owner of an organisation (P58)."""

import pytest

from custody.schemas.call import PermissionName
from custody.server.rules.roles import EVERY_PERMISSION, KEPT
from custody.server.second_person import changes
from custody.server.second_person.changes import change_expiry
from tests.support import two_people
from tests.support.custody import SHOP, ok, refused
from tests.support.platform import As, plain_vault
from tests.support.staff import add_someone, change_role, create_workspace, remove, remove_permission, roles
from tests.support.two_people import DORA, ask, decide, rule

NEEDED = "SECOND_PERSON_NEEDED"
ADMINISTRATOR, SIGNER = 1, 2
RAISED = {"role_id": SIGNER, "new_transaction_limit": "5", "cycle_period": "M", "cycle_day": 1}


@pytest.fixture
def dora(world, alice) -> As:
    return two_people.second_administrator(world)


@pytest.fixture
def ruled(alice, dora) -> As:
    """The rule is on: an administrator confirms."""
    ok(rule(alice))
    return dora


def limit_of(person, role_id=SIGNER):
    return ok(person.get("/api/v1/get-role-limit", workspace_id=1, role_id=role_id))["Limit"]


def again(world, email="alice@example.org"):
    """The session has lapsed meanwhile."""
    return world.as_user(email)


class TestRule:
    def test_p106_the_role_that_confirms_keeps_its_say_under_another_name(self, alice, ruled):
        """Renamed while two changes wait, one of them of the rule."""
        raised = ok(ask(alice, "update-role-policies", **RAISED))
        rule = {"is_on": True, "confirming_role_id": 1, "cooling_off_hours": 5}
        stricter = ok(ask(alice, "update-second-person-rule", **rule))
        assert stricter["names"] == {"confirming_role_id": "Administrator"}
        renamed = ok(ask(alice, "update-role", role_id=1, name="Owners"))
        ok(decide(ruled, renamed))
        for person in (alice, ruled):
            shown = ok(person.get("/api/v1/second-person-rule", workspace_id=1))
            assert (shown["confirming_role_id"], shown["role_name"]) == (1, "Owners")
        ok(decide(ruled, raised))
        assert limit_of(alice) == "5.00000000"
        (waiting,) = ok(ruled.get("/api/v1/changes", workspace_id=1, change_id=stricter["change_id"]))
        assert waiting["in_force"]["confirming_role_id"] == waiting["names"]["confirming_role_id"] == "Owners"
        refused(decide(ruled, stricter, in_force=stricter["in_force"]), 409, "STATE_CONFLICT")
        ok(decide(ruled, stricter, in_force=waiting["in_force"]))
        assert ok(alice.get("/api/v1/second-person-rule", workspace_id=1))["cooling_off_hours"] == 5

    def test_p106_only_a_role_of_the_organisations_first_workspace_confirms(self, world, alice, dora):
        world.organisation("Umbrella", "eve@example.org")
        theirs = roles(world.as_user("eve@example.org"), 2)["Administrator"]["RoleId"]
        for role_id in (theirs, 99):
            refused(rule(alice, role_id=role_id), 404, "NOT_FOUND")

    def test_p56_one_person_changes_nothing_and_two_do(self, world, alice, ruled):
        refused(alice.post("/api/v1/update-role-policies", {"workspace_id": 1, **RAISED}), 409, NEEDED)
        change = ok(ask(alice, "update-role-policies", **RAISED))
        assert ok(ask(alice, "update-role-policies", **RAISED)) == change, "the same again is the same"
        refused(decide(alice, change), 403, "PERMISSION_DENIED")
        assert limit_of(alice) == "0.00000000"
        (shown,) = ok(ruled.get("/api/v1/changes", workspace_id=1))
        assert shown == change
        applied = ok(decide(ruled, change))
        assert applied["answer"]["Limit"] == limit_of(alice) == "5.00000000"
        assert (applied["change"]["status"], applied["change"]["asked_by"]) == ("APPLIED", "1")
        refused(decide(ruled, change), 409, "STATE_CONFLICT")
        logs = ok(alice.get("/api/v1/get-logs", org_uid=1, workspace_uid=1))["logs"][-2:]
        assert [row["action"] for row in logs] == ["ROLE_POLICY_REPLACED", "CHANGE_CONFIRMED"]
        assert [row["user_uuid"] for row in logs] == [1, 2]
        assert "what user 1 asked for" in logs[1]["description"]
        assert logs[0]["trace_id"] == logs[1]["trace_id"]

    def test_p56_two_switch_it_off_and_one_switched_it_on(self, alice, ruled):
        change = ok(ask(alice, "update-second-person-rule", is_on=False))
        assert ok(alice.get("/api/v1/second-person-rule", workspace_id=1))["is_on"]
        ok(decide(ruled, change))
        assert not ok(alice.get("/api/v1/second-person-rule", workspace_id=1))["is_on"]
        ok(alice.post("/api/v1/update-role-policies", {"workspace_id": 1, **RAISED}))
        refused(ask(alice, "update-role-policies", **RAISED), 409, "STATE_CONFLICT")

    def test_p56_who_may_switch_it_on(self, world, alice):
        refused(rule(alice), 409, "LAST_ADMIN")
        world.member(1, DORA, "Administrator")
        some = add_someone(world, "Some", EVERY_PERMISSION - {next(iter(EVERY_PERMISSION))})
        refused(rule(some.calls), 403, "PERMISSION_DENIED")
        ok(rule(alice))

    def test_p56_a_workspace_of_ones_own_gives_no_say(self, world, alice, dora):
        """Whoever makes a workspace is its administrator, and names its roles."""
        mallory = add_someone(world, "Mallory", {PermissionName.MANAGE_WORKSPACE}).calls
        ok(create_workspace(mallory))
        refused(rule(mallory, workspace_id=2), 403, "PERMISSION_DENIED")
        ok(rule(alice))
        change = ok(ask(alice, "update-role-policies", **RAISED))
        refused(decide(mallory, change, workspace_id=2), 403, "PERMISSION_DENIED")
        ok(decide(dora, change))

    def test_p56_one_member_leaves_room_for_the_others(self, world, alice, ruled):
        mallory = add_someone(world, "Mallory", {PermissionName.PAYMENT_INIT})
        for number in range(10):
            ok(ask(mallory.calls, "add-whitelist-address", name=f"n{number}", address=SHOP))
        refused(ask(mallory.calls, "add-whitelist-address", name="m", address=SHOP), 409, "STATE_CONFLICT")
        change = ok(ask(alice, "remove-user-from-workspace", user_uuid=mallory.user_id))
        ok(decide(ruled, change))

    def test_p56_what_waits_is_shown_however_many_were_decided_since(self, world, alice, ruled, monkeypatch):
        monkeypatch.setattr(changes, "MAX_SHOWN", 3)
        off = ok(ask(alice, "update-second-person-rule", is_on=False, cooling_off_hours=0))
        for number in range(4):
            world.clock.advance(seconds=1)
            noise = ok(ask(alice, "add-whitelist-address", name=f"n{number}", address=SHOP))
            ok(decide(alice, noise, "decline"))
        shown = ok(ruled.get("/api/v1/changes", workspace_id=1))
        assert [each["status"] for each in shown] == ["DECLINED", "DECLINED", "PENDING"]
        assert shown[-1]["change_id"] == off["change_id"]

    def test_p56_enough_people_stay_to_confirm(self, world, alice, ruled):
        """Asked when it is asked for, and again when it is confirmed."""
        refused(ask(alice, "change-user-role", user_uuid=2, role_id=SIGNER), 409, "LAST_ADMIN")
        third = world.member(1, "third@example.org", "Administrator").user_id
        demoted = ok(ask(alice, "change-user-role", user_uuid=2, role_id=SIGNER))
        ok(decide(ruled, ok(ask(alice, "remove-user-from-workspace", user_uuid=third))))
        refused(decide(ruled, demoted), 409, "LAST_ADMIN")
        refused(ruled.post("/api/v1/leave-workspace", {"workspace_id": 1}), 409, "LAST_ADMIN")


class TestChange:
    def test_what_would_be_refused_is_not_asked_for_and_leaves_nothing(self, world, alice, ruled, bob):
        before = world.audit_actions("workspace:1")
        refused(ask(alice, "update-role-policies", **RAISED | {"role_id": 99}), 404, "NOT_FOUND")
        refused(ask(alice, "update-role-policies", role_id="x"), 422, "VALIDATION")
        refused(ask(alice, "create-psbt"), 422, "VALIDATION")
        refused(ask(alice, "update-role-policies", **RAISED | {"workspace_id": 2}), 422, "VALIDATION")
        refused(ask(bob, "update-role-policies", **RAISED), 403, "PERMISSION_DENIED")
        assert ok(alice.get("/api/v1/changes", workspace_id=1)) == []
        assert [word for word in world.audit_actions("workspace:1")[len(before) :] if "CHANGE" in word] == []

    def test_every_check_is_made_again_when_it_is_confirmed(self, world, alice, ruled):
        """Its maker has lost the permission since."""
        clerk = add_someone(world, "Clerk", {PermissionName.MANAGE_ROLE})
        limits = {"transaction_limit": "0", "cycle_period": "M", "cycle_day": 1}
        change = ok(ask(clerk.calls, "create-role", name="Odd", **limits))
        ok(decide(ruled, ok(ask(alice, "change-user-role", user_uuid=clerk.user_id, role_id=SIGNER))))
        problem = refused(decide(ruled, change), 409, "STATE_CONFLICT")
        assert "may not make it any more" in problem["detail"]
        listed = ok(ruled.get("/api/v1/changes", workspace_id=1))
        states = {each["change_id"]: each["status"] for each in listed}
        assert states[change["change_id"]] == "PENDING"

    def test_only_the_named_role_confirms_and_others_see_their_own(self, world, alice, ruled, bob):
        change = ok(ask(alice, "update-role-policies", **RAISED))
        assert ok(bob.get("/api/v1/changes", workspace_id=1)) == []
        refused(decide(bob, change), 403, "PERMISSION_DENIED")
        refused(decide(bob, change, "decline"), 403, "PERMISSION_DENIED")
        declined = ok(decide(ruled, change, "decline", reason="why?"))
        assert (declined["status"], declined["reason"], declined["decided_by"]) == ("DECLINED", "why?", "2")
        mine = ok(ask(alice, "update-role-policies", **RAISED))
        assert ok(decide(alice, mine, "decline"))["status"] == "DECLINED"
        assert world.audit_actions("workspace:1")[-1] == "CHANGE_DECLINED"

    def test_what_is_in_force_is_shown_to_who_may_still_ask(self, world, alice, ruled):
        """One who asked, and whose role carries it no more, learns no limit that is set after that."""
        clerk = add_someone(world, "Clerk", {PermissionName.MANAGE_WORKSPACE})
        with world.platform.services.store.write() as db:
            db.add_all([plain_vault("v1"), plain_vault("v2")])
        limits = {"transaction_limit": "0", "cycle_period": "M", "cycle_day": 1}
        for vault_id in ("v1", "v2"):
            ok(ask(clerk.calls, "update-vault", vault_id=vault_id, **limits))
        for reader in (ruled, clerk.calls):
            told = ok(reader.get("/api/v1/changes", workspace_id=1))
            assert [change["in_force"]["cycle_period"] for change in told if change["in_force"]] == ["W", "W"]
        ok(decide(ruled, ok(ask(alice, "change-user-role", user_uuid=clerk.user_id, role_id=SIGNER))))
        told = ok(clerk.calls.get("/api/v1/changes", workspace_id=1))
        assert [change["in_force"] for change in told] == [{}, {}]

    def test_it_expires_after_a_week(self, world, alice, ruled):
        change = ok(ask(alice, "update-role-policies", **RAISED))
        world.clock.advance(days=7)
        dora = again(world, DORA)
        refused(decide(dora, change), 409, "STATE_CONFLICT")
        assert ok(dora.get("/api/v1/changes", workspace_id=1))[0]["status"] == "EXPIRED"
        services = world.platform.services
        expiry = change_expiry(services.store, world.clock, services.tools.audit)
        assert [expiry(), expiry()] == [1, 0]
        assert world.audit_actions("workspace:1")[-1] == "CHANGE_EXPIRED"
        assert ok(dora.get("/api/v1/changes", workspace_id=1))[0]["status"] == "EXPIRED"


class TestCoolingOff:
    @pytest.fixture
    def ruled(self, alice, dora) -> As:
        ok(rule(alice, hours=24))
        return dora

    def test_p57_what_lets_more_go_waits_and_what_lets_less_go_does_not(self, world, alice, ruled):
        raised = ok(ask(alice, "update-role-policies", **RAISED))
        with world.platform.services.store.write() as db:
            vault = plain_vault("v1")
            vault.is_per_cycle = True
            db.add(vault)
        limit = {"vault_id": "v1", "transaction_limit": "0", "cycle_period": "W", "cycle_day": 1}
        split = ok(ask(alice, "update-vault", **limit, per_cycle=False))
        listed = ok(ask(alice, "add-whitelist-address", name="Shop", address=SHOP))
        off = ok(ask(alice, "update-second-person-rule", is_on=False))
        lower = {"role_id": ADMINISTRATOR, "new_transaction_limit": "1"}
        lowered = ok(ask(alice, "update-role-policies", **RAISED | lower))
        for change in (raised, split, listed, off):
            problem = refused(decide(ruled, change), 409, "STATE_CONFLICT")
            assert "cooling off until 2 March 2026" in problem["detail"]
        ok(decide(ruled, lowered))
        world.clock.advance(hours=24)
        dora = again(world, DORA)
        for change in (raised, listed, off):
            ok(decide(dora, change))
        assert limit_of(dora) == "5.00000000"

    def test_p57_what_lets_no_more_go_when_it_is_asked_for_may_do_so_when_it_is_confirmed(
        self, world, alice, ruled
    ):
        raised = ok(ask(alice, "update-role-policies", **RAISED))
        world.clock.advance(hours=24)
        alice, dora = again(world), again(world, DORA)
        ok(decide(dora, raised))
        sleeping = ok(ask(alice, "update-role-policies", **RAISED))
        ok(decide(dora, ok(ask(alice, "update-role-policies", **RAISED | {"new_transaction_limit": "0.1"}))))
        refused(decide(dora, sleeping), 409, "STATE_CONFLICT")
        assert limit_of(dora) == "0.10000000"

    def test_p57_a_role_is_no_way_around_it(self, world, alice, ruled):
        world.member(1, "third@example.org", "Administrator")
        role = {"name": "Big", "permissions": ["PAYMENT_INIT"], "transaction_limit": "1000"}
        made = ok(ask(alice, "create-role", **role, cycle_period="M", cycle_day=1))
        moved = ok(ask(alice, "change-user-role", user_uuid=2, role_id=SIGNER))
        for change in (made, moved):
            refused(decide(ruled, change), 409, "STATE_CONFLICT")


class TestOwner:
    def test_p58_the_last_one_with_all_seven_stays(self, world, alice):
        """Others hold what the workspace is run with: of all seven, nobody else does."""
        add_someone(world, "Keeper", KEPT)
        refused(remove_permission(alice, ADMINISTRATOR, "VIEW_LOGS"), 409, "LAST_ADMIN")
        refused(alice.post("/api/v1/leave-workspace", {"workspace_id": 1}), 409, "LAST_ADMIN")
        refused(change_role(alice, 1, SIGNER), 409, "LAST_ADMIN")
        world.member(1, DORA, "Administrator")
        ok(remove(alice, 3))
        ok(world.as_user("keeper@example.org").get("/api/v1/get-user-info"))

    def test_p58_one_in_another_workspace_is_no_owner(self, world, alice):
        """Calls that are the owners' ask for the first workspace."""
        ok(create_workspace(alice))
        answer = remove_permission(alice, ADMINISTRATOR, "VIEW_LOGS")
        assert "first workspace" in refused(answer, 409, "LAST_ADMIN")["detail"]
