"""Random members change roles and members at random: no member gains a permission that was not granted, and
an administrator stays.

The real use cases over a real database. One transaction holds a whole story and is rolled back at its end;
each chapter is a savepoint in it, and so is each step, as each would be a transaction of its own.
"""

from dataclasses import dataclass
from random import Random

import pytest
from sqlalchemy import update
from sqlalchemy.orm import Session

from custody.schemas.call import Call, PermissionName
from custody.schemas.roles import (
    ADD_PERMISSION_TO_ROLE,
    CREATE_ROLE,
    DELETE_ROLE,
    REMOVE_PERMISSION_FROM_ROLE,
    UPDATE_ROLE,
)
from custody.schemas.users import (
    ADD_WORKSPACE_TO_USER,
    CHANGE_USER_ROLE,
    LEAVE_WORKSPACE,
    REMOVE_USER_FROM_WORKSPACE,
)
from custody.server.calls import Ctx, make
from custody.server.errors import CustodyError, LastAdmin, Unauthenticated
from custody.server.people.organisations import found_workspace
from custody.server.people.people import enter
from custody.server.people.staff import staff_of, store_role
from custody.server.rules.credentials import Caller
from custody.server.rules.roles import EVERY_PERMISSION, Permissions, RoleTemplate, Staff
from custody.server.store.models import MembershipRow, WorkspaceRow
from multisig import Network, Sats
from tests.support.databases import undone
from tests.support.examples import drawn
from tests.support.platform import World, open_world

WORKSPACE, CHAPTERS, STEPS = 1, 15, 20
# 1 to 5 begin each chapter in roles that it draws; 6 is a colleague without a place.
USERS = range(1, 7)
NOTHING: Permissions = frozenset()
# No member could grant these once no member holds them.
KEPT = (PermissionName.MANAGE_WORKSPACE, PermissionName.MANAGE_ROLE, PermissionName.MANAGE_USERS)
ROLE = {"role_id": "role"}
CHANGED = ROLE | {"rule_name": "permission"}
MADE = {"name": "name", "permissions": "some", "transaction_limit": "1", "cycle_period": "M", "cycle_day": 1}
PLACE = {"role_uid": "role", "creator_workspace_id": WORKSPACE, "creator_org_uuid": 1}
# Each call, and its fields: what is drawn, or a value.
ACTS: tuple[tuple[Call, dict[str, object]], ...] = (
    (ADD_PERMISSION_TO_ROLE, CHANGED),
    (REMOVE_PERMISSION_FROM_ROLE, CHANGED),
    (CREATE_ROLE, MADE),
    (UPDATE_ROLE, ROLE | {"name": "name"}),
    (DELETE_ROLE, ROLE),
    (CHANGE_USER_ROLE, {"user_uuid": "other"} | ROLE),
    (REMOVE_USER_FROM_WORKSPACE, {"user_uuid": "other"}),
    (LEAVE_WORKSPACE, {}),
    (ADD_WORKSPACE_TO_USER, {"user_uuid": "other"} | PLACE),
)


