"""A coin that is set aside: no new proposal of any kind spends it, whoever asks, until it is released or its
time is over.
"""

from datetime import datetime, timedelta

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from custody.schemas.common import format_time
from custody.server.history import coins as listing
from custody.server.proposals import paying
from custody.server.store.models import ChainCoinRow, CoinAsideRow
from tests.support.custody import CAFE, SHOP, Desk, ok, refused
from tests.support.examples import examples
from tests.support.history import listed_coins
from tests.support.prepared import Story
from tests.support.replacing import bump, finished, made, take_back


@pytest.fixture
def beginning() -> Story:
    return three_coins


def three_coins(desk: Desk) -> None:
    desk.deposit(400_000, 300_000, 200_000)


def coin_of(desk: Desk, amount: int) -> str:
    (coin,) = desk.rows(ChainCoinRow, ChainCoinRow.amount_sats == amount)
    return f"{coin.txid}:{coin.vout}"


def set_aside(desk: Desk, amount: int, until: datetime | None = None) -> str:
    coin = coin_of(desk, amount)
    ends = {} if until is None else {"until": format_time(until)}
    ok(desk.of_vault("set-coin-aside", coin=coin, reason="for the auditor", **ends))
    return coin


def spent(desk: Desk, psbt_id: str) -> set[str]:
    return {str(coin) for coin in desk.coins(psbt_id)}


def most(desk: Desk) -> dict:
    query = {"workspace_id": desk.workspace_id, "wallet_id": desk.vault["id"], "recipients": SHOP}
    funds = ok(desk.admin.get("/api/v1/max-send", **query))
    assert desk.wallets()[0]["set_aside_sats"] == funds["set_aside_sats"]
    return funds


def test_it_is_listed_counted_and_refused_by_name_until_it_is_released(desk: Desk) -> None:
    before, coin = most(desk), set_aside(desk, 400_000)
    (shown,) = listed_coins(desk, state="set-aside")
    assert (shown["amount_sats"], shown["set_aside"]["reason"]) == (400_000, "for the auditor")
    assert (shown["set_aside"]["until"], shown["set_aside"]["set_by_name"]) == (None, "admin@example.org")
    now = most(desk)
    assert (now["set_aside_sats"], now["free_sats"]) == (400_000, 500_000)
    assert "400,000 sats in 1 coin set aside, to be spent once released" in now["words"]
    problem = refused(desk.propose(50_000, coins=[coin]), 422, "VALIDATION")
    assert "is set aside (“for the auditor”): release it" in problem["detail"]
    assert [each["code"] for each in problem["errors"]] == ["set-aside"]
    too_much = refused(desk.propose(600_000), 422, "INSUFFICIENT_FUNDS")
    assert "400,000 sats in 1 coin set aside" in too_much["detail"]
    assert spent(desk, made(desk.sweep())) == {coin_of(desk, 300_000), coin_of(desk, 200_000)}
    ok(desk.of_vault("release-coin", coin=coin))
    refused(desk.of_vault("release-coin", coin=coin), 404, "NOT_FOUND")
    assert spent(desk, made(desk.propose(50_000, coins=[coin]))) == {coin}
    assert before["set_aside_sats"] == 0
    assert [each for each in desk.audited() if each in {"COIN_SET_ASIDE", "COIN_RELEASED"}] == [
        "COIN_SET_ASIDE", "COIN_RELEASED",
    ]  # fmt: skip


def test_it_ends_by_the_clock_and_a_reorganisation_does_not_end_it(desk: Desk) -> None:
    coin = set_aside(desk, 400_000, desk.world.clock() + timedelta(days=2))
    depth = 7
    (row,) = desk.rows(ChainCoinRow, ChainCoinRow.amount_sats == 400_000)
    known = desk.chain.transaction(row.txid).transaction
    desk.reorganise(depth, depth + 1)
    desk.reorganise(0, 6, [known] if desk.chain.transaction(row.txid) is None else [])
    desk.mine(6)
    refused(desk.propose(50_000, coins=[coin]), 422, "VALIDATION")
    desk.later(days=2)
    assert listed_coins(desk, state="set-aside") == []
    assert most(desk)["set_aside_sats"] == 0
    assert spent(desk, made(desk.propose(50_000, coins=[coin]))) == {coin}


