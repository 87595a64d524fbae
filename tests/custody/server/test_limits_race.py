"""Proposals at the same moment, through two platforms over one database:
together they never breach a limit (P17).

Nothing of one process's locks helps here: who measures first is the database's decision.
"""

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from itertools import cycle

import httpx
import pytest
from sqlalchemy import select

from custody.server.app import Outside, Settings, open_platform
from custody.server.service.audit.log import verify
from custody.server.store.models import AuditEvent
from tests.support.asgi import asgi_client
from tests.support.custody import SHOP, Desk, ok, open_desk
from tests.support.platform import CHEAP, As

PATIENCE_SECONDS = 90
AMOUNT = 60_000


@dataclass
class Doors:
    """One desk behind two platforms."""

    desk: Desk
    https: tuple[httpx.Client, httpx.Client]

    def at_once(self, *acts: Callable[[httpx.Client], httpx.Response]) -> list[httpx.Response]:
        """Each in a thread of its own, all let go together, by the two platforms in turn."""
        start = threading.Barrier(len(acts))

        def run(act: Callable[[httpx.Client], httpx.Response], http: httpx.Client) -> httpx.Response:
            start.wait(PATIENCE_SECONDS)
            return act(http)

        with ThreadPoolExecutor(len(acts)) as pool:
            return list(pool.map(run, acts, cycle(self.https)))

    def propose(self, person: As) -> Callable[[httpx.Client], httpx.Response]:
        body = {
            "wallet_id": self.desk.vault["id"],
            "workspace_id": self.desk.workspace_id,
            "tx_type": "send",
            "recipients": [SHOP],
            "amounts_sats": [AMOUNT],
            "fee_rate": "1",
        }
        return partial(_post, person, "/api/v1/create-psbt", body)

    def lower_role(self, limit: str) -> Callable[[httpx.Client], httpx.Response]:
        return partial(_post, self.desk.admin, "/api/v1/update-role-policies", role_policy(self.desk, limit))

    def used(self, person: As) -> str:
        return ok(person.get("/api/v1/get-my-limits", workspace_id=self.desk.workspace_id))["Used"]


def _post(person: As, path: str, body: dict, http: httpx.Client) -> httpx.Response:
    return As(http, person.headers).post(path, body)


def role_policy(desk: Desk, limit: str) -> dict:
    return {
        "role_id": 1,
        "workspace_id": desk.workspace_id,
        "new_transaction_limit": limit,
        "cycle_period": "M",
        "cycle_day": 1,
    }


def codes(answers: list[httpx.Response]) -> list[str]:
    return sorted("ok" if answer.status_code == 200 else answer.json()["code"] for answer in answers)


@pytest.fixture
def doors(tmp_path, database: str) -> Iterator[Doors]:
    with open_desk(tmp_path / "state", database_url=database) as desk:
        world = desk.world
        settings = Settings(state=tmp_path / "state", database_url=database)
        second = open_platform(settings, Outside(clock=world.clock, hasher=CHEAP, mailer=world.mail))
        second.background.backends.update(world.platform.background.backends)
        # A coin for each proposal: none loses for want of one.
        desk.deposit(*[200_000] * 8)
        try:
            with asgi_client(second.asgi) as http:
                yield Doors(desk, (world.http, http))
                assert verify(second.services.store) == ()
        finally:
            second.close()


def test_p17_of_proposals_that_breach_the_role_limit_together_one_passes(doors: Doors) -> None:
    desk = doors.desk
    ok(desk.admin.post("/api/v1/update-role-policies", role_policy(desk, "0.001")))
    answers = doors.at_once(*[doors.propose(desk.admin)] * 6)
    assert codes(answers) == ["ROLE_LIMIT_EXCEEDED"] * 5 + ["ok"]
    (proposal,) = ok(desk.admin.get("/api/v1/psbt", workspace_id=desk.workspace_id))
    assert doors.used(desk.admin) == f"0.{AMOUNT + proposal['fee_sats']:08d}"


def test_p17_of_members_who_breach_a_vaults_cycle_together_one_passes(doors: Doors) -> None:
    desk = doors.desk
    body = {
        "vault_id": desk.vault["id"],
        "workspace_id": desk.workspace_id,
        "transaction_limit": "0.001",
        "cycle_period": "W",
        "cycle_day": 7,
    }
    ok(desk.admin.post("/api/v1/update-vault", body))
    services = desk.world.platform.services
    with services.store.write() as db:
        services.limits.bound_cycle(db, desk.vault["id"], is_per_cycle=True)
    desk.world.member(desk.workspace_id, "deputy@example.org", "Administrator")
    deputy = desk.world.as_user("deputy@example.org")
    answers = doors.at_once(*[doors.propose(desk.admin), doors.propose(deputy)] * 2, doors.propose(deputy))
    assert codes(answers) == ["VAULT_LIMIT_EXCEEDED"] * 4 + ["ok"]


def test_p22_a_limit_lowered_meanwhile_counts_for_whatever_comes_after_it(doors: Doors) -> None:
    """The audit chain says who came first; after the lowering only what fits the lower limit passed."""
    desk = doors.desk
    ok(desk.admin.post("/api/v1/update-role-policies", role_policy(desk, "0.0025")))
    answers = doors.at_once(
        *[doors.propose(desk.admin)] * 3, doors.lower_role("0.001"), *[doors.propose(desk.admin)] * 2
    )
    assert set(codes(answers)) <= {"ok", "ROLE_LIMIT_EXCEEDED"}
    order = [event for event in desk_events(desk) if event in {"PROPOSAL_CREATED", "ROLE_POLICY_REPLACED"}]
    # The first of the two replacements was the preparation.
    lowered = order.index("ROLE_POLICY_REPLACED", order.index("ROLE_POLICY_REPLACED") + 1)
    before, after = order[1:lowered].count("PROPOSAL_CREATED"), order[lowered:].count("PROPOSAL_CREATED")
    assert before <= 4
    assert after == (1 if before == 0 else 0)
    assert codes(answers).count("ok") == before + after + 1


def desk_events(desk: Desk) -> list[str]:
    query = select(AuditEvent.action).where(AuditEvent.chain_id == f"workspace:{desk.workspace_id}")
    with desk.world.platform.services.store.read() as db:
        return list(db.scalars(query.order_by(AuditEvent.position)))
