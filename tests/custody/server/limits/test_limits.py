"""Limits where movements are proposed: what counts, for whom, in which cycle, and until when (P18 to P20,
P22).
"""

from dataclasses import replace
from datetime import UTC, datetime

import pytest
from sqlalchemy import select, update

from custody.schemas.common import WorkspaceQuery
from custody.server.calls import Ctx
from custody.server.limits import calls as limits
from custody.server.rules.credentials import Caller
from custody.server.store.models import ChainCoinRow, MembershipRow, ProposalInputRow, ProposalRow, RoleRow
from custody.server.vaults.stored import place_of
from tests.support.custody import Desk, ok, open_desk, refused
from tests.support.platform import As
from tests.support.policy_store import OUT_OF_REACH, RemotePolicies
from tests.support.prepared import Story, nothing
from tests.support.replacing import bump, finished

BTC = 100_000_000


def set_role(desk, limit: str, period: str = "M", day: int = 1) -> dict:
    body = {"role_id": 1, "workspace_id": desk.workspace_id, "new_transaction_limit": limit}
    cycle = {"cycle_period": period, "cycle_day": day}
    return ok(desk.admin.post("/api/v1/update-role-policies", body | cycle))


def set_vault(desk, limit: str, period: str = "M", day: int = 1, **sent: bool) -> dict:
    body = {"vault_id": desk.vault["id"], "workspace_id": desk.workspace_id, "transaction_limit": limit}
    cycle = {"cycle_period": period, "cycle_day": day}
    return ok(desk.admin.post("/api/v1/update-vault", body | cycle | sent))


def bound_cycle(desk, *, is_per_cycle: bool = True) -> None:
    query = {"workspace_id": desk.workspace_id, "vault_id": desk.vault["id"]}
    now = ok(desk.admin.get("/api/v1/get-vault-limits", **query))
    set_vault(desk, now["Limit"], now["CyclePeriod"], now["CycleDay"], per_cycle=is_per_cycle)


def mine(desk, who: As | None = None) -> tuple[str, str]:
    """Used and unused of a member's own limit."""
    limits = ok((who or desk.admin).get("/api/v1/get-my-limits", workspace_id=desk.workspace_id))
    return limits["Used"], limits["Unused"]


def vaults_used(desk) -> str:
    query = {"workspace_id": desk.workspace_id, "vault_id": desk.vault["id"]}
    return ok(desk.admin.get("/api/v1/get-vault-limits", **query))["Used"]


def cost(desk, response) -> int:
    """What the proposal moves, its fee included."""
    record = desk.proposal(ok(response)["psbt_id"])
    return sum(record["amounts_sats"]) + record["fee_sats"]


def btc(amount: int) -> str:
    return f"{amount // BTC}.{amount % BTC:08d}"


@pytest.fixture
def beginning(request: pytest.FixtureRequest) -> Story:
    return eight_coins if "rich" in request.fixturenames else nothing


def eight_coins(desk: Desk) -> None:
    desk.deposit(*[1_000_000] * 8)


@pytest.fixture
def rich(desk):
    """Eight coins, so that proposals do not wait for each other's."""
    return desk


