"""The order within a block, the balances, the cursor's text, and the table of prices by day."""

from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from custody.schemas.common import MAX_SATS
from custody.schemas.history import FiatValue
from custody.server.domain.history import MAX_DAYS, BadRates, Cursor, Rate, balances, in_order, parse_rates

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


def test_the_balance_after_each():
    assert balances(5, [1, -6, 10]) == [6, 0, 10]
    assert balances(5, []) == []


@given(st.none() | st.tuples(NUMBERS, NUMBERS), st.none() | st.tuples(SEEN, TXIDS))
def test_a_cursor_is_read_as_it_was_written(confirmed, pending):
    cursor = Cursor(confirmed, pending)
    assert Cursor.parse(str(cursor)) == (cursor if cursor != Cursor() else None)


@pytest.mark.parametrize("text", ["", "1", "1.", "_1_00", "1.2_", "-1.2", "1.2_3", "99999999999.1"])
def test_no_other_text_is_a_cursor(text):
    assert Cursor.parse(text) is None


HEAD = "date,currency,rate\n"
FRIDAY = date(2026, 5, 1)


def test_the_day_that_counts():
    table = parse_rates(HEAD + "2026-05-11,EUR,90000\r\n2026-05-01,EUR,81234.56\n")
    assert table.on(FRIDAY) == Rate("EUR", FRIDAY, Decimal("81234.56"))
    assert table.on(FRIDAY + timedelta(days=7)) == table.on(FRIDAY)
    assert table.on(FRIDAY + timedelta(days=8)) is None
    assert table.on(FRIDAY - timedelta(days=1)) is None


@given(
    st.integers(-MAX_SATS, MAX_SATS),
    st.decimals(Decimal("0.00000001"), Decimal(10**15 - 1), places=8, allow_nan=False),
)
def test_an_amount_is_exact_to_half_a_cent_and_fits_the_answer(sats, per_btc):
    value = Rate("EUR", FRIDAY, per_btc).value_of(sats)
    exact = Fraction(per_btc) * sats / 10**8
    assert abs(Fraction(value) - exact) <= Fraction(1, 200)
    assert value.as_tuple().exponent == -2
    amount = f"{value:f}"
    FiatValue(currency="EUR", rate=f"{per_btc:f}", rate_date=FRIDAY, amount=amount)


def test_a_tie_goes_to_the_even_cent():
    rate = Rate("EUR", FRIDAY, Decimal(500_000))
    assert [str(rate.value_of(sats)) for sats in (1, 3, -1, -3)] == ["0.00", "0.02", "-0.00", "-0.02"]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "still being written"),
        (HEAD, "no rate"),
        (HEAD + "2026-05-01,EUR,8", "still being written"),
        ("day,currency,rate\n2026-05-01,EUR,8\n", "line 1"),
        (HEAD + "2026-05-01;EUR;8\n", "line 2 has 1 columns"),
        (HEAD + "2026-05-01,EUR,8\n\n", "line 3 has 0 columns"),
        (HEAD + "20260501,EUR,8\n", "the date"),
        (HEAD + "2026-02-30,EUR,8\n", "the date"),
        (HEAD + "2026-05-01,=1+,8\n", "the currency"),
        (HEAD + "2026-05-01,EUR,8e3\n", "the rate"),
        (HEAD + "2026-05-01,EUR,-8\n", "the rate"),
        (HEAD + "2026-05-01,EUR,0.00\n", "the rate"),
        (HEAD + '2026-05-01,EUR,"8,5"\n', "the rate"),
        (HEAD + "2026-05-01,EUR,٨\n", "the rate"),
        (HEAD + "2026-05-01,EUR,8\n2026-05-02,USD,8\n", "use one currency"),
        (HEAD + "2026-05-01,EUR,8\n2026-05-01,EUR,8\n", "a second time"),
        (HEAD + '2026-05-01,EUR,"8\n', "no CSV"),
        (HEAD + "2026-05-01,EUR,8\n" * (MAX_DAYS + 1), "more than"),
    ],
)
def test_p72_what_is_no_table_is_refused_with_its_line(text, words):
    with pytest.raises(BadRates, match=words):
        parse_rates(text)
