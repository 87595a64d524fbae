"""Random members change roles and members at random: no member gains a permission that was not granted, and
an administrator stays.

The real use cases over a real database. One transaction holds a whole story and is rolled back at its end;
each step is a savepoint in it, as each would be a transaction of its own.
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
)
from custody.schemas.users import (
    ADD_WORKSPACE_TO_USER,
    CHANGE_USER_ROLE,
    LEAVE_WORKSPACE,
    REMOVE_USER_FROM_WORKSPACE,
)
from custody.server.calls import Ctx, make
from custody.server.errors import CustodyError, Unauthenticated
from custody.server.people.organisations import found_workspace
from custody.server.people.people import enter
from custody.server.people.staff import staff_of, store_role
from custody.server.rules.credentials import Caller
from custody.server.rules.roles import EVERY_PERMISSION, KEPT, Permissions, RoleTemplate, Staff
from custody.server.store.models import MembershipRow, WorkspaceRow
from multisig import Network, Sats
from tests.support.databases import undone
from tests.support.examples import drawn
from tests.support.platform import World, open_world

WORKSPACE, STEPS = 1, 200
# User 1 administers, and acts more often; 2 to 5 start in roles that the story draws; 6 is a colleague
# without a place.
USERS, CALLERS = range(1, 7), (1, 1, 1, 2, 3, 4, 5, 6)
# 1 and 2 are the first roles, 5 to 8 the drawn ones, then those that the story makes. 3 is another
# workspace's.
ROLES = (1, 1, 1, 2, 5, 6, 7, 8, 10, 11, 3)
NOTHING: Permissions = frozenset()
ROLE = {"role_id": "role"}
CHANGED = ROLE | {"rule_name": "permission"}
MADE = {"name": "name", "permissions": "some", "transaction_limit": "1", "cycle_period": "M", "cycle_day": 1}
PLACE = {"role_uid": "role", "creator_workspace_id": WORKSPACE, "creator_org_uuid": 1}
# Each call, and its fields: what is drawn, or a value.
ACTS: tuple[tuple[Call, dict[str, object]], ...] = (
    (ADD_PERMISSION_TO_ROLE, CHANGED),
    (REMOVE_PERMISSION_FROM_ROLE, CHANGED),
    (CREATE_ROLE, MADE),
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

    def begin(self) -> None:
        """Written without the rules, which must hold from any state."""
        ctx = Ctx(self.world.platform.services, self.callers[1], self.db)
        other, _ = found_workspace(ctx, 1, name="Other", description="", chain=Network.REGTEST)
        for user_id in range(2, 6):
            place = self.chance.choice((NOTHING, self.some(), EVERY_PERMISSION - self.some()))
            self.move(user_id, self.db.get_one(WorkspaceRow, WORKSPACE), place)
        self.move(6, other, NOTHING)

    def some(self) -> Permissions:
        return frozenset(self.chance.sample(list(PermissionName), self.chance.randrange(6)))

    def move(self, user_id: int, to: WorkspaceRow, permissions: Permissions) -> None:
        template = RoleTemplate(f"Role of {user_id}", "", permissions, Sats(0))
        role = store_role(self.db, self.world.clock(), to.id, template)
        place = {"workspace_id": to.id, "role_id": role.id}
        self.db.execute(update(MembershipRow).where(MembershipRow.user_id == user_id).values(place))

    def step(self) -> None:
        """One call, let in as the table says. Whatever comes of it, what changed was the caller's to
        change.
        """
        call, fields = self.chance.choice(ACTS)
        drawn_now = {
            "role": self.chance.choice(ROLES),
            "other": self.chance.choice(USERS),
            "permission": self.chance.choice((*KEPT, self.chance.choice(list(PermissionName)))),
            "name": self.chance.choice("ABCD"),
            "some": tuple(self.some()),
        }
        named = {field: drawn_now.get(value, value) for field, value in fields.items()}
        user_id, before = self.chance.choice(CALLERS), self.staff()
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
        except CustodyError:
            self.db.expire_all()
            assert self.staff() == before, "what was refused changed something"
        else:
            check_change(user_id, before, self.staff())
        assert self.staff().held.issuperset(KEPT), "P27: somebody administers"

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
            for _ in range(STEPS):
                story.step()


def check_change(user_id: int, before: Staff, after: Staff) -> None:
    """P26, for a call that succeeded."""
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
