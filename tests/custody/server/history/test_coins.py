"""A vault's unspent coins: their states, their order, filters and pages."""

import pytest

from tests.support.custody import CAFE, Desk, ok
from tests.support.history import listed_coins as listed
from tests.support.prepared import Story


@pytest.fixture
def beginning() -> Story:
    return three_kinds


def three_kinds(desk: Desk) -> None:
    """A coin that is free, one that a proposal holds, one that waits for a block."""
    desk.deposit(400_000, 300_000)
    ok(desk.propose(250_000, fee_rate="2"))
    desk.deposit(60_000, blocks=0)


def test_each_coin_has_its_state(desk: Desk) -> None:
    found = {one["amount_sats"]: one for one in listed(desk)}
    assert list(found) == [400_000, 300_000, 60_000]
    (psbt_id,) = [one["psbt_id"] for one in ok(desk.admin.get("/api/v1/psbt", workspace_id=1))]
    states = sorted((one["state"], one["psbt_id"]) for one in found.values() if one["height"] is not None)
    assert states == [("locked", psbt_id), ("spendable", None)]
    assert (found[60_000]["state"], found[60_000]["confirmations"]) == ("unconfirmed", 0)
    (vault,) = desk.wallets()
    reserved = sum(one["amount_sats"] for one in listed(desk, state="locked"))
    assert reserved == vault["locked_sats"]
    assert sum(found) == vault["confirmed_sats"] + vault["unconfirmed_sats"]
    desk.sign_off(psbt_id)
    desk.settle()
    (change,) = [one for one in listed(desk) if one["is_change"]]
    assert (change["state"], change["height"]) == ("spendable", None)


def test_pages_and_filters(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("custody.server.history.coins.WINDOW", 1)
    for query, amounts in (
        ({"limit": 1}, [400_000, 300_000, 60_000]),
        ({"min_sats": 300_000}, [400_000, 300_000]),
        ({"max_sats": 299_999}, [60_000]),
        ({"state": "unconfirmed"}, [60_000]),
        ({"state": "immature"}, []),
        ({"address": CAFE}, []),
    ):
        assert [one["amount_sats"] for one in listed(desk, **query)] == amounts
    one, *_ = listed(desk)
    assert one in listed(desk, address=one["address"], limit=1)
