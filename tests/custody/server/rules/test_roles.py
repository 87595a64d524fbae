"""The pure rules of who may change a member's permissions."""

import pytest

from custody.schemas.call import PermissionName as P
from custody.server.errors import LastAdmin, PermissionDenied
from custody.server.rules.roles import (
    ADMINISTRATOR,
    EVERY_PERMISSION,
    KEPT,
    SIGNER,
    Staff,
    require_administrators,
    require_grantable,
    require_reach,
)

ADMIN, SIGNING, EMPTY = 1, 2, 3
ALICE, BOB = 10, 11
STAFF = Staff(
    roles={ADMIN: ADMINISTRATOR.permissions, SIGNING: SIGNER.permissions, EMPTY: frozenset()},
    members={ALICE: ADMIN, BOB: SIGNING},
)


@pytest.mark.parametrize("missing", list(P))
def test_p26_a_caller_grants_what_they_hold_and_changes_nobody_who_holds_more(missing: P) -> None:
    less = EVERY_PERMISSION - {missing}
    require_grantable(EVERY_PERMISSION, EVERY_PERMISSION)
    require_grantable(frozenset(), frozenset())
    with pytest.raises(PermissionDenied, match=f"hold: {missing}[.]"):
        require_grantable(EVERY_PERMISSION, less)
    require_reach(less, EVERY_PERMISSION)
    with pytest.raises(PermissionDenied, match=f"carries {missing}, which"):
        require_reach(EVERY_PERMISSION, less)


class TestTheLastAdministrator:
    """P27."""

    def test_stays(self) -> None:
        with pytest.raises(LastAdmin, match="MANAGE_ROLE, MANAGE_USERS, MANAGE_WORKSPACE"):
            require_administrators(STAFF, STAFF.without(ALICE))
        with pytest.raises(LastAdmin):
            require_administrators(STAFF, STAFF.with_member(ALICE, SIGNING))

    @pytest.mark.parametrize("permission", KEPT)
    def test_keeps_what_another_could_not_give(self, permission: P) -> None:
        with pytest.raises(LastAdmin, match=f"hold {permission} any more"):
            require_administrators(STAFF, STAFF.with_role(ADMIN, EVERY_PERMISSION - {permission}))

    def test_may_be_several_who_hold_one_each(self) -> None:
        roles = {number: frozenset({permission}) for number, permission in enumerate(KEPT)}
        spread = Staff(roles, {100 + number: number for number in roles})
        for user in spread.members:
            with pytest.raises(LastAdmin):
                require_administrators(spread, spread.without(user))

    def test_what_was_lost_before_stops_no_other_change(self) -> None:
        unheld = Staff(STAFF.roles, {BOB: SIGNING, ALICE: SIGNING})
        require_administrators(unheld, unheld.without(BOB))
