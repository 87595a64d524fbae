"""A vault's movements: what is listed, in which order, with which balances; pages, filters, forks."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlalchemy import select

from custody.schemas.call import PermissionName
from custody.server.history import movements
from custody.server.history.movements import Cursor
from custody.server.network.movements import in_order
from custody.server.store.models import ChainCoinRow
from tests.support.custody import CAFE, SHOP, Desk, ok, refused
from tests.support.history import listed, paged, read, require_truth
from tests.support.prepared import Story
from tests.support.replacing import bump, finished, made
from tests.support.staff import add_someone


@pytest.fixture
def beginning() -> Story:
    return a_month


def a_month(desk: Desk) -> None:
    """Two deposits, a payment to two, and a deposit that waits."""
    desk.deposit(400_000, 300_000)
    desk.enter("Corner shop", SHOP)
    finished(desk, made(desk.propose(50_000, 20_000, description="Invoice of May, Über 70", fee_rate="2")))
    desk.mine()
    desk.world.clock.advance(minutes=1)
    desk.deposit(60_000, blocks=0)


def test_what_the_list_says(desk: Desk) -> None:
    first, second, paid, waiting = listed(desk, order="oldest")
    fee = paid["fee_sats"]
    kinds = [one["kind"] for one in (first, second, paid, waiting)]
    assert kinds == ["deposit", "deposit", "payment", "deposit"]
    assert {first["amount_sats"], second["amount_sats"]} == {400_000, 300_000}
    assert second["balance_sats"] == 700_000
    assert (paid["amount_sats"], paid["balance_sats"]) == (-70_000 - fee, 630_000 - fee)
    outputs = [(one["address"], one["amount_sats"], one["label"]) for one in paid["outputs"]]
    assert outputs == [(SHOP, 50_000, "Corner shop"), (CAFE, 20_000, None)]
    assert (paid["title"], paid["created_by_name"]) == ("Invoice of May, Über 70", "admin@example.org")
    assert paid["confirmations"] == 1
    (came,) = first["outputs"]
    assert came["amount_sats"] == first["received_sats"]
    assert first["at"].startswith("20")
    assert (waiting["status"], waiting["confirmations"], waiting["balance_sats"]) == ("pending", 0, None)
    require_truth(desk)


def test_what_filters_find(desk: Desk) -> None:
    for query, amounts in (
        ({"kind": "payment"}, [70_000]),
        ({"status": "pending"}, [60_000]),
        ({"status": "confirmed", "kind": "deposit", "min_sats": 350_000}, [400_000]),
        ({"max_sats": 65_000}, [60_000]),
        ({"address": SHOP.upper()}, [70_000]),
        ({"address": CAFE}, [70_000]),
        ({"label": "corner"}, [70_000]),
        ({"label": "of MAY"}, [70_000]),
        ({"label": "ÜBER"}, [70_000]),
        ({"label": "%"}, []),
        ({"txid": "0" * 64}, []),
        ({"from_time": "2100-01-01T00:00:00Z"}, []),
        ({"to_time": "2000-01-01T00:00:00Z"}, []),
    ):
        for order in ("newest", "oldest"):
            found = listed(desk, order=order, **query)
            assert [abs(one["amount_sats"]) - (one["fee_sats"] or 0) for one in found] == amounts, query
    first, *_ = found = listed(desk, order="oldest")
    (address,) = {output["address"] for output in first["outputs"]}
    assert first in listed(desk, address=address)
    for one in found:
        assert listed(desk, txid=one["txid"]) == [one]
        assert one in listed(desk, from_time=one["at"])
        assert one not in listed(desk, to_time=one["at"])


def test_a_page_looks_at_a_bounded_number(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where a filter leaves much out, pages are short, and all come to the end."""
    # A cursor that no answer gave is refused.
    query = {"workspace_id": 1, "vault_id": desk.vault["id"], "cursor": "1.2_3_ab"}
    refused(desk.admin.get("/api/v1/vault-history", **query), 422, "VALIDATION")
    monkeypatch.setattr(movements, "WINDOW", 1)
    for order in ("newest", "oldest"):
        assert read(desk, order=order, max_sats=65_000, limit=2)["next_cursor"] is not None
        assert [one["amount_sats"] for one in listed(desk, order=order, max_sats=65_000, limit=2)] == [60_000]


