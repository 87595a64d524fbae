"""The order within a block, and the cursor's text."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from custody.server.history.movements import Cursor
from custody.server.network.movements import in_order

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
