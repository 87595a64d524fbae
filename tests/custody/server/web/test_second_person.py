"""Two people for policy (P56), cooling off (P57), and the last owner of an organisation (P58)."""

from dataclasses import dataclass, field
from random import Random

import pytest
from sqlalchemy import select
from sqlalchemy.orm import Session

from custody.schemas.call import PermissionName
from custody.server.rules.roles import EVERY_PERMISSION
from custody.server.second_person import changes
from custody.server.second_person.changes import change_expiry
from custody.server.store.models import MembershipRow, RolePermissionRow, RoleRow, SecondPersonRuleRow
from tests.support import two_people
from tests.support.custody import SHOP, ok, refused
from tests.support.examples import drawn
from tests.support.platform import As, World, plain_vault
from tests.support.staff import (
    add_role,
    add_someone,
    create_workspace,
    remove_permission,
    roles,
)
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
            assert "cooling off until 2 Mar 2026" in problem["detail"]
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
    def test_p58_one_in_another_workspace_is_no_owner(self, world, alice):
        """Calls that are the owners' ask for the first workspace."""
        ok(create_workspace(alice))
        answer = remove_permission(alice, ADMINISTRATOR, "VIEW_LOGS")
        assert "first workspace" in refused(answer, 409, "LAST_ADMIN")["detail"]


BOARD = 3
ROLES = (ADMINISTRATOR, ADMINISTRATOR, SIGNER, BOARD)
MONTHLY = {"cycle_period": ("M",), "cycle_day": (1,)}
# What a life asks for, and the values of each field.
DRAWN: tuple[tuple[str, dict[str, tuple]], ...] = (
    ("update-role", {"role_id": ROLES, "name": ("Owners", "Partners", "Desk")}),
    ("update-role", {"role_id": ROLES, "name": ("Owners", "Partners", "Desk")}),
    ("create-role", {"name": ("Owners", "Desk"), "transaction_limit": ("0",)} | MONTHLY),
    ("delete-role", {"role_id": ROLES}),
    ("add-perm-to-role", {"role_id": ROLES, "rule_name": ("VIEW_LOGS", "MANAGE_ROLE")}),
    ("remove-perm-from-role", {"role_id": ROLES, "rule_name": ("VIEW_LOGS", "MANAGE_ROLE")}),
    ("update-role-policies", {"role_id": ROLES, "new_transaction_limit": ("1", "5")} | MONTHLY),
    ("change-user-role", {"user_uuid": (1, 2, 3, 4), "role_id": ROLES}),
    ("remove-user-from-workspace", {"user_uuid": (2, 3, 4)}),
    ("update-second-person-rule", {"is_on": (True,), "confirming_role_id": ROLES, "cooling_off_hours": (0,)}),
)


@dataclass(frozen=True)
class Staff:
    """Who holds which role; what each role is called, carries and allows; and which one confirms."""

    members: dict[int, int]
    names: dict[int, str]
    carry: dict[int, set[str]]
    limits: dict[int, int]
    confirms: int

    @classmethod
    def of(cls, db: Session) -> "Staff":
        held, permissions = db.scalars(select(RoleRow)).all(), db.scalars(select(RolePermissionRow)).all()
        return cls(
            {each.user_id: each.role_id for each in db.scalars(select(MembershipRow))},
            {role.id: role.name for role in held},
            {role.id: {each.permission for each in permissions if each.role_id == role.id} for role in held},
            {role.id: role.limit_sats for role in held},
            db.scalars(select(SecondPersonRuleRow)).one().confirming_role_id,
        )

    def supports(self, body: dict) -> tuple:
        """What a change rests on. What a role is called is none of that, but for a name that is taken."""
        others = [name for role_id, name in self.names.items() if role_id != body.get("role_id")]
        return self.members, self.carry, self.limits, self.confirms, body.get("name") in others

    def stands_after(self, path: str, body: dict) -> bool:
        """Whether two members have the role that confirms then, and one has every permission."""
        members, carry = dict(self.members), dict(self.carry)
        if "user_uuid" in body:
            members[body["user_uuid"]] = body.get("role_id", 0)
        if path == "remove-perm-from-role":
            carry[body["role_id"]] = carry[body["role_id"]] - {body["rule_name"]}
        confirms = body.get("confirming_role_id", self.confirms)
        has_owner = any(carry.get(role_id, set()) >= EVERY_PERMISSION for role_id in members.values())
        return has_owner and [*members.values()].count(confirms) >= 2