def test_pages_are_the_same_whatever_comes_meanwhile(desk: Desk) -> None:
    """What was pending and confirms is shown at its new place: it may come twice, and nothing is left out."""
    before = {order: [one["txid"] for one in listed(desk, order=order)] for order in ("newest", "oldest")}
    reading = {order: paged(desk, order=order, limit=1) for order in before}
    shown = {order: [next(pages)["txid"] for _ in range(3)] for order, pages in reading.items()}
    desk.deposit(90_000, blocks=0)
    desk.mine()
    desk.deposit(91_000, blocks=0)
    for order, pages in reading.items():
        shown[order] += [one["txid"] for one in pages]
        kept = list(dict.fromkeys(shown[order]))
        assert [txid for txid in kept if txid in before[order]] == before[order]
    require_truth(desk)


def test_a_bump_is_listed_once_and_a_self_spend_is_a_consolidation(desk: Desk) -> None:
    paid = made(desk.propose(30_000, recipients=[CAFE], fee_rate="2"))
    finished(desk, paid)
    finished(desk, newer := made(bump(desk, paid, fee_rate="20")))
    (new,) = listed(desk, kind="payment", status="pending")
    assert (new["psbt_id"], new["replaces_psbt_id"]) == (newer, paid)
    own = desk.wallets()[0]["receive_address"]
    desk.mine()
    finished(desk, made(desk.propose(40_000, recipients=[own])))
    (moved_on,) = listed(desk, kind="consolidation")
    assert moved_on["amount_sats"] == -moved_on["fee_sats"]


def test_who_may_not_read_the_address_book_learns_no_name_of_it(desk: Desk) -> None:
    """P61: neither from a movement nor by searching."""
    auditor = add_someone(desk.world, "Auditor", {PermissionName.VIEW_BALANCES}).calls
    (paid,) = read(desk, auditor, kind="payment")["movements"]
    assert [output["label"] for output in paid["outputs"]] == [None, None]
    assert read(desk, auditor, label="corner")["movements"] == []
    assert len(read(desk, auditor, label="invoice")["movements"]) == 1


def test_a_payee_that_is_a_vault_of_the_workspace_is_called_so(desk: Desk) -> None:
    savings = ok(desk.create_vault("Savings"))
    psbt_id = made(desk.propose(30_000, recipients=[savings["address"]], fee_rate="2"))
    finished(desk, psbt_id)
    (paid,) = (one for one in listed(desk) if one["psbt_id"] == psbt_id)
    assert [one["label"] for one in paid["outputs"]] == ["Savings"]


def test_many_outputs_of_one_deposit_are_counted(desk: Desk) -> None:
    (txid,) = desk.deposit(70_000, blocks=0)
    with desk.store.write() as db:
        coin = db.scalars(select(ChainCoinRow).where(ChainCoinRow.txid == txid)).one()
        values = {column.name: getattr(coin, column.name) for column in ChainCoinRow.__table__.columns}
        db.add_all(ChainCoinRow(**values | {"vout": 1_000 + number}) for number in range(30))
    (found,) = listed(desk, txid=txid)
    assert (len(found["outputs"]), found["more_outputs"]) == (20, 11)
    assert found["received_sats"] == 70_000


NUMBERS = st.integers(0, 10**9)
TXIDS = st.integers(0, 2**256 - 1).map(lambda number: f"{number:064x}")
SEEN = st.integers(0, 10**15).map(
    lambda micros: datetime(2026, 1, 1, tzinfo=UTC) + timedelta(microseconds=micros)
)


@given(st.lists(st.tuples(st.integers(0, 11), st.integers(0, 11)), max_size=30))
def test_what_is_spent_comes_before_what_spends_it(pairs):
    spends = {}
    for one, other in pairs:
        if one != other:
            spends.setdefault(f"{max(one, other) * 7 % 12}", set()).add(f"{min(one, other) * 7 % 12}")
    ordered = in_order([f"{number}" for number in range(12)], spends)
    assert sorted(ordered) == sorted(f"{number}" for number in range(12))
    assert all(ordered.index(spent) < ordered.index(one) for one, some in spends.items() for spent in some)
    assert in_order(reversed(ordered), spends) == ordered


def test_two_that_spend_each_other_stop_nothing():
    """No block holds them; an explorer may say so."""
    assert in_order(["b", "c", "a"], {"a": {"b"}, "b": {"a"}}) == ["a", "b", "c"]


@given(st.none() | st.tuples(NUMBERS, NUMBERS), st.none() | st.tuples(SEEN, TXIDS))
def test_a_cursor_is_read_as_it_was_written(confirmed, pending):
    cursor = Cursor(confirmed, pending)
    assert Cursor.parse(str(cursor)) == (cursor if cursor != Cursor() else None)


@pytest.mark.parametrize("text", ["", "1", "1.", "_1_00", "1.2_", "-1.2", "1.2_3", "99999999999.1"])
def test_no_other_text_is_a_cursor(text):
    assert Cursor.parse(text) is None
