"""Members and roles where vaults and proposals hang on them: quorums, and signing after a role was taken
away.
"""

import pytest
from sqlalchemy import delete, select

from custody.schemas.call import PermissionName as P
from custody.server.audit.verification import read_through
from custody.server.store.models import AuditEventRow, MembershipRow
from tests.support.custody import Desk, ok, refused
from tests.support.profiles import grant
from tests.support.staff import add_role, change_role, remove, remove_permission

SIGNER = 2


@pytest.fixture
def psbt_id(funded: Desk) -> str:
    return ok(funded.propose(50_000))["psbt_id"]


@pytest.fixture
def guest(desk: Desk) -> int:
    """A role that sees and does not sign."""
    return add_role(desk.world, "Guest", {P.VIEW_BALANCES})


def leave(desk: Desk, name: str, **more: object):
    return desk.signers[name].post("/api/v1/leave-workspace", {"workspace_id": desk.workspace_id, **more})


def newest_description(desk: Desk) -> str:
    with desk.store.read() as db:
        here = select(AuditEventRow.description).where(
            AuditEventRow.chain_id == f"workspace:{desk.workspace_id}"
        )
        return db.scalars(here.order_by(AuditEventRow.position.desc())).first()


class TestP23ARoleTakenAwayBeforeSigning:
    def test_by_removing_the_member(self, funded: Desk, psbt_id: str) -> None:
        signed = funded.signed("bob", psbt_id)
        ok(remove(funded.admin, funded.user_ids["bob"]))
        refused(funded.submit("bob", psbt_id, signed), 404, "NOT_FOUND")
        refused(funded.decline("bob", psbt_id), 404, "NOT_FOUND")
        assert funded.proposal(psbt_id)["collected_signatures"] == 0
        # What was signed before stays.
        funded.approve("carol", psbt_id)
        ok(remove(funded.admin, funded.user_ids["carol"], force=True))
        assert funded.approve("alice", psbt_id)["collected_signatures"] == 2

    def test_by_a_role_that_does_not_carry_it(self, funded: Desk, psbt_id: str, guest: int) -> None:
        signed = funded.signed("bob", psbt_id)
        ok(change_role(funded.admin, funded.user_ids["bob"], guest))
        refused(funded.submit("bob", psbt_id, signed), 403, "PERMISSION_DENIED")
        ok(change_role(funded.admin, funded.user_ids["bob"], SIGNER))
        ok(remove_permission(funded.admin, SIGNER, "PAYMENT_APPROVE", force=True))
        refused(funded.submit("bob", psbt_id, signed), 403, "PERMISSION_DENIED")
        grant(funded, "Signer", "PAYMENT_APPROVE")
        assert ok(funded.submit("bob", psbt_id, signed))["collected_signatures"] == 1

    def test_ends_a_long_poll_too(self, funded: Desk, psbt_id: str) -> None:
        """It is asked for a place again every few seconds, not only when it begins."""
        bob, query = funded.signers["bob"], {"workspace_id": funded.workspace_id}
        etag = bob.get("/api/v1/psbt", **query).headers["ETag"]
        waiting = {"If-None-Match": etag, "Prefer": "wait=20", **bob.headers}
        services = funded.world.platform.services
        looked, original = services.tools.changes.version, services.following.wait

        async def removed_meanwhile(workspace_id: int, seen: int, seconds: float) -> bool:
            """The member goes while nothing else changes."""
            services.following.wait = original
            with services.store.write() as db:
                db.execute(delete(MembershipRow).where(MembershipRow.user_id == funded.user_ids["bob"]))
            return False

        services.following.wait = removed_meanwhile
        answer = funded.world.http.get("/api/v1/psbt", params=query, headers=waiting)
        refused(answer, 404, "NOT_FOUND")
        assert services.tools.changes.version == looked


class TestAVaultThatWouldBeLeftShort:
    """2 of 3: one signer may go, a second one not."""

    def test_keeps_its_signers(self, desk: Desk, guest: int) -> None:
        ok(remove(desk.admin, desk.user_ids["alice"]))
        bob = desk.user_ids["bob"]
        for answer in (remove(desk.admin, bob), change_role(desk.admin, bob, guest), leave(desk, "bob")):
            told = refused(answer, 409, "STATE_CONFLICT")["detail"]
            assert "'Treasury'" in told
            assert "force" in told
        refused(remove_permission(desk.admin, SIGNER, "PAYMENT_APPROVE"), 409, "STATE_CONFLICT")
        ok(remove_permission(desk.admin, SIGNER, "VIEW_BALANCES"))

    @pytest.mark.parametrize(
        "act",
        [
            lambda desk, bob, _guest: remove(desk.admin, bob, force=True),
            lambda desk, bob, guest: change_role(desk.admin, bob, guest, force=True),
            lambda desk, _bob, _guest: leave(desk, "bob", force=True),
            lambda desk, *_: remove_permission(desk.admin, SIGNER, "PAYMENT_APPROVE", force=True),
        ],
        ids=["remove", "change", "leave", "permission"],
    )
    def test_is_left_short_where_it_is_forced_and_the_log_says_so(self, desk: Desk, guest: int, act) -> None:
        ok(remove(desk.admin, desk.user_ids["alice"]))
        assert "too few" not in newest_description(desk)
        ok(act(desk, desk.user_ids["bob"], guest))
        assert f"are left in {desk.vault['id']}" in newest_description(desk)
        assert read_through(desk.store).findings == ()

    def test_another_role_that_signs_is_no_loss(self, desk: Desk) -> None:
        approver = add_role(desk.world, "Approver", {P.PAYMENT_APPROVE})
        for name in desk.signers:
            ok(change_role(desk.admin, desk.user_ids[name], approver))
