"""Random members change roles and members at random: no member gains a permission that was not granted, and
an administrator stays.

The real use cases over a real database. One transaction holds a whole story and is rolled back at its end;
each step is a savepoint in it, as each would be a transaction of its own.
"""

from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule
from sqlalchemy import update

from custody.schemas.call import Call, PermissionName
from custody.schemas.roles import (
    ADD_PERMISSION_TO_ROLE,
    CREATE_ROLE,
    DELETE_ROLE,
    REMOVE_PERMISSION_FROM_ROLE,
    AddPermissionRequest,
    CreateRoleRequest,
    RemovePermissionRequest,
    RoleRequest,
)
from custody.schemas.users import (
    ADD_WORKSPACE_TO_USER,
    CHANGE_USER_ROLE,
    LEAVE_WORKSPACE,
    REMOVE_USER_FROM_WORKSPACE,
    AddWorkspaceToUserRequest,
    ChangeUserRoleRequest,
    LeaveWorkspaceRequest,
    RemoveUserRequest,
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
from tests.support.examples import examples
from tests.support.platform import open_world

WORKSPACE = 1
# User 1 administers, and acts more often; 2 to 5 start in roles that the story draws; 6 is a colleague
# without a place.
USERS = st.integers(1, 6)
CALLERS = st.sampled_from((1, 1, 1, 2, 3, 4, 5, 6))
# 1 and 2 are the first roles, 5 to 8 the drawn ones, then those that the story makes. 3 is another
# workspace's.
ROLES = st.sampled_from((1, 2, 5, 6, 7, 8, 10, 11, 3))
PERMISSIONS = st.sampled_from(PermissionName)
CARRIED = st.frozensets(PERMISSIONS)
PLACES = st.one_of(CARRIED, CARRIED.map(lambda missing: EVERY_PERMISSION - missing))
NOTHING: Permissions = frozenset()


class Workplace(RuleBasedStateMachine):
    """What each step may bring about is said without the rules' own functions: by comparing who held what."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = TemporaryDirectory()
        self.opened = open_world(Path(self.folder.name))
        self.world = self.opened.__enter__()
        self.world.organisation("Acme", "user1@example.org")
        for number in range(2, 7):
            self.world.member(WORKSPACE, f"user{number}@example.org")
        self.callers = {number: self.signed_in(number) for number in range(1, 7)}
        self.writing = self.world.platform.services.store.write()
        self.db = self.writing.__enter__()

    def teardown(self) -> None:
        with suppress(_RolledBack):
            self.writing.__exit__(_RolledBack, _RolledBack(), None)
        self.opened.__exit__(None, None, None)
        self.folder.cleanup()

    @initialize(places=st.lists(PLACES, min_size=4, max_size=4))
    def draw_roles(self, places: list[Permissions]) -> None:
        """Written without the rules, which must hold from any state."""
        ctx = Ctx(self.world.platform.services, self.callers[1], self.db)
        other, _ = found_workspace(ctx, 1, name="Other", description="", chain=Network.REGTEST)
        for user_id, permissions in enumerate(places, start=2):
            self.move(user_id, self.db.get_one(WorkspaceRow, WORKSPACE), permissions)
        self.move(6, other, NOTHING)

    def move(self, user_id: int, to: WorkspaceRow, permissions: Permissions) -> None:
        template = RoleTemplate(f"Role of {user_id}", "", permissions, Sats(0))
        role = store_role(self.db, self.world.clock(), to.id, template)
        place = {"workspace_id": to.id, "role_id": role.id}
        self.db.execute(update(MembershipRow).where(MembershipRow.user_id == user_id).values(place))

    def signed_in(self, number: int) -> Caller:
        person = self.world.as_user(f"user{number}@example.org")
        return self.world.caller(person.headers["Authorization"].removeprefix("Bearer "))

    def staff(self) -> Staff:
        return staff_of(self.db, WORKSPACE)

    def attempt(self, user_id: int, call: Call, request: object) -> None:
        """One call, let in as the table says. Whatever comes of it, what changed was the caller's to
        change.
        """
        before, caller = self.staff(), self.callers[user_id]
        try:
            with self.db.begin_nested():
                services = self.world.platform.services
                access = enter(self.db, caller, WORKSPACE, call.permissions, self.world.clock())
                make(Ctx(services, caller, self.db, access), call, request)
        except Unauthenticated:
            # A property of refusals alone would hold whatever the rules say.
            raise
        except CustodyError:
            self.db.expire_all()
            assert self.staff() == before, "what was refused changed something"
        else:
            check_change(user_id, before, self.staff())

    @rule(user=CALLERS, role=ROLES, permission=PERMISSIONS)
    def add_permission(self, user: int, role: int, permission: PermissionName) -> None:
        request = AddPermissionRequest(role_id=role, workspace_id=WORKSPACE, rule_name=permission)
        self.attempt(user, ADD_PERMISSION_TO_ROLE, request)

    @rule(user=CALLERS, role=ROLES, permission=PERMISSIONS)
    def remove_permission(self, user: int, role: int, permission: PermissionName) -> None:
        request = RemovePermissionRequest(role_id=role, workspace_id=WORKSPACE, rule_name=permission)
        self.attempt(user, REMOVE_PERMISSION_FROM_ROLE, request)

    @rule(user=CALLERS, name=st.sampled_from("ABCD"), permissions=CARRIED)
    def create_role(self, user: int, name: str, permissions: Permissions) -> None:
        request = CreateRoleRequest(
            workspace_id=WORKSPACE,
            name=name,
            permissions=tuple(permissions),
            transaction_limit="1",
            cycle_period="M",
            cycle_day=1,
        )
        self.attempt(user, CREATE_ROLE, request)

    @rule(user=CALLERS, role=ROLES)
    def delete_role(self, user: int, role: int) -> None:
        request = RoleRequest(workspace_id=WORKSPACE, role_id=role)
        self.attempt(user, DELETE_ROLE, request)

    @rule(user=CALLERS, other=USERS, role=ROLES)
    def change_role(self, user: int, other: int, role: int) -> None:
        request = ChangeUserRoleRequest(workspace_id=WORKSPACE, user_uuid=other, role_id=role)
        self.attempt(user, CHANGE_USER_ROLE, request)

    @rule(user=CALLERS, other=USERS)
    def remove_member(self, user: int, other: int) -> None:
        request = RemoveUserRequest(workspace_id=WORKSPACE, user_uuid=other)
        self.attempt(user, REMOVE_USER_FROM_WORKSPACE, request)

    @rule(user=CALLERS)
    def leave(self, user: int) -> None:
        self.attempt(user, LEAVE_WORKSPACE, LeaveWorkspaceRequest(workspace_id=WORKSPACE))

    @rule(user=CALLERS, other=USERS, role=ROLES)
    def add_member(self, user: int, other: int, role: int) -> None:
        request = AddWorkspaceToUserRequest(
            workspace_id=WORKSPACE,
            user_uuid=other,
            role_uid=role,
            creator_workspace_id=WORKSPACE,
            creator_org_uuid=1,
        )
        self.attempt(user, ADD_WORKSPACE_TO_USER, request)

    @invariant()
    def somebody_administers(self) -> None:
        """P27."""
        assert self.staff().held.issuperset(KEPT)


class _RolledBack(Exception):
    pass


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


TestWorkplace = Workplace.TestCase
TestWorkplace.settings = settings(
    max_examples=examples(12), stateful_step_count=40, suppress_health_check=list(HealthCheck)
)
