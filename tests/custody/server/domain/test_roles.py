"""The pure rules of who may change a member's permissions."""

import pytest

from custody.schemas.permissions import PermissionName
from custody.schemas.permissions import PermissionName as P
from custody.server.domain.errors import LastAdmin, PermissionDenied
from custody.server.domain.roles import (
    ADMINISTRATOR,
    EVERY_PERMISSION,
    KEPT,
    PERMISSION_UIDS,
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
def test_a_caller_grants_only_what_they_hold(missing: P) -> None:
    """P26."""
    require_grantable(EVERY_PERMISSION, EVERY_PERMISSION)
    require_grantable(frozenset(), frozenset())
    with pytest.raises(PermissionDenied, match=f"hold: {missing}[.]"):
        require_grantable(EVERY_PERMISSION, EVERY_PERMISSION - {missing})


@pytest.mark.parametrize("missing", list(P))
def test_a_caller_does_not_change_members_with_more_permissions(missing: P) -> None:
    """P26."""
    require_reach(EVERY_PERMISSION - {missing}, EVERY_PERMISSION)
    with pytest.raises(PermissionDenied, match=f"carries {missing}, which"):
        require_reach(EVERY_PERMISSION, EVERY_PERMISSION - {missing})


def test_what_is_missing_is_named_in_one_order() -> None:
    with pytest.raises(PermissionDenied, match=r"hold: MANAGE_ROLE, PAYMENT_INIT, VIEW_LOGS\."):
        require_grantable(frozenset({P.VIEW_LOGS, P.MANAGE_ROLE, P.PAYMENT_INIT}), frozenset())


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

    @pytest.mark.parametrize("permission", [P.PAYMENT_INIT, P.PAYMENT_APPROVE, P.VIEW_BALANCES, P.VIEW_LOGS])
    def test_may_give_up_the_rest(self, permission: P) -> None:
        require_administrators(STAFF, STAFF.with_role(ADMIN, EVERY_PERMISSION - {permission}))

    def test_is_not_the_last_where_there_is_another(self) -> None:
        two = STAFF.with_member(BOB, ADMIN)
        require_administrators(two, two.without(ALICE))
        with pytest.raises(LastAdmin):
            require_administrators(two.without(ALICE), two.without(ALICE).without(BOB))

    def test_may_be_several_who_hold_one_each(self) -> None:
        roles = {number: frozenset({permission}) for number, permission in enumerate(KEPT)}
        spread = Staff(roles, {100 + number: number for number in roles})
        for user in spread.members:
            with pytest.raises(LastAdmin):
                require_administrators(spread, spread.without(user))

    def test_of_a_role_without_members_is_none(self) -> None:
        unheld = Staff(STAFF.roles, {BOB: SIGNING})
        require_administrators(unheld, unheld.with_role(ADMIN, frozenset()))

    def test_what_was_lost_before_stops_no_other_change(self) -> None:
        unheld = Staff(STAFF.roles, {BOB: SIGNING, ALICE: SIGNING})
        require_administrators(unheld, unheld.without(BOB))


def test_every_permission_has_a_uid_of_its_own() -> None:
    assert set(PERMISSION_UIDS) == set(PermissionName)
    assert sorted(PERMISSION_UIDS.values()) == list(range(1, 8))