class TestRoles:
    def test_p19_equal_to_the_limit_passes_and_one_satoshi_more_does_not(self, rich):
        fee = cost(rich, rich.propose(50_000, fee_rate="2")) - 50_000
        set_role(rich, btc(50_000 + fee + 60_000 + fee))
        problem = refused(rich.propose(60_001, fee_rate="2"), 403, "ROLE_LIMIT_EXCEEDED")
        assert problem["figures"] == {
            "limit": btc(110_000 + 2 * fee),
            "used": btc(50_000 + fee),
            "requested": btc(60_001 + fee),
            "next_reset": "2026-04-01T00:00:00.000Z",
        }
        ok(rich.propose(60_000, fee_rate="2"))
        assert mine(rich) == (btc(110_000 + 2 * fee), "0.00000000")

    def test_p18_splitting_is_blocked_by_the_sum(self, rich):
        """Another vault is no way round; each member has a limit of their own."""
        assert mine(rich, rich.signers["alice"]) == ("0.00000000", "0.00000000"), "a role of nothing is read"
        set_role(rich, "0")
        refused(rich.propose(1_000), 403, "ROLE_LIMIT_EXCEEDED")
        # The role is asked first, and the vault's applies too.
        set_vault(rich, "0.001")
        set_role(rich, "0.0005")
        refused(rich.propose(200_000), 403, "ROLE_LIMIT_EXCEEDED")
        set_role(rich, "1")
        refused(rich.propose(200_000), 403, "VAULT_LIMIT_EXCEEDED")
        set_vault(rich, "10")

        set_role(rich, "0.001")
        refused(rich.propose(100_001), 403, "ROLE_LIMIT_EXCEEDED")
        assert (mine(rich)[0], rich.wallets()[0]["locked_sats"]) == ("0.00000000", 0), "nothing is reserved"
        assert rich.world.audit_actions("workspace:1")[-1] == "ROLE_LIMIT_EXCEEDED"
        for _ in range(3):
            ok(rich.propose(30_000, fee_rate="1"))
        refused(rich.propose(30_000, fee_rate="1"), 403, "ROLE_LIMIT_EXCEEDED")
        first, rich.vault = rich.vault, ok(rich.create_vault("Second"))
        rich.deposit(1_000_000, to=rich.vault["address"])
        refused(rich.propose(30_000, fee_rate="1"), 403, "ROLE_LIMIT_EXCEEDED")

        rich.vault = first
        rich.world.member(rich.workspace_id, "deputy@example.org", "Administrator")
        rich.admin = rich.world.as_user("deputy@example.org")
        ok(rich.propose(90_000))
        refused(rich.propose(90_000), 403, "ROLE_LIMIT_EXCEEDED")

    def test_p18_another_role_is_no_way_round(self, rich):
        """What was moved under a former role counts against the limit of the present one; what was moved in
        another workspace counts there.
        """
        used = cost(rich, rich.propose(60_000))
        elsewhere = rich.world.organisation("Rival", "rival@example.org").workspace_id
        psbt_id = ok(rich.propose(70_000))["psbt_id"]
        services = rich.world.platform.services
        with services.store.write() as db:
            db.get_one(ProposalRow, psbt_id).workspace_id = elsewhere
        assert mine(rich)[0] == btc(used)
        with services.store.write() as db:
            twin = db.get_one(RoleRow, 1)
            columns = {column.name: getattr(twin, column.name) for column in RoleRow.__table__.columns}
            db.add(RoleRow(**columns | {"id": 77, "name": "Twin", "limit_sats": 100_000}))
            db.flush()
            db.execute(update(MembershipRow).where(MembershipRow.user_id == 1).values(role_id=77))
        with services.store.read() as db:
            access = replace(place_of(db, rich.workspace_id), role_id=77)
            ctx = Ctx(services, Caller(1, 1, "admin", "t"), db, access)
            shown = limits.my_limits(ctx, WorkspaceQuery(workspace_id=rich.workspace_id))
        assert (shown.role_id, shown.used, shown.unused) == (77, btc(used), btc(100_000 - used))

    def test_a_bump_counts_in_the_place_of_what_it_replaces(self, rich):
        first = ok(rich.propose(60_000, fee_rate="2"))["psbt_id"]
        finished(rich, first)
        set_role(rich, "0.0007")
        set_vault(rich, "0.0007")
        bound_cycle(rich)
        response = bump(rich, first, fee_rate="5")
        assert mine(rich)[0] == vaults_used(rich) == btc(cost(rich, response))
        set_role(rich, btc(cost(rich, response)))
        refused(bump(rich, ok(response)["psbt_id"], fee_rate="9"), 403, "ROLE_LIMIT_EXCEEDED")

    def test_p22_lowered_while_pending_it_stays_used_through_confirmation(self, rich):
        """A move to the vault itself counts for its fee alone."""
        inside = next(v for v in rich.wallets() if v["id"] == rich.vault["id"])["receive_address"]
        fee = rich.proposal(ok(rich.propose(500_000, recipients=[inside]))["psbt_id"])["fee_sats"]
        assert mine(rich)[0] == btc(fee)
        response = rich.propose(60_000)
        psbt_id, used = ok(response)["psbt_id"], btc(cost(rich, response) + fee)
        answer = set_role(rich, "0.0001")
        assert answer["Limit"] == "0.00010000"
        assert mine(rich) == (used, "0.00000000")
        refused(rich.propose(1_000), 403, "ROLE_LIMIT_EXCEEDED")
        assert rich.proposal(psbt_id)["status"] == "PENDING"
        rich.sign_off(psbt_id)
        assert rich.proposal(psbt_id)["status"] == "SIGNED"
        rich.settle()
        rich.mine()
        assert rich.proposal(psbt_id)["status"] == "CONFIRMED"
        assert (mine(rich)[0], vaults_used(rich)) == (used, used)


