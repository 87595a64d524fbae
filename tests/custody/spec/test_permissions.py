"""Every row of the table that asks for a permission, against a running platform: P23, P24, P25."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest
from sqlalchemy import delete

from custody.schemas.users import PermissionName
from custody.server.domain.permissions import EVERY_PERMISSION, RoleTemplate
from custody.server.service.workspaces import add_first_role, found_workspace
from custody.server.store.models import Membership, Organisation, RolePermission, Workspace
from custody.server.web.endpoint import Door, Endpoint
from custody.server.web.table import ENDPOINTS
from multisig import Network, Sats
from tests.custody.spec import not_yet
from tests.custody.spec.reading import Specification
from tests.custody.spec.samples import sample
from tests.support.custody import SHOP, Desk, open_desk
from tests.support.platform import As

TESTER, COLLEAGUE, STRANGER = "tester@example.org", "colleague@example.org", "eve@example.com"
# Of a workspace: the rest are one's own things, and sign-in.
ROWS = tuple(row for row in ENDPOINTS if not isinstance(row.needs, Door))


@dataclass
class Stage:
    """One who holds exactly what a test gives them, one of another workspace of the organisation, one of another tenant."""

    desk: Desk
    tester_id: int
    role_id: int
    colleague: As
    stranger: As
    tester: As

    def gives(self, permissions: frozenset[PermissionName]) -> None:
        """The tester is a member with these, whatever happened before."""
        with self.desk.world.platform.services.store.write() as db:
            db.execute(delete(Membership).where(Membership.user_id == self.tester_id))
            db.add(
                Membership(
                    user_id=self.tester_id,
                    workspace_id=1,
                    role_id=self.role_id,
                    created_at=self.desk.world.clock(),
                )
            )
            db.execute(delete(RolePermission).where(RolePermission.role_id == self.role_id))
            db.add_all(RolePermission(role_id=self.role_id, permission=name.value) for name in permissions)

    def asks(self, user: As, row: Endpoint, permission: PermissionName = PermissionName.VIEW_LOGS) -> Any:
        """With objects of their own for each call: some calls use them up."""
        body = sample(row, self._known(permission))
        path = row.path.format(**dict.fromkeys(row.path_ids, 1))
        if row.method == "GET":
            return user.get(path, **body)
        return user.post(path, body)

    def _known(self, permission: PermissionName) -> dict[str, Any]:
        role_id, member_id = self._nobody()
        ids = {
            "workspace_id": 1, "workspace_context": 1, "creator_workspace_id": 1, "workspace_uid": "1",
            "org_id": 1, "creator_org_uuid": 1, "org_uid": "1",
            "role_id": role_id, "role_uid": role_id, "uuid": member_id, "user_uuid": member_id,
            "vault_id": self.desk.vault["id"], "wallet_id": self.desk.vault["id"],
        }  # fmt: skip
        return ids | {
            "rule_name": permission.value, "network": "testnet", "m": 2, "address": SHOP, "cycle_period": "M",
            "signers": list(self.desk.user_ids.values()), "invited_email": f"{role_id}@example.org",
            "transaction_limit": "1", "new_transaction_limit": "1", "amount_to_check": "1", "tx_type": "send",
            "recipients": [SHOP], "amounts_sats": [10_000], "psbt_base64": "cHNidP8=", "psbt_id": "none",
        }  # fmt: skip

    def _nobody(self) -> tuple[int, int]:
        """A role that carries nothing, and a member who holds it: whoever may do a thing at all may do it to them."""
        number = next(self._numbers)
        with self.desk.world.platform.services.store.write() as db:
            nothing = RoleTemplate(f"Nothing {number}", "", frozenset(), Sats(0))
            role_id = add_first_role(db, self.desk.world.clock, db.get_one(Workspace, 1), nothing).id
        member = self.desk.world.member(1, f"nobody{number}@example.org", f"Nothing {number}")
        return role_id, member.user_id

    def __post_init__(self) -> None:
        self._numbers = iter(range(10_000))


@pytest.fixture(scope="module")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    with open_desk(tmp_path_factory.mktemp("state")) as desk:
        world = desk.world
        tested = RoleTemplate("Tested", "", EVERY_PERMISSION, Sats(10**8))
        with world.platform.services.store.write() as db:
            role_id = add_first_role(db, world.clock, db.get_one(Workspace, 1), tested).id
            second = found_workspace(
                db, world.clock, db.get_one(Organisation, 1), name="2", description="", chain=Network.REGTEST
            ).workspace.id
        tester_id = world.member(1, TESTER, "Tested").user_id
        world.member(second, COLLEAGUE, "Administrator")
        world.organisation("Umbrella", STRANGER)
        yield Stage(
            desk, tester_id, role_id, world.as_user(COLLEAGUE), world.as_user(STRANGER), world.as_user(TESTER)
        )


def test_the_table_and_the_specification_agree(specification: Specification) -> None:
    told = {path: call.permissions for path, call in specification.calls.items() if call.permissions}
    table = {row.path: {name.value for name in row.permissions} for row in ENDPOINTS if row.path in told}
    assert table == {path: names for path, names in told.items() if path not in not_yet.ENDPOINTS}


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.path)
def test_each_permission_alone_lets_in(row: Endpoint, stage: Stage) -> None:
    for permission in sorted(row.permissions) or [PermissionName.VIEW_LOGS]:
        stage.gives(frozenset({permission}))
        # What comes after the door may be refused for what was asked; that the shape was right, the next test shows.
        answer = stage.asks(stage.tester, row, permission)
        assert answer.status_code not in {401, 429, 500, 503}, answer.text
        assert "PERMISSION_DENIED" not in answer.text, answer.text


@pytest.mark.parametrize("row", [row for row in ROWS if row.permissions], ids=lambda row: row.path)
def test_all_the_others_together_do_not(row: Endpoint, stage: Stage) -> None:
    stage.gives(EVERY_PERMISSION - row.permissions)
    answer = stage.asks(stage.tester, row)
    assert (answer.status_code, answer.json()["code"]) == (403, "PERMISSION_DENIED"), answer.text


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.path)
def test_every_permission_in_another_workspace_does_not(row: Endpoint, stage: Stage) -> None:
    """P25."""
    answer = stage.asks(stage.colleague, row)
    assert (answer.status_code, answer.json()["code"]) == (403, "PERMISSION_DENIED"), answer.text


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.path)
def test_another_tenant_finds_nothing(row: Endpoint, stage: Stage) -> None:
    """P24."""
    answer = stage.asks(stage.stranger, row)
    assert (answer.status_code, answer.json()["code"]) == (404, "NOT_FOUND"), answer.text


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.path)
def test_without_a_token_nobody_is_asked_further(row: Endpoint, stage: Stage) -> None:
    answer = stage.asks(As(stage.desk.world.http, {}), row)
    assert (answer.status_code, answer.json()["code"]) == (401, "UNAUTHENTICATED")


def test_a_permission_that_was_taken_away_counts_at_once(stage: Stage) -> None:
    """P23: the token is the same."""
    row = next(row for row in ROWS if row.path == "/api/v1/list-wallets")
    stage.gives(EVERY_PERMISSION)
    assert stage.asks(stage.tester, row).status_code == 200
    stage.gives(frozenset())
    assert stage.asks(stage.tester, row).status_code == 403
