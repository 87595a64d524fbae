"""Typed amounts: always with a unit, never ambiguous."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from custody.cli.common import parse_amount
from custody.common.text import btc
from multisig import Sats, format_btc
from multisig.units import MAX_MONEY


@given(st.integers(0, MAX_MONEY))
def test_either_unit_means_the_same(sats):
    assert btc(sats) == format_btc(Sats(sats))
    for text in (f"{btc(sats)}BTC", f"{btc(sats)} btc", f"{sats}sats", f"{sats:,} sat", f" {sats} SATS "):
        assert parse_amount(text) == sats


@pytest.mark.parametrize(
    "text",
    ["", "1", "BTC", ".5BTC", "1.BTC", "1.123456789BTC", "01BTC", "1,5BTC", "1,00 sats", "1.5sats", "-1BTC",
     "1e3sats", "+1BTC", "1mBTC", "1 BTC 2", "٣BTC", "1_000sats", "NaNBTC"],
)  # fmt: skip
def test_an_ambiguous_amount_is_refused(text):
    with pytest.raises(ValueError, match="write it with its unit"):
        parse_amount(text)