def test_a_bump_keeps_its_own_coin_and_takes_none_that_is_set_aside(desk: Desk) -> None:
    own, other = coin_of(desk, 200_000), coin_of(desk, 300_000)
    paid = made(desk.propose(199_000, coins=[own], fee_rate="2"))
    finished(desk, paid)
    # On its way.
    refused(desk.of_vault("set-coin-aside", coin=own, reason="late"), 422, "VALIDATION")
    for amount in (300_000, 400_000):
        set_aside(desk, amount)
    problem = refused(bump(desk, paid, fee_rate="40"), 422, "INSUFFICIENT_FUNDS")
    assert "700,000 sats in 2 coins set aside, to be spent once released" in problem["detail"]
    ok(desk.of_vault("release-coin", coin=other))
    assert spent(desk, made(bump(desk, paid, fee_rate="40"))) == {own, other}


def test_change_that_is_set_aside_stays_so_in_whatever_version_is_on_the_chain(desk: Desk) -> None:
    paid = made(desk.propose(150_000, coins=[coin_of(desk, 400_000)], fee_rate="2"))
    first = finished(desk, paid)
    (change,) = [f"{each['txid']}:{each['vout']}" for each in listed_coins(desk) if each["txid"] == first]
    ok(desk.of_vault("set-coin-aside", coin=change, reason="for the auditor"))
    original = desk.chain.transaction(first).transaction

    def held() -> dict:
        (one,) = listed_coins(desk, state="set-aside")
        assert (one["is_change"], one["set_aside"]["reason"]) == (True, "for the auditor")
        assert len(desk.rows(CoinAsideRow)) == 1
        return one

    newer = finished(desk, made(bump(desk, paid, fee_rate="40")))
    assert held()["txid"] == newer
    assert most(desk)["set_aside_sats"] == held()["amount_sats"]
    # The first one is mined after all, and then the other one after all.
    version = desk.chain.transaction(newer).transaction
    desk.mine()
    for depth, known in ((1, original), (2, version)):
        desk.reorganise(depth, depth + 1, [known])
        desk.settle()
        assert held()["txid"] == known.txid
    ok(desk.of_vault("release-coin", coin=f"{held()['txid']}:{held()['vout']}"))
    desk.reorganise(3, 4, [original])
    desk.settle()
    assert (listed_coins(desk, state="set-aside"), desk.rows(CoinAsideRow)) == ([], [])


@pytest.mark.parametrize("is_spent", [True, False])
def test_what_is_set_aside_stays_so_where_its_payment_is_taken_back(desk: Desk, is_spent: bool) -> None:
    """Coins that the payment spends; and what it pays to another address of the vault than the one to which
    everything returns. Once released, it stays released.
    """
    to = SHOP if is_spent else desk.vault["receive_address"]
    paid = made(desk.propose(450_000, recipients=[to], fee_rate="2"))
    coins = desk.coins(paid) if is_spent else [f"{finished(desk, paid)}:0", f"{finished(desk, paid)}:1"]
    for number, coin in enumerate(coins):
        day = {"until": format_time(desk.world.clock() + timedelta(days=1))} if number else {}
        ok(desk.of_vault("set-coin-aside", coin=f"{coin}", reason="for the auditor", **day))
    back = finished(desk, made(take_back(desk, paid, fee_rate="40")))
    (held,) = listed_coins(desk, state="set-aside")
    assert (held["txid"], held["set_aside"]["until"]) == (back, None)
    desk.mine()
    ok(desk.of_vault("release-coin", coin=f"{back}:0"))
    desk.reorganise(1, 2, [desk.chain.transaction(back).transaction])
    desk.settle()
    assert (listed_coins(desk, state="set-aside"), desk.rows(CoinAsideRow)) == ([], [])


