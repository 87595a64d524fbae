"""A month's statement agrees with the chain, and stays as it is, whatever was reorganised and wherever its
blocks fall.
"""

import random
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Final

import httpx
import pytest

from custody.server.store.models import MovementRow
from multisig import CHANGE, RECEIVE, Sats
from tests.support.custody import Desk, ok, refused
from tests.support.examples import drawn
from tests.support.regtest import mine_branch
from tests.support.replacing import finished, made

SHALLOW: Final = 5


def asked(desk: Desk, month: datetime, **query: object) -> httpx.Response:
    where = {"workspace_id": desk.workspace_id, "vault_id": desk.vault["id"], "month": f"{month:%Y-%m}"}
    return desk.admin.get("/api/v1/vault-statement", **where, **query)


def statement(desk: Desk, month: datetime, **query: object) -> dict:
    page = ok(asked(desk, month, **query))
    for one in page["movements"]:
        # The one thing that goes on.
        del one["confirmations"]
    if (cursor := page.pop("next_cursor")) is not None:
        page["movements"] += statement(desk, month, **query | {"cursor": cursor})["movements"]
    return page


def not_closed(desk: Desk, month: datetime) -> str:
    return refused(asked(desk, month), 409, "STATE_CONFLICT")["detail"]


def balance_at(desk: Desk, height: int) -> int:
    """From the chain alone."""
    scripts = [desk.policy.script_pubkey(branch, at) for branch in (RECEIVE, CHANGE) for at in range(60)]
    return sum(
        each.amount
        for each in desk.chain.outputs_to(scripts)
        if each.block is not None
        and each.block.height <= height
        and not (each.spent is not None and each.spent.block and each.spent.block.height <= height)
    )


def require_sums(desk: Desk, said: dict) -> None:
    """With the chain at its two heights, and of its movements, all of which are there."""
    assert said["opening_sats"] == balance_at(desk, said["opening_height"])
    assert said["closing_sats"] == balance_at(desk, said["closing_height"])
    assert said["opening_sats"] + said["came_sats"] - said["went_sats"] == said["closing_sats"]
    assert len(said["movements"]) == said["count"]
    balances = [said["opening_sats"], *(one["balance_sats"] for one in said["movements"])]
    amounts = [one["amount_sats"] for one in said["movements"]]
    assert [after - before for before, after in pairwise(balances)] == amounts
    assert balances[-1] == said["closing_sats"]


def before(desk: Desk, end: datetime) -> list[str]:
    """The transactions up to the first block of the vault's whose header says this time or a later one."""
    mined, found = desk.rows(MovementRow, MovementRow.height.is_not(None)), list[str]()
    for row in sorted(mined, key=lambda row: (row.height, row.place)):
        at = datetime.fromtimestamp(desk.chain.block_at(row.height).time, UTC)
        assert row.mined_at == at
        if at >= end:
            break
        found.append(row.txid)
    return found


@pytest.mark.parametrize("life", drawn(range(24), 16, of="statements that stay"))
def test_a_closed_month_agrees_with_the_chain_and_stays_whatever_times_blocks_say(
    desk: Desk, life: int
) -> None:
    """Their headers may say less than the block before, and up to two hours more than it is; a
    reorganisation of ``SHALLOW`` blocks may move what was in the last of them.
    """
    chance, month = random.Random(life), desk.world.clock().replace(day=1, hour=0, minute=0)
    end = (month + timedelta(days=32)).replace(day=1)
    desk.deposit(900_000)
    assert "ends on" in not_closed(desk, month)
    desk.later(seconds=(end + timedelta(days=2) - desk.world.clock()).total_seconds())
    address, today = desk.wallets()[0]["receive_address"], desk.world.clock()
    moment, closed, is_tried = end - timedelta(hours=chance.choice([1, 2])), dict[str, object](), False
    for _ in range(40):
        moment += timedelta(minutes=chance.choice([1, 10, 20]))
        late = chance.choice([-2, -2, -2, 2])
        if chance.randrange(3 if late < 0 else 12) == 0:
            if chance.randrange(3) == 0:
                finished(desk, made(desk.propose(1_000, fee_rate="2")))
            else:
                desk.chain.fund(address, Sats(chance.randrange(1_000, 9_000)))
        desk.world.clock.now = moment + timedelta(hours=late)
        if chance.randrange(8) == 0 or (closed and not is_tried):
            depth, is_tried = SHALLOW if closed else chance.randint(1, SHALLOW), bool(closed)
            mine_branch(desk.chain, depth, depth + 1)
        desk.chain.mine(1)
        desk.world.clock.now = today
        desk.watcher.look()
        if not closed and asked(desk, month).status_code == 409:
            assert "may still change" in not_closed(desk, month)
            continue
        said = statement(desk, month, limit=500)
        require_sums(desk, said)
        closed = closed or said
        assert said == closed
    assert [one["txid"] for one in closed["movements"]] == before(desk, end)
    assert statement(desk, month, limit=1) == closed
    if (cursor := ok(asked(desk, month, limit=1))["next_cursor"]) is not None:
        refused(asked(desk, month, cursor="9999999999.9999999999"), 422, "VALIDATION")
        refused(asked(desk, month - timedelta(days=1), cursor=cursor), 422, "VALIDATION")
    nothing = statement(desk, month - timedelta(days=1))
    assert (nothing["opening_sats"], nothing["closing_sats"], nothing["count"]) == (0, 0, 0)