@dataclass
class Story:
    """What each step may bring about is said without the rules' own functions: by comparing who held what."""

    world: World
    callers: dict[int, Caller]
    db: Session
    chance: Random
    # A role of another workspace.
    foreign: int = 0

    def begin(self) -> None:
        ctx = Ctx(self.world.platform.services, self.callers[1], self.db)
        other, role = found_workspace(ctx, 1, name="Other", description="", chain=Network.REGTEST)
        self.foreign = role.id
        self.move(6, other, NOTHING)

    def chapter(self) -> None:
        """Written without the rules, which must hold from any state: the first may own the workspace, and
        others may lack one permission alone.
        """
        with self.db.begin_nested() as chapter:
            for user_id in range(1, 6):
                all_but_one = EVERY_PERMISSION - {self.permission()}
                places = (all_but_one, EVERY_PERMISSION - self.some(), self.some(), NOTHING)
                place = self.chance.choice((*places, *[EVERY_PERMISSION] * (4 if user_id == 1 else 0)))
                self.move(user_id, self.db.get_one(WorkspaceRow, WORKSPACE), place)
            for _ in range(STEPS):
                self.step()
            chapter.rollback()
        self.db.expire_all()

    def permission(self, *more: PermissionName) -> PermissionName:
        return self.chance.choice((*KEPT, *more, self.chance.choice(list(PermissionName))))

    def some(self) -> Permissions:
        return frozenset(self.chance.sample(list(PermissionName), self.chance.randrange(6)))

    def move(self, user_id: int, to: WorkspaceRow, permissions: Permissions) -> None:
        template = RoleTemplate(f"Role of {user_id}", "", permissions, Sats(0))
        role = store_role(self.db, self.world.clock(), to.id, template)
        place = {"workspace_id": to.id, "role_id": role.id}
        self.db.execute(update(MembershipRow).where(MembershipRow.user_id == user_id).values(place))

    def step(self) -> None:
        """One call, let in as the table says. Whatever comes of it, what changed was the caller's to
        change. What the caller lacks is drawn more often.
        """
        call, fields = self.chance.choice(ACTS)
        user_id, before = self.chance.choice(USERS), self.staff()
        lacking = tuple(sorted(EVERY_PERMISSION - held_by(before, user_id)))
        near = [before.members.get(user_id, self.foreign)] * 3 + [*before.members.values()]
        drawn_now = {
            "role": self.chance.choice((*near, *before.roles, self.foreign)),
            "other": self.chance.choice((*USERS, 6)),
            "permission": self.permission(*lacking),
            "name": self.chance.choice("ABCD"),
            "some": tuple(self.some() | frozenset(lacking[: self.chance.randrange(2)])),
        }
        named = {field: drawn_now.get(value, value) for field, value in fields.items()}
        caller = self.callers[user_id]
        try:
            with self.db.begin_nested():
                services = self.world.platform.services
                access = enter(self.db, caller, WORKSPACE, call.permissions, self.world.clock())
                request = call.takes(workspace_id=WORKSPACE, **named)
                make(Ctx(services, caller, self.db, access), call, request)
        except Unauthenticated:
            # A property of refusals alone would hold whatever the rules say.
            raise
        except CustodyError as error:
            self.db.expire_all()
            if isinstance(error, LastAdmin) and call is LEAVE_WORKSPACE:
                assert what_went(before, before.without(user_id)), "nobody else goes without them"
            assert self.staff() == before, "what was refused changed something"
        else:
            check_change(user_id, before, self.staff())
            named_role = before.roles.get(named.get("role_id"), NOTHING)
            assert named_role <= held_by(before, user_id), "a role was changed, or given, from below"

    def staff(self) -> Staff:
        return staff_of(self.db, WORKSPACE)


def signed_in(world: World, number: int) -> Caller:
    person = world.as_user(f"user{number}@example.org")
    return world.caller(person.headers["Authorization"].removeprefix("Bearer "))


@pytest.mark.parametrize("salt", drawn(range(1_000), 20, of="staff"))
def test_p26_p27_whoever_changes_roles_and_members(tmp_path, salt):
    with open_world(tmp_path / "state") as world:
        world.organisation("Acme", "user1@example.org")
        for number in range(2, 7):
            world.member(WORKSPACE, f"user{number}@example.org")
        callers = {number: signed_in(world, number) for number in USERS}
        with undone(world.platform.services.store) as db:
            story = Story(world, callers, db, Random(salt))
            story.begin()
            for _ in range(CHAPTERS):
                story.chapter()


def check_change(user_id: int, before: Staff, after: Staff) -> None:
    """P26 and P27, for a call that succeeded."""
    assert not what_went(before, after)
    own = held_by(before, user_id)
    for role_id in after.roles:
        gained = after.roles[role_id] - before.roles.get(role_id, NOTHING)
        assert gained <= own, f"role {role_id} was given {gained} by somebody who holds {own}"
    for member in after.members:
        gained = held_by(after, member) - held_by(before, member)
        assert gained <= own, f"user {member} was given {gained} by somebody who holds {own}"
    for role_id in before.roles:
        if before.roles[role_id] != after.roles.get(role_id):
            assert before.roles[role_id] <= own, f"role {role_id} was changed from below"
    for member in before.members:
        if member != user_id and before.members[member] != after.members.get(member):
            assert held_by(before, member) <= own, f"user {member} was moved from below"


def held_by(staff: Staff, user_id: int) -> Permissions:
    role_id = staff.members.get(user_id)
    return NOTHING if role_id is None else staff.roles[role_id]


def what_went(before: Staff, after: Staff) -> list[str]:
    """Of what a workspace keeps, once it has it."""
    was, now = ([staff.roles[role_id] for role_id in staff.members.values()] for staff in (before, after))
    gone = NOTHING.union(*was).intersection(KEPT) - NOTHING.union(*now)
    return [*gone, *(["an owner"] if EVERY_PERMISSION in was and EVERY_PERMISSION not in now else [])]