def test_a_coin_that_is_set_aside_while_it_is_being_chosen_is_not_taken(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between the draft and the lock; the draft is made anew, of other coins."""
    propose, done = paying.propose, list[str]()

    def slow(ctx, read):
        steps = propose(ctx, read)
        part = next(steps)
        if not done:
            done.append("once")
            for amount in (400_000, 300_000):
                set_aside(desk, amount)
        ctx = yield part
        try:
            while True:
                ctx = yield steps.send(ctx)
        except StopIteration as end:
            return end.value

    monkeypatch.setattr(paying, "propose", slow)
    assert spent(desk, made(desk.propose(50_000))) == {coin_of(desk, 200_000)}


def test_what_cannot_be_set_aside(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    other = ok(desk.create_vault("Second"))
    coin = coin_of(desk, 400_000)
    refused(desk.tell("set-coin-aside", vault_id=other["id"], coin=coin, reason="x"), 422, "VALIDATION")
    refused(desk.of_vault("set-coin-aside", coin=f"{'0' * 64}:0", reason="x"), 422, "VALIDATION")
    past = format_time(desk.world.clock())
    refused(desk.of_vault("set-coin-aside", coin=coin, reason="x", until=past), 422, "VALIDATION")
    refused(desk.of_vault("set-coin-aside", "alice", coin=coin, reason="x"), 403, "PERMISSION_DENIED")
    monkeypatch.setattr(listing, "MAX_ASIDE", 1)
    set_aside(desk, 400_000, desk.world.clock() + timedelta(hours=1))
    set_aside(desk, 400_000, desk.world.clock() + timedelta(hours=2))
    two, three = ({"coin": coin_of(desk, sats), "reason": "x"} for sats in (300_000, 200_000))
    refused(desk.of_vault("set-coin-aside", **two), 409, "STATE_CONFLICT")
    # What is over leaves room, and so does what is spent.
    desk.later(hours=2)
    spending = made(desk.propose(250_000, coins=[two["coin"]]))
    ok(desk.of_vault("set-coin-aside", **two))
    refused(desk.of_vault("set-coin-aside", **three), 409, "STATE_CONFLICT")
    # The list has it, whatever else holds it.
    (listed,) = listed_coins(desk, state="set-aside", limit=1)
    assert (listed["amount_sats"], listed["state"], listed["psbt_id"]) == (300_000, "locked", spending)
    finished(desk, spending)
    assert listed_coins(desk, state="set-aside") == []
    ok(desk.of_vault("set-coin-aside", **three))
    refused(desk.tell("release-coin", vault_id=other["id"], coin=two["coin"]), 404, "NOT_FOUND")


def test_where_a_proposal_locks_every_coin_it_is_named(desk: Desk) -> None:
    holder = made(desk.sweep(description="Invoice 1"))
    held = f"all 0.00900000 BTC are locked by proposal {holder} “Invoice 1”"
    said = f"{held}. Have that signed, or cancel it, first."
    assert most(desk)["words"] == f"At most 0 sats can be sent now: {said}"


def test_where_every_coin_is_set_aside_each_answer_says_so(desk: Desk) -> None:
    for amount in (400_000, 300_000, 200_000):
        set_aside(desk, amount)
    why = "(beside 900,000 sats in 3 coins set aside, to be spent once released)"
    said = most(desk)
    assert (said["bound_by"], said["words"]) == (
        "coins", f"At most 0 sats can be sent now: nothing is free {why}.",
    )  # fmt: skip
    assert why in refused(desk.propose(50_000), 422, "INSUFFICIENT_FUNDS")["detail"]
    assert f"no coin to send {why}." in refused(desk.sweep(), 422, "INSUFFICIENT_FUNDS")["detail"]


@settings(suppress_health_check=list(HealthCheck), max_examples=examples(15))
@given(st.sets(st.sampled_from((400_000, 300_000, 200_000))), st.integers(1_000, 900_000))
def test_whatever_is_set_aside_the_sums_hold_and_no_payment_takes_it(
    desk: Desk, aside: set[int], pays: int
) -> None:
    coins = {coin_of(desk, amount) for amount in aside}
    for amount in aside:
        set_aside(desk, amount)
    said = most(desk)
    assert (said["set_aside_sats"], said["free_sats"]) == (sum(aside), 900_000 - sum(aside))
    answer = desk.admin.post(
        "/api/v1/preview-psbt",
        {
            "workspace_id": desk.workspace_id, "wallet_id": desk.vault["id"], "tx_type": "send",
            "recipients": [CAFE], "amounts_sats": [pays],
        },
    )  # fmt: skip
    if answer.status_code == 200:
        assert not coins & set(answer.json()["coins"])
    else:
        assert pays > said["amount_sats"] - 1_000
    for coin in coins:
        ok(desk.of_vault("release-coin", coin=coin))
    assert desk.rows(CoinAsideRow) == []