class TestRelease:
    def test_what_was_given_back_can_be_moved_in_full(self, rich):
        """A first estimate counts everything proposed in the cycle; above the limit it is counted exactly, to
        the satoshi.
        """
        response = rich.propose(60_000, fee_rate="2")
        whole = cost(rich, response)
        set_role(rich, btc(whole))
        rich.reject(response.json()["psbt_id"])
        assert (mine(rich)[0], vaults_used(rich)) == ("0.00000000", "0.00000000")
        refused(rich.propose(60_001, fee_rate="2"), 403, "ROLE_LIMIT_EXCEEDED")
        again = ok(rich.propose(60_000, fee_rate="2"))
        assert mine(rich) == (btc(whole), "0.00000000")
        refused(rich.propose(1_000, fee_rate="2"), 403, "ROLE_LIMIT_EXCEEDED")
        ok(rich.decline("alice", again["psbt_id"]))
        set_role(rich, "1")
        last = ok(rich.propose(60_000))["psbt_id"]
        rich.later(days=14)
        assert mine(rich)[0] != "0.00000000"
        rich.world.platform.background.expiry()()
        assert rich.proposal(last)["status"] == "EXPIRED"
        assert (mine(rich)[0], vaults_used(rich)) == ("0.00000000", "0.00000000")

    def test_an_ended_one_that_its_signers_took_to_the_network_counts_again(self, rich):
        """Signatures that were handed out stay valid: what left is what counts, whatever its status says."""
        response = rich.propose(60_000)
        psbt_id = ok(response)["psbt_id"]
        with rich.world.platform.services.store.write() as db:
            proposal = db.get_one(ProposalRow, psbt_id)
            proposal.status = "EXPIRED"
        assert mine(rich)[0] == vaults_used(rich) == "0.00000000"
        with rich.world.platform.services.store.write() as db:
            for place in db.scalars(select(ProposalInputRow).where(ProposalInputRow.proposal_id == psbt_id)):
                coin = db.get_one(ChainCoinRow, ("regtest", place.txid, place.vout))
                coin.spent_by = proposal.txid_expected
        assert mine(rich)[0] == vaults_used(rich) == btc(cost(rich, response))


class TestVaults:
    def test_p19_by_itself_the_limit_bounds_each_movement_and_per_cycle_the_sum(self, rich):
        fee = cost(rich, rich.propose(90_000, fee_rate="2")) - 90_000
        set_vault(rich, "0.0012")
        used = 180_000 + 2 * fee
        assert cost(rich, rich.propose(90_000, fee_rate="2")) == 90_000 + fee
        assert vaults_used(rich) == btc(used)
        refused(rich.propose(120_000), 403, "VAULT_LIMIT_EXCEEDED")
        bound_cycle(rich)
        assert set_vault(rich, btc(240_000 + 3 * fee), "W", 3)["PerCycle"] is True, "that stays"
        (vault,) = rich.wallets()
        assert vault["detailed_vault_limits"] == {
            "Limit": btc(240_000 + 3 * fee), "CyclePeriod": "W", "CycleDay": 3, "Used": btc(used),
            "Unused": btc(60_000 + fee), "NextReset": "2026-03-04T00:00:00.000Z", "PerCycle": True,
        }  # fmt: skip
        problem = refused(rich.propose(60_001, fee_rate="2"), 403, "VAULT_LIMIT_EXCEEDED")
        assert problem["figures"]["used"] == btc(used)
        assert "used" in problem["detail"]
        ok(rich.propose(60_000, fee_rate="2"))
        refused(rich.propose(1_000, fee_rate="2"), 403, "VAULT_LIMIT_EXCEEDED")
        assert set_vault(rich, btc(240_000 + 3 * fee), per_cycle=False)["PerCycle"] is False
        ok(rich.propose(1_000, fee_rate="2"))
        bound_cycle(rich)
        refused(rich.propose(1_000, fee_rate="2"), 403, "VAULT_LIMIT_EXCEEDED")
        bound_cycle(rich, is_per_cycle=False)
        ok(rich.propose(1_000, fee_rate="2"))


