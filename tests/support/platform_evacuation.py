"""A story of the platform's crash harness: a vault is evacuated, from the request to the sweep that
awaits approval.
"""

from pathlib import Path

from custody.server.service.audit.log import verify
from tests.support.custody import Desk, ok, open_desk
from tests.support.evacuations import DORA, ask, confirm, key_of, plan_of, report, staff
from tests.support.platform import World, open_world
from tests.support.platform_story import Stepping, Story, Turn, drain, proposals, reopen

HELD = 70_000_000
ONCE = ("EVACUATION_STARTED", "CHANGE_ASKED", "CHANGE_CONFIRMED", "PROPOSAL_CANCELLED")


def _begin(state: Path, url: str | None) -> None:
    """Coins, and a proposal without a signature that locks some of them."""
    with open_desk(state, database_url=url) as desk:
        staff(desk)
        desk.deposit(HELD - 1_000_000, 1_000_000)
        ok(desk.propose(30_000_000))


def _keys(desk: Desk) -> list[str]:
    desk.user_ids["carol"] = int(desk.vault["signers"][2]["user_id"])
    return [key_of(desk, "carol")]


def _ask(_world: World, desk: Desk, stepping: Stepping) -> None:
    """Its client repeats it: the same request is the same change."""
    keys = _keys(desk)
    plan_hash = plan_of(desk, keys)["plan_hash"]
    stepping.steps.arm()
    ask(desk, keys, plan_hash)


def _confirm(world: World, desk: Desk, stepping: Stepping) -> None:
    dora = world.as_user(DORA)
    (change,) = ok(desk.admin.get("/api/v1/changes", workspace_id=1))
    stepping.steps.arm()
    if change["status"] == "PENDING":
        ok(confirm(dora, change))


def _work(_world: World, desk: Desk, stepping: Stepping) -> None:
    drain(desk, stepping)
    (row,) = report(desk)["vaults"]
    assert row["stage"] == "awaiting-approval", row


def _look_back(state: Path, url: str | None) -> list[str]:
    """The evacuation continues to its confirmation, and everything has happened once."""
    with (
        open_world(state, database_url=url, broadcast_wait_seconds=0) as world,
        world.platform.background.open_chain() as chain,
    ):
        desk = reopen(world, chain)
        (sweep,) = report(desk)["vaults"][0]["psbt_ids"]
        desk.sign_off(sweep)
        desk.settle()
        desk.mine()
        (row,) = report(desk)["vaults"]
        old, *new = desk.wallets()
        said = world.audit_actions("workspace:1")
        wrong = [f"audit: {fault}" for fault in verify(world.platform.services.store)]
        statuses = [record["status"] for record in proposals(desk)]
    wrong += [f"{word} is recorded {said.count(word)} times" for word in ONCE if said.count(word) != 1]
    found = {
        "stage": (row["stage"], "confirmed"),
        "statuses": (statuses, ["CANCELLED", "CONFIRMED"]),
        "what was swept": (row["swept_sats"] + row["fee_sats"], HELD),
        "what is there": ([each["confirmed_sats"] for each in (old, *new)], [0, row["swept_sats"]]),
        "vaults made": (said.count("VAULT_CREATED"), 2),
    }
    return wrong + [
        f"{what}: {is_} and not {should}" for what, (is_, should) in found.items() if is_ != should
    ]


EVACUATION = Story(
    "evacuation",
    (
        Turn("the request", _ask, has_chain=True),
        Turn("the second person", _confirm),
        Turn("the work", _work, has_chain=True),
    ),
    _begin,
    _look_back,
)
