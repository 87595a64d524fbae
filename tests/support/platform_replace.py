"""A story of the platform's crash harness: a vault is replaced by two people, and its coins are swept."""

from contextlib import closing
from pathlib import Path

from custody.server.service.audit.log import verify
from custody.server.store.models import CoinLockRow
from tests.support.custody import Desk, ok, open_desk
from tests.support.platform import World, open_world
from tests.support.platform_story import Stepping, Story, Turn, proposals, reopen

DORA = "dora@example.org"
AMOUNTS = (40_000_000, 30_000_000)
ONCE = ("CHANGE_ASKED", "CHANGE_CONFIRMED", "VAULT_REPLACED", "PROPOSAL_CANCELLED")


def _begin(state: Path, url: str | None) -> None:
    """Coins, and a proposal without a signature that locks one of them."""
    with open_desk(state, database_url=url) as desk:
        desk.world.member(desk.workspace_id, DORA, "Administrator")
        desk.deposit(*AMOUNTS)
        ok(desk.propose(20_000_000))


def _ask(_world: World, desk: Desk, stepping: Stepping) -> None:
    """Its client repeats it: the same request is the same change."""
    stepping.steps.arm()
    body = {"workspace_id": 1, "vault_id": desk.vault["id"], "name": "Treasury 2"}
    asked = {"workspace_id": 1, "path": "/api/v1/replace-vault", "body": body}
    ok(desk.admin.post("/api/v1/request-change", asked))


def _confirm(world: World, desk: Desk, stepping: Stepping) -> None:
    dora = world.as_user(DORA)
    (change,) = ok(desk.admin.get("/api/v1/changes", workspace_id=1))
    stepping.steps.arm()
    if change["status"] == "PENDING":
        ok(dora.post("/api/v1/confirm-change", {"workspace_id": 1, "change_id": change["change_id"]}))


def _sweep(_world: World, desk: Desk, stepping: Stepping) -> None:
    """Repeated, it finds nothing that is free."""
    stepping.steps.arm()
    body = {"workspace_id": 1, "vault_id": desk.vault["id"], "fee_rate": "2"}
    answer = desk.admin.post("/api/v1/sweep-vault", body)
    assert answer.status_code == 200 or answer.json()["code"] == "LOCKED_FUNDS", answer.text


def _look_back(state: Path, url: str | None) -> list[str]:
    with (
        open_world(state, database_url=url, broadcast_wait_seconds=0) as world,
        closing(world.platform.background.open_chain()) as chain,
    ):
        desk = reopen(world, chain)
        swept = [record for record in proposals(desk) if record["status"] == "PENDING"]
        locked = len(desk.rows(CoinLockRow))
        for record in swept:
            desk.sign_off(record["psbt_id"])
        desk.settle()
        desk.mine()
        vaults = sorted(desk.wallets(), key=lambda each: "replaces" in each)
        statuses = [record["status"] for record in proposals(desk)]
        said = world.audit_actions("workspace:1")
        wrong = [f"audit: {fault}" for fault in verify(world.platform.services.store)]
    fees = sum(record["fee_sats"] for record in swept)
    wrong += [f"{word} is recorded {said.count(word)} times" for word in ONCE if said.count(word) != 1]
    found = {
        "replaced by": ([each.get("replaced_by") for each in vaults], [vaults[-1]["id"], None]),
        "coins locked": (locked, len(AMOUNTS)),
        "statuses": (statuses, ["CANCELLED", "CONFIRMED"]),
        "balances": ([each["confirmed_sats"] for each in vaults], [0, sum(AMOUNTS) - fees]),
    }
    return wrong + [
        f"{what}: {is_} and not {should}" for what, (is_, should) in found.items() if is_ != should
    ]


REPLACE = Story(
    "replace",
    (
        Turn("the request", _ask),
        Turn("the second person", _confirm),
        Turn("the sweep", _sweep, has_chain=True),
    ),
    _begin,
    _look_back,
)
