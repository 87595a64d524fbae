"""Processes that are killed between the last signature and the confirmation (P12, P13), and where two people
decide: nothing is lost or done twice.
"""

import shutil
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import pytest

from custody.server.audit.verification import read_through
from custody.server.store.models import (
    AuditEventRow,
    CoinLockRow,
    JobRow,
    ProposalInputRow,
    WebhookDeliveryRow,
    WebhookEventRow,
)
from tests.support.custody import SHOP, Desk, ok
from tests.support.examples import TIMES
from tests.support.platform_crash import Life, Steps, Turn, work
from tests.support.regtest import mine_branch
from tests.support.screening import Program, screen
from tests.support.two_people import DORA, ask, decide, ruled

AMOUNT = 30_000_000
ENTERED = {"workspace_id": 1, "name": "Shop", "address": SHOP}


def proposals(desk: Desk) -> list[dict]:
    return ok(desk.admin.get("/api/v1/psbt", workspace_id=desk.workspace_id))


def require_once(desk: Desk, *actions: str) -> None:
    """The audit log is whole, and has each of these once."""
    assert read_through(desk.store).findings == ()
    recorded = desk.audited()
    assert {each: recorded.count(each) for each in actions} == dict.fromkeys(actions, 1)


# --- a payment, whose block is taken back once --------------------------------------------------------------


def a_signed_payment(desk: Desk) -> None:
    """One of two signatures is missing."""
    desk.deposit(50_000_000)
    desk.approve("alice", ok(desk.propose(AMOUNT, recipients=[SHOP]))["psbt_id"])


def sign_last(desk: Desk, steps: Steps) -> None:
    (record,) = proposals(desk)
    signed = desk.signed("bob", record["psbt_id"])
    steps.arm()
    ok(desk.submit("bob", record["psbt_id"], signed))


def broadcast(desk: Desk, steps: Steps) -> None:
    work(desk, steps)
    (record,) = proposals(desk)
    assert record["status"] == "BROADCASTING"


def confirm(desk: Desk, steps: Steps) -> None:
    """The network mines it, if it is not mined yet."""
    (record,) = proposals(desk)
    if desk.chain.transaction(record["txid_expected"]).block is None:
        desk.chain.mine(1)
    work(desk, steps)
    (record,) = proposals(desk)
    assert record["status"] == "CONFIRMED"


def reorganise(desk: Desk, steps: Steps) -> None:
    """The network replaces the block with the payment by two without it."""
    (record,) = proposals(desk)
    if record["status"] == "CONFIRMED" and desk.chain.tip().height == record["block_height"]:
        mine_branch(desk.chain, 1, 2)
    broadcast(desk, steps)


def was_paid_once(desk: Desk, _steps: Steps) -> None:
    (record,) = proposals(desk)
    known = desk.chain.transaction(record["txid_expected"])
    assert (record["status"], record["txid"]) == ("CONFIRMED", record["txid_expected"])
    assert (record["block_height"], record["block_hash"]) == (known.block.height, known.block.hash)
    assert record["collected_signatures"] == record["required_signatures"]
    moved = f"{(AMOUNT + record['fee_sats']) / 10**8:.8f}"
    (vault,) = desk.wallets()
    mine = ok(desk.admin.get("/api/v1/get-my-limits", workspace_id=1))
    assert (mine["Used"], vault["detailed_vault_limits"]["Used"]) == (moved, moved)
    assert vault["confirmed_sats"] + vault["unconfirmed_sats"] == 50_000_000 - AMOUNT - record["fee_sats"]
    assert desk.rows(JobRow, JobRow.kind == "broadcast", JobRow.done_at.is_(None)) == []
    places = [{(row.txid, row.vout) for row in desk.rows(table)} for table in (CoinLockRow, ProposalInputRow)]
    assert places[0] == places[1]
    require_once(desk, "PROPOSAL_CREATED", "PROPOSAL_FINALISED")
    # Killed between sending and recording, the platform says that it saw it on the network.
    reached = [
        row.action
        for row in desk.rows(AuditEventRow)
        if row.action == "TRANSACTION_BROADCAST" or "reached-network" in str(row.facts)
    ]
    assert len(reached) == 1, reached
    assert desk.audited().count("SIGNATURE_SUBMITTED") == 2


