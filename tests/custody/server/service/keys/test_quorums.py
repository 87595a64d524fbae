"""Which vaults keep too few signers: by a key, a membership or a role."""

import pytest
from sqlalchemy import select

from custody.server.service.keys.quorums import vaults_left_short
from custody.server.store.models import Key, Membership, Role, RolePermission
from tests.support.custody import ok


def left_short(desk, **loss) -> list[str]:
    with desk.world.platform.services.store.read() as db:
        return sorted(vault.name for vault in vaults_left_short(db, **loss))


def key_of(desk, name: str) -> str:
    return next(
        signer["key_id"] for signer in desk.vault["signers"] if signer["user_id"] == str(desk.user_ids[name])
    )


def membership_of(desk, name: str) -> int:
    with desk.world.platform.services.store.read() as db:
        return db.scalars(select(Membership.id).where(Membership.user_id == desk.user_ids[name])).one()


def revoke(desk, name: str, reason: str = "superseded") -> None:
    with desk.world.platform.services.store.write() as db:
        key = db.get_one(Key, key_of(desk, name))
        key.status, key.revoked_reason = "revoked", reason


@pytest.fixture
def strict(desk):
    """Beside the vault of two in three, one that needs all three."""
    ok(desk.create_vault("Reserve", m=3))
    return desk


def test_two_of_three_keep_a_quorum_without_one(desk):
    assert left_short(desk, without_key=key_of(desk, "alice")) == []
    assert left_short(desk, without_member=membership_of(desk, "alice")) == []


@pytest.mark.parametrize("name", ["alice", "bob", "carol"])
def test_a_vault_that_needs_all_is_named(strict, name):
    assert left_short(strict, without_member=membership_of(strict, name)) == ["Reserve"]


def test_a_key_counts_like_its_holder(strict):
    assert left_short(strict, without_key=key_of(strict, "bob")) == ["Reserve"]


def test_a_role_that_loses_the_permission_takes_all_who_hold_it(strict):
    with strict.world.platform.services.store.read() as db:
        role = db.scalars(select(Role.id).where(Role.name == "Signer")).one()
    assert left_short(strict, without_role=role) == ["Reserve", "Treasury"]


def test_who_cannot_sign_any_more_does_not_count(desk):
    revoke(desk, "carol")
    assert left_short(desk, without_key=key_of(desk, "bob")) == ["Treasury"]


def test_who_may_not_approve_does_not_count(desk):
    with desk.world.platform.services.store.write() as db:
        watcher = Role(
            workspace_id=desk.workspace_id,
            name="Watcher",
            description="",
            limit_sats=0,
            cycle_period="M",
            cycle_day=1,
            created_at=desk.world.clock(),
            updated_at=desk.world.clock(),
        )
        db.add(watcher)
        db.flush()
        db.add(RolePermission(role_id=watcher.id, permission="VIEW_BALANCES"))
        db.get_one(Membership, membership_of(desk, "carol")).role_id = watcher.id
    assert left_short(desk, without_key=key_of(desk, "bob")) == ["Treasury"]


def test_what_is_short_already_and_loses_nobody_is_not_named(strict):
    revoke(strict, "carol", "lost")
    assert left_short(strict, without_key=key_of(strict, "carol")) == []
    assert left_short(strict, without_key=key_of(strict, "alice")) == ["Reserve", "Treasury"]


def test_who_can_still_move_the_coins_on_counts_where_nobody_else_is_left(desk):
    """All have new devices: the old vault's coins leave by two superseded keys or not at all."""
    for name in ("alice", "bob", "carol"):
        revoke(desk, name)
    assert left_short(desk, without_member=membership_of(desk, "alice")) == []
    revoke(desk, "carol", "lost")
    assert left_short(desk, without_member=membership_of(desk, "alice")) == ["Treasury"]
    assert left_short(desk, without_key=key_of(desk, "bob")) == ["Treasury"]
    with desk.world.platform.services.store.read() as db:
        role = db.scalars(select(Role.id).where(Role.name == "Signer")).one()
    assert left_short(desk, without_role=role) == ["Treasury"]


def test_nothing_lost_leaves_nothing_short(strict):
    assert left_short(strict) == []
