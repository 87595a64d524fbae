"""One who holds exactly what a test gives them, before endpoints that are asked with what exists."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from sqlalchemy import delete

from custody.schemas.call import Call, PermissionName
from custody.server.calls import Ctx
from custody.server.people.organisations import found_workspace
from custody.server.people.staff import store_role
from custody.server.rules.credentials import NEVER_GIVEN, OPERATOR
from custody.server.rules.roles import EVERY_PERMISSION, RoleTemplate
from custody.server.store.models import MembershipRow, RolePermissionRow
from multisig import Network, Sats
from tests.custody.spec.samples import sample, send
from tests.support.custody import SHOP, Desk, open_desk
from tests.support.platform import As
from tests.support.service_accounts import made

TESTER, COLLEAGUE, STRANGER = "tester@example.org", "colleague@example.org", "eve@example.com"

# What names no record of the stage.
SAID: dict[str, Any] = {
    "rule_name": "VIEW_LOGS", "network": "testnet", "m": 2, "address": SHOP, "cycle_period": "M",
    "signers": [1], "invited_email": "x@example.org", "work_email": "x@example.net",
    "transaction_limit": "1", "new_transaction_limit": "1", "amount_to_check": "1", "tx_type": "send",
    "sweep": True, "fee_sats": 1_000, "recipients": [SHOP], "amounts_sats": [10_000],
    "psbt_base64": "cHNidP8=", "psbt_id": "none", "ticker": "GOLD", "icon": "", "total_supply": "90",
    "max_supply": "100", "url": "https://hooks.example.org/", "kinds": ["*"], "webhook_id": "none",
    "delivery_id": "none", "change_id": "none", "rights": ["VIEW_LOGS"], "networks": ["192.0.2.0/24"],
    "expires_at": "2026-03-20T00:00:00Z", "service_account_id": 999, "path": "/api/v1/update-vault",
    "body": {}, "issuer": "https://login.example.org", "client_secret": "secret",
}  # fmt: skip


@dataclass
class Stage:
    """One who holds exactly what a test gives them, one of another workspace of the organisation, one of
    another tenant.
    """

    desk: Desk
    tester_id: int
    role_id: int
    colleague_id: int
    colleague: As
    stranger: As
    tester: As
    # Of an administrator's, with all that a program is ever given.
    program: As

    def gives(self, permissions: frozenset[PermissionName]) -> None:
        """The tester is a member with these, whatever happened before."""
        place = {"workspace_id": 1, "role_id": self.role_id, "created_at": self.desk.world.clock()}
        with self.desk.store.write() as db:
            db.execute(delete(MembershipRow).where(MembershipRow.user_id == self.tester_id))
            db.add(MembershipRow(user_id=self.tester_id, **place))
            db.execute(delete(RolePermissionRow).where(RolePermissionRow.role_id == self.role_id))
            db.add_all(RolePermissionRow(role_id=self.role_id, permission=name.value) for name in permissions)

    def asks(
        self,
        user: As,
        row: Call[Any, Any],
        permission: PermissionName = PermissionName.VIEW_LOGS,
        **others: object,
    ) -> Any:
        """With objects of their own for each call: some calls use them up. ``others`` replace what exists."""
        return self.asks_with(self.known(permission), user, row, **others)

    def asks_with(self, known: dict[str, Any], user: As, row: Call[Any, Any], **others: object) -> Any:
        """With these objects, for a call that is refused and uses nothing up."""
        body = sample(row, {**known, **others}) if row.shape is not None else {}
        return send(user, row, body)

    def known(self, permission: PermissionName = PermissionName.VIEW_LOGS) -> dict[str, Any]:
        """What exists, by the names that fields have."""
        role_id, member_id = self._nobody()
        ids = {
            "workspace_id": 1, "workspace_context": 1, "creator_workspace_id": 1, "workspace_uid": "1",
            "org_id": 1, "creator_org_uuid": 1, "org_uid": "1",
            "role_id": role_id, "role_uid": role_id, "uuid": member_id, "user_uuid": member_id,
            "vault_id": self.desk.vault["id"], "wallet_id": self.desk.vault["id"],
        }  # fmt: skip
        return {
            **SAID, **ids, "rule_name": permission.value, "rights": [permission.value],
            "signers": list(self.desk.user_ids.values()),
            "invited_email": f"{role_id}@example.org", "work_email": f"{role_id}@example.net",
            "url": f"https://{role_id}.example.org/",
        }  # fmt: skip

    @cached_property
    def unused(self) -> dict[str, Any]:
        """What exists, for calls that are refused: they use nothing up."""
        return self.known()

    def _nobody(self) -> tuple[int, int]:
        """A role that carries nothing, and a member who holds it: any member with a permission may
        use it on them.
        """
        number = next(self._numbers)
        with self.desk.store.write() as db:
            nothing = RoleTemplate(f"Nothing {number}", "", frozenset(), Sats(0))
            role_id = store_role(db, self.desk.world.clock(), 1, nothing).id
        member = self.desk.world.member(1, f"nobody{number}@example.org", f"Nothing {number}")
        return role_id, member.user_id

    def __post_init__(self) -> None:
        self._numbers = iter(range(10_000))


@contextmanager
def open_stage(folder: Path) -> Iterator[Stage]:
    with open_desk(folder) as desk:
        world = desk.world
        tested = RoleTemplate("Tested", "", EVERY_PERMISSION, Sats(10**8))
        with world.platform.services.store.write() as db:
            role_id = store_role(db, world.clock(), 1, tested).id
            ctx = Ctx(world.platform.services, OPERATOR, db)
            second = found_workspace(ctx, 1, name="2", description="", chain=Network.REGTEST)[0].id
        tester_id = world.member(1, TESTER, "Tested").user_id
        colleague_id = world.member(second, COLLEAGUE, "Administrator").user_id
        world.organisation("Umbrella", STRANGER)
        people = (world.as_user(email) for email in (COLLEAGUE, STRANGER, TESTER))
        program = made(world, desk.admin, rights=sorted(EVERY_PERMISSION - NEVER_GIVEN))[1]
        yield Stage(desk, tester_id, role_id, colleague_id, *people, program)