# --- a payment that waited for a named approver, until nobody asked for one --------------------------------


def a_payment_that_waits(desk: Desk) -> None:
    desk.bind(approvers=[f"user:{desk.user_ids['carol']}"])
    a_signed_payment(desk)
    desk.approve("bob", proposals(desk)[0]["psbt_id"])


def ask_for_nobody(desk: Desk, steps: Steps) -> None:
    (record,) = proposals(desk)
    assert record["status"] == "PENDING"
    steps.arm()
    desk.bind(approvers=[])


# --- a frozen vault, which two people unfreeze --------------------------------------------------------------


def a_frozen_payment(desk: Desk) -> None:
    """It met its threshold, and the vault was frozen before a worker broadcast it."""
    a_signed_payment(desk)
    desk.approve("bob", proposals(desk)[0]["psbt_id"])
    desk.freeze()


def unfreeze(name: str, desk: Desk, steps: Steps) -> None:
    steps.arm()
    if desk.wallets()[0]["is_frozen"]:
        desk.unfreeze(name)


def was_thawed_once(desk: Desk, steps: Steps) -> None:
    require_once(desk, "VAULT_FROZEN", "VAULT_UNFREEZE_ASKED", "VAULT_UNFROZEN")
    desk.settle()
    desk.mine()
    was_paid_once(desk, steps)


# --- a payment that screening holds -------------------------------------------------------------------------


def a_held_payment(desk: Desk) -> None:
    desk.deposit(50_000_000)
    screen(desk, screening_seconds=86_400)


def propose_held(desk: Desk, steps: Steps) -> None:
    """Its client repeats it only where it finds none."""
    steps.arm()
    if not proposals(desk):
        ok(desk.propose(AMOUNT, recipients=[SHOP]))


def let_through(desk: Desk, steps: Steps) -> None:
    """The program is asked again, with the same id, where its answer was not recorded."""
    desk.world.platform.background.webhook_jobs.sender = Program("allow")
    steps.arm()
    desk.world.deliver_webhooks()


def was_let_through_once(desk: Desk, steps: Steps) -> None:
    require_once(desk, "SCREENING_PASSED")
    assert len(desk.rows(WebhookEventRow)) == len(desk.rows(WebhookDeliveryRow)) == 1
    desk.sign_off(proposals(desk)[0]["psbt_id"])
    desk.settle()
    desk.mine()
    was_paid_once(desk, steps)


# --- what two people decide ---------------------------------------------------------------------------------


def two_administrators(desk: Desk) -> None:
    """And the rule that one of them confirms what the other asks for."""
    ruled(desk.world, desk.admin)


def ask_for(path: str, body: dict, desk: Desk, steps: Steps) -> None:
    """Its client repeats it: the same request is the same change."""
    steps.arm()
    wanted = body if path != "replace-vault" else body | {"vault_id": desk.vault["id"]}
    ok(ask(desk.admin, path, **wanted))


def confirm_change(desk: Desk, steps: Steps) -> None:
    dora = desk.world.as_user(DORA)
    (change,) = ok(desk.admin.get("/api/v1/changes", workspace_id=1))
    steps.arm()
    if change["status"] == "PENDING":
        ok(decide(dora, change))


def was_entered_once(desk: Desk, _steps: Steps) -> None:
    (change,) = ok(desk.admin.get("/api/v1/changes", workspace_id=1))
    (entry,) = ok(desk.admin.get("/api/v1/get-whitelist-addresses", workspace_id=1))
    assert (change["status"], entry["address"]) == ("APPLIED", SHOP)
    require_once(desk, "CHANGE_ASKED", "ADDRESS_ADDED", "CHANGE_CONFIRMED")