@dataclass
class Life:
    """Changes that are asked for and decided later. What was accepted when it was asked for is accepted when
    it is confirmed, unless something has changed since that it rests on.
    """

    world: World
    people: dict[int, As]
    chance: Random
    asked: dict[str, tuple[int, dict, tuple]] = field(default_factory=dict)

    def step(self) -> None:
        # The calls of a minute are bounded.
        self.world.clock.advance(seconds=10)
        with self.world.platform.services.store.read() as db:
            staff = Staff.of(db)
        assert staff.stands_after("", {})
        person = self.chance.choice([*staff.members])
        listed = ok(self.people[person].get("/api/v1/changes", workspace_id=1))
        seen = {each["change_id"]: each for each in listed if each["status"] == "PENDING"}
        confirms = staff.members[person] == staff.confirms
        assert seen.keys() == {each for each, (by, *_) in self.asked.items() if confirms or by == person}
        for each in seen.values():
            for name in each["body"].keys() & {"role_id", "confirming_role_id"}:
                assert each["names"].get(name) == staff.names.get(each["body"][name])
        if self.asked and self.chance.random() < 0.6:
            change_id = self.chance.choice([*self.asked])
            self.decide(person, confirms, seen.get(change_id, {"change_id": change_id}), staff)
        elif self.chance.random() < 0.05:
            answer = self.people[person].post("/api/v1/leave-workspace", {"workspace_id": 1})
            assert (answer.status_code == 200) is staff.stands_after("", {"user_uuid": person}), answer.text
        else:
            self.ask(person, staff)

    def ask(self, person: int, staff: Staff) -> None:
        path, fields = self.chance.choice(DRAWN)
        body = {name: self.chance.choice(values) for name, values in fields.items()}
        answer = ask(self.people[person], path, **body)
        assert answer.status_code in {200, 403, 404, 409}, answer.text
        if answer.status_code == 200 or answer.json()["code"] == "LAST_ADMIN":
            assert (answer.status_code == 200) is staff.stands_after(path, body), answer.text
        if answer.status_code == 200:
            self.asked[answer.json()["change_id"]] = person, body, staff.supports(body)

    def decide(self, person: int, confirms: bool, change: dict, staff: Staff) -> None:
        asker, body, rested_on = self.asked[change["change_id"]]
        word = self.chance.choice(["confirm", "confirm", "confirm", "decline"])
        read = {"in_force": change["in_force"]} if "in_force" in change and word == "confirm" else {}
        answer = decide(self.people[person], change, word, **read)
        if word == "decline" and (confirms or person == asker):
            assert (ok(answer)["status"], answer.json()["decided_by"]) == ("DECLINED", str(person))
        elif word == "decline" or not confirms or person == asker:
            refused(answer, 403, "PERMISSION_DENIED")
        elif staff.supports(body) == rested_on:
            ok(answer)
        assert answer.status_code in {200, 403, 404, 409}, answer.text
        if answer.status_code == 200:
            del self.asked[change["change_id"]]


@pytest.mark.parametrize("salt", drawn(range(1_000), 12, of=__name__))
def test_p56_p106_what_was_accepted_is_confirmed_while_it_rests_on_the_same(world, alice, dora, bob, salt):
    assert add_role(world, "Board", EVERY_PERMISSION) == BOARD
    life = Life(world, {1: alice, 2: dora, 3: bob}, Random(salt))
    world.member(1, "third@example.org", life.chance.choice(["Administrator", "Signer"]))
    life.people[4] = world.as_user("third@example.org")
    ok(rule(alice))
    for _ in range(40):
        life.step()