class TestCycles:
    def test_p20_the_counter_begins_anew_at_midnight_utc_of_the_day(self, rich):
        """Day 31 of April is the 30th."""
        rich.world.clock.now = datetime(2026, 4, 29, 23, 59, 59, 999_000, tzinfo=UTC)
        rich.admin = rich.world.as_user("admin@example.org")
        set_role(rich, "0.001", "M", 31)
        ok(rich.propose(60_000))
        problem = refused(rich.propose(60_000), 403, "ROLE_LIMIT_EXCEEDED")
        assert problem["figures"]["next_reset"] == "2026-04-30T00:00:00.000Z"
        rich.world.clock.now = datetime(2026, 4, 30, tzinfo=UTC)
        assert mine(rich) == ("0.00000000", "0.00100000")
        ok(rich.propose(60_000))
        problem = refused(rich.propose(60_000), 403, "ROLE_LIMIT_EXCEEDED")
        assert problem["figures"]["next_reset"] == "2026-05-31T00:00:00.000Z"

    def test_a_movement_counts_where_it_was_proposed_and_nowhere_else(self, rich):
        """Proposed before the reset, broadcast after: the new cycle is as empty as if it had never been."""
        set_role(rich, "0.001", "W", 1)
        response = rich.propose(60_000)
        rich.later(days=1)
        assert mine(rich)[0] == "0.00000000"
        rich.sign_off(ok(response)["psbt_id"])
        rich.settle()
        assert rich.proposal(ok(response)["psbt_id"])["status"] == "BROADCASTING"
        assert mine(rich)[0] == "0.00000000"
        ok(rich.propose(60_000))


class TestOutOfReach:
    @pytest.fixture
    def remote(self):
        return RemotePolicies()

    @pytest.fixture
    def desk(self, tmp_path, database, remote):
        with open_desk(tmp_path / "state", database_url=database, policies=remote) as opened:
            eight_coins(opened)
            yield opened

    def test_movements_fail_closed_and_nothing_is_answered_changed_or_reserved(self, rich, remote):
        """A vault says so in the place of its limits."""
        here, cycle = {"workspace_id": rich.workspace_id}, {"cycle_period": "M", "cycle_day": 1}
        vault, role = {"vault_id": rich.vault["id"]}, {"role_id": 1}
        pending = ok(rich.propose(10_000))["psbt_id"]
        locked, used = rich.wallets()[0]["locked_sats"], mine(rich)[0]
        remote.is_reachable = False
        (shown,) = rich.wallets()
        assert (shown["limit_error"], shown["locked_sats"]) == (OUT_OF_REACH, locked)
        assert "detailed_vault_limits" not in shown
        assert ok(rich.admin.get("/api/v1/get-vault-limits", **here, **vault)) == {
            "limit_error": OUT_OF_REACH
        }
        answer = rich.propose(10_000)
        assert OUT_OF_REACH in refused(answer, 503, "POLICY_UNAVAILABLE")["detail"]
        assert int(answer.headers["Retry-After"]) > 0
        assert rich.wallets()[0]["locked_sats"] == locked
        assert len(ok(rich.admin.get("/api/v1/psbt", **here))) == 1
        for path, query in (
            ("get-my-limits", {}),
            ("get-role-limit", role),
            ("check-user-role-limit", role | {"uuid": 1, "amount_to_check": "1"}),
            ("check-vault-limit", vault | {"amount_to_check": "1"}),
        ):
            refused(rich.admin.get(f"/api/v1/{path}", **here, **query), 503, "POLICY_UNAVAILABLE")
        for path, body in (
            ("update-role-policies", role | {"new_transaction_limit": "1"}),
            ("update-vault", vault | {"transaction_limit": "1"}),
        ):
            answer = rich.admin.post(f"/api/v1/{path}", here | cycle | body)
            refused(answer, 503, "POLICY_UNAVAILABLE")
        rich.sign_off(pending)
        assert rich.proposal(pending)["status"] == "SIGNED", "it was measured when it was proposed"
        remote.is_reachable = True
        (shown,) = rich.wallets()
        assert "limit_error" not in shown
        assert shown["detailed_vault_limits"]["Limit"] == "10.00000000"
        assert shown["detailed_vault_limits"] == ok(
            rich.admin.get("/api/v1/get-vault-limits", **here, **vault)
        )
        assert mine(rich)[0] == used
        ok(rich.propose(10_000))
