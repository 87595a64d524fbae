"""The drawing: in proportion, nothing lost, and honest where it is not to scale."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from custody.pages.flow import FULL, MOST_COINS, THINNEST
from signerd.loopback.page.picture import picture_of
from signerd.loopback.page.proposals import shares
from signerd.shapes import ChangeView, CoinView, DataView, MoneyView, PaymentView

ADDRESS = "bcrt1q" + "z" * 58
AMOUNTS = st.lists(st.integers(min_value=1, max_value=21 * 10**14), min_size=1, max_size=12)


def money(coins, pays, back=(), *, fee=None, data=0):
    """``fee`` where it is not what is left, as a transaction that lies has it."""
    left = sum(coins) - sum(pays) - sum(back)
    return MoneyView(
        txid="ab" * 32,
        inputs=len(coins),
        total_in_sats=sum(coins),
        payments=tuple(
            PaymentView(output_index=n, amount_sats=sats, address=ADDRESS, script="00", on_screen=ADDRESS)
            for n, sats in enumerate(pays)
        ),
        change=tuple(
            ChangeView(output_index=n, amount_sats=sats, address=ADDRESS, on_screen=ADDRESS, chain=1, index=n)
            for n, sats in enumerate(back)
        ),
        data=tuple(DataView(output_index=9, data="abcd", text=None) for _ in range(data)),
        paid_sats=sum(pays),
        change_sats=sum(back),
        fee_sats=left if fee is None else fee,
        fee_rate="1",
        vsize=200,
        locktime=0,
        replaceable=True,
        coins=tuple(CoinView(txid="cd" * 32, vout=n, amount_sats=sats) for n, sats in enumerate(coins)),
    )


def test_widths_are_in_proportion():
    drawn = picture_of(money([600, 400], [250], [700]), whose="the vault")
    assert [band.height for band in drawn.coins] == pytest.approx([FULL * 0.6, FULL * 0.4])
    assert [band.height for band in drawn.outputs] == pytest.approx([FULL * 0.25, FULL * 0.7, FULL * 0.05])
    assert drawn.to_scale


def test_what_is_too_thin_is_drawn_wider_and_said():
    drawn = picture_of(money([10**8], [1], [10**8 - 100]), whose="the vault")
    assert [band.height for band in drawn.outputs][::2] == [THINNEST, THINNEST]
    assert not drawn.to_scale


def test_data_is_a_line_of_its_own_and_moves_no_money():
    drawn = picture_of(money([1000], [900], data=1), whose="the vault")
    assert [band.flow.kind for band in drawn.outputs] == ["pay", "data", "fee"]
    assert drawn.to_scale


def test_many_coins_are_one_band_and_no_output_ever_is():
    drawn = picture_of(money([10] * 30, [10] * 20), whose="the vault")
    assert len(drawn.coins) == MOST_COINS
    assert drawn.coins[-1].flow.title == "23 more coins"
    assert sum(band.flow.sats for band in drawn.coins) == 300
    assert len([band for band in drawn.outputs if band.flow.kind == "pay"]) == 20


@given(AMOUNTS, AMOUNTS, st.lists(st.integers(1, 10**15), max_size=3), st.integers(-(10**15), 10**15))
def test_every_address_is_whole_nothing_overlaps_and_nothing_leaves_the_drawing(coins, pays, back, fee):
    """Also for a transaction whose figures lie: it is refused, and drawn."""
    drawn = picture_of(money(coins, pays, back, fee=fee), whose="the vault")
    for column in (drawn.coins, drawn.outputs):
        for band in column:
            assert band.height >= THINNEST
            assert 0 <= band.y <= band.y + band.height <= drawn.height
        for above, below in pairwise(column):
            assert above.y + above.height < below.y
    for band in drawn.outputs:
        if band.flow.kind in {"pay", "back"}:
            lines = band.flow.lines
            if band.flow.kind == "back":
                (place,), *lines = lines
                assert place.startswith("change address ")
            assert "".join(group for line in lines for group in line) == ADDRESS
    assert drawn.middle_y >= 0
    assert drawn.middle_y + drawn.middle_height <= drawn.height


@given(AMOUNTS, AMOUNTS, st.integers(-(10**15), 10**15))
def test_the_table_has_the_same_outputs_and_bars_that_fit(coins, pays, fee):
    rows = shares(money(coins, pays, fee=fee), "the vault")
    assert [row.sats for row in rows] == [*pays, fee]
    assert all(0 <= row.per_mille <= 1_000 for row in rows)
