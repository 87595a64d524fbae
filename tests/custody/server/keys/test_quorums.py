"""Which vaults keep too few signers: by a key, a membership or a role."""

import pytest
from sqlalchemy import false, or_, select

from custody.schemas.call import PermissionName
from custody.server.keys.quorums import approver, vaults_left_short
from custody.server.store.models import KeyRow, MembershipRow, RoleRow, TokenCellRow, VaultRow, VaultSignerRow
from custody.server.vaults.stored import address_script
from multisig.tokens.machine import Cell
from tests.support.custody import SIGNERS, ok
from tests.support.staff import add_role

LOST = {
    "without_key": VaultSignerRow.key_id,
    "without_member": MembershipRow.id,
    "without_role": MembershipRow.role_id,
}


def left_short(desk, **loss) -> list[str]:
    lost = or_(false(), *(LOST[name] == value for name, value in loss.items()))
    with desk.store.read() as db:
        return sorted(vault.name for vault in vaults_left_short(db, lost))


def key_of(desk, name: str) -> str:
    return next(
        signer["key_id"] for signer in desk.vault["signers"] if signer["user_id"] == str(desk.user_ids[name])
    )


def membership_of(desk, name: str) -> int:
    (membership,) = desk.rows(MembershipRow, MembershipRow.user_id == desk.user_ids[name])
    return membership.id


def signer_role(desk) -> int:
    (role,) = desk.rows(RoleRow, RoleRow.name == "Signer", RoleRow.workspace_id == desk.workspace_id)
    return role.id


def revoke(desk, name: str, reason: str = "superseded") -> None:
    with desk.store.write() as db:
        key = db.get_one(KeyRow, key_of(desk, name))
        key.status, key.revoked_reason = "revoked", reason


@pytest.fixture
def strict(desk):
    """Beside the vault of two in three, one that needs all three."""
    ok(desk.create_vault("Reserve", m=3))
    return desk


def test_the_right_to_approve_is_of_one_workspace(desk):
    body = {"workspace_id": desk.workspace_id, "org_id": 1, "name": "Second", "network": "testnet"}
    second = ok(desk.admin.post("/api/v1/create-workspace", body))
    bob = desk.user_ids["bob"]
    with desk.world.platform.services.store.read() as db:
        assert db.scalars(approver(desk.workspace_id, bob)).all() == [bob]
        assert db.scalars(approver(second["WorkspaceInfo"]["uid"], bob)).all() == []


def test_a_vault_that_needs_all_is_named_and_one_of_two_in_three_is_not(strict):
    assert left_short(strict) == []
    for name in SIGNERS:
        assert left_short(strict, without_member=membership_of(strict, name)) == ["Reserve"]
        assert left_short(strict, without_key=key_of(strict, name)) == ["Reserve"]
    assert left_short(strict, without_role=signer_role(strict)) == ["Reserve", "Treasury"]


def test_who_may_not_approve_does_not_count(desk):
    watcher = add_role(desk.world, "Watcher", {PermissionName.VIEW_BALANCES})
    with desk.store.write() as db:
        db.get_one(MembershipRow, membership_of(desk, "carol")).role_id = watcher
    assert left_short(desk, without_key=key_of(desk, "bob")) == ["Treasury"]


def test_a_vault_short_already_that_loses_no_signer_is_not_named(strict):
    revoke(strict, "carol", "lost")
    assert left_short(strict, without_key=key_of(strict, "carol")) == []
    assert left_short(strict, without_key=key_of(strict, "alice")) == ["Reserve", "Treasury"]


def test_who_can_still_move_the_coins_on_counts_where_no_other_signer_is_left(desk):
    """All have new devices: the old vault's coins leave by two superseded keys or not at all."""
    for name in ("alice", "bob", "carol"):
        revoke(desk, name)
    assert left_short(desk, without_member=membership_of(desk, "alice")) == []
    revoke(desk, "carol", "lost")
    assert left_short(desk, without_member=membership_of(desk, "alice")) == ["Treasury"]
    assert left_short(desk, without_key=key_of(desk, "bob")) == ["Treasury"]
    assert left_short(desk, without_role=signer_role(desk)) == ["Treasury"]


def test_a_vault_that_was_replaced_counts_until_it_is_empty(strict):
    with strict.store.write() as db:
        reserve = db.scalars(select(VaultRow).where(VaultRow.name == "Reserve")).one()
        reserve.replaced_by_id = strict.vault["id"]
        script = address_script(reserve)
    alice = membership_of(strict, "alice")
    assert left_short(strict, without_member=alice) == []
    token = TokenCellRow(chain="regtest", contract_id="aa" * 32, cell=Cell.BALANCE, holder=script, number=1)
    with strict.store.write() as db:
        db.add(token)
    assert left_short(strict, without_member=alice) == ["Reserve"]
    with strict.store.write() as db:
        db.delete(token)
    (address,) = (each["address"] for each in strict.wallets() if each["name"] == "Reserve")
    strict.deposit(100_000, to=address)
    assert left_short(strict, without_member=alice) == ["Reserve"]
