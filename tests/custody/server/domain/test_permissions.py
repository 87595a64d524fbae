"""The permission table."""

from custody.schemas.users import PermissionName
from custody.server.domain.permissions import (
    ADMINISTRATOR,
    FIRST_ROLES,
    PERMISSION_UIDS,
    SIGNER,
    permissions_not_held,
)


def test_every_permission_has_a_uid_of_its_own() -> None:
    assert set(PERMISSION_UIDS) == set(PermissionName)
    assert sorted(PERMISSION_UIDS.values()) == list(range(1, 8))


def test_the_administrator_holds_all_seven() -> None:
    assert ADMINISTRATOR.permissions == frozenset(PermissionName)
    assert SIGNER.permissions < ADMINISTRATOR.permissions
    assert len({role.name for role in FIRST_ROLES}) == len(FIRST_ROLES)


def test_what_is_not_held_cannot_be_granted() -> None:
    """P26."""
    assert permissions_not_held(SIGNER.permissions, ADMINISTRATOR.permissions) == frozenset()
    assert permissions_not_held(ADMINISTRATOR.permissions, SIGNER.permissions) == (
        ADMINISTRATOR.permissions - SIGNER.permissions
    )