def coins_to_move(desk: Desk) -> None:
    """And a proposal without a signature that locks one of them."""
    two_administrators(desk)
    desk.deposit(40_000_000, 30_000_000)
    ok(desk.propose(20_000_000))


def sweep(desk: Desk, steps: Steps) -> None:
    """Repeated, it finds nothing that is free."""
    steps.arm()
    answer = desk.of_vault("sweep-vault", fee_rate="2")
    assert answer.status_code == 200 or answer.json()["code"] == "LOCKED_FUNDS", answer.text


def was_replaced_once(desk: Desk, _steps: Steps) -> None:
    assert len(desk.rows(CoinLockRow)) == 2
    (swept,) = [each for each in proposals(desk) if each["status"] == "PENDING"]
    desk.sign_off(swept["psbt_id"])
    desk.settle()
    desk.mine()
    assert sorted(each["status"] for each in proposals(desk)) == ["CANCELLED", "CONFIRMED"]
    old, new = sorted(desk.wallets(), key=lambda each: "replaces" in each)
    assert (old["replaced_by"], new.get("replaced_by")) == (new["id"], None)
    assert (old["confirmed_sats"], new["confirmed_sats"]) == (0, 70_000_000 - swept["fee_sats"])
    require_once(desk, "CHANGE_ASKED", "CHANGE_CONFIRMED", "VAULT_REPLACED", "PROPOSAL_CANCELLED")


@dataclass(frozen=True)
class Story:
    """``stride``: how many steps the kills are apart, divided by ``TEST_EXAMPLES``."""

    begin: Callable[[Desk], None]
    turns: tuple[Turn, ...]
    end: Turn
    first: int
    stride: int


STORIES = {
    "payment": Story(
        a_signed_payment, (sign_last, broadcast, confirm, reorganise, confirm), was_paid_once, 9, 30
    ),
    "approver": Story(a_payment_that_waits, (ask_for_nobody, broadcast, confirm), was_paid_once, 5, 20),
    "unfreeze": Story(
        a_frozen_payment, (partial(unfreeze, "alice"), partial(unfreeze, "bob")), was_thawed_once, 5, 20
    ),
    "screening": Story(a_held_payment, (propose_held, let_through), was_let_through_once, 5, 12),
    "change": Story(
        two_administrators,
        (partial(ask_for, "add-whitelist-address", ENTERED), confirm_change),
        was_entered_once,
        3,
        20,
    ),
    "replace": Story(
        coins_to_move,
        (
            partial(ask_for, "replace-vault", {"workspace_id": 1, "name": "Treasury 2"}),
            confirm_change,
            sweep,
        ),
        was_replaced_once,
        9,
        30,
    ),
}


@pytest.mark.slow(
    "kills at many steps of whole lives: service/network/test_broadcast.py has the two that matter most"
)
@pytest.mark.parametrize("name", STORIES)
def test_whichever_process_is_killed_everything_ends_confirmed_once(name, database, copies, tmp_path) -> None:
    """In each life every process is killed once, and another one plays its turn again."""
    story = STORIES[name]

    def live(step: int | None) -> list[int]:
        """The number of steps of each turn."""
        shutil.rmtree(tmp_path / "state", ignore_errors=True)
        # What SQLite had not written back yet when its process was killed.
        for each in tmp_path.glob("custody.db-*"):
            each.unlink()
        prepared = copies.restore(story.begin, tmp_path / "state", database)
        life, counts, kills = Life(prepared, tmp_path / "state", database), [], 0
        for number, turn in enumerate(story.turns):
            fatal = None if step is None else min(step, whole[number])
            found = life.play(turn, fatal)
            if found is None:
                kills += 1
                found = life.play(turn)
            counts.append(found)
        life.play(story.end)
        assert step is None or kills, f"no process reached step {step}"
        return counts

    whole: list[int] = []
    whole = live(None)
    stride = max(1, story.stride // TIMES)
    for step in range(story.first, max(whole) + stride, stride):
        live(step)
