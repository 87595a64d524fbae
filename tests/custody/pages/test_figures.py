"""Figures and names as HTML: both units, groups that copy as one, and escaped text."""

import re
import unicodedata
from datetime import datetime

from hypothesis import example, given
from hypothesis import strategies as st

from custody.common.pages import figures

SATS = st.integers(min_value=-(10**18), max_value=10**18)


def words(html) -> str:
    return re.sub(r"<[^>]*>", "", html)


@given(SATS)
@example(1)
def test_an_amount_says_both_units_and_they_agree(sats):
    shown = words(figures.amount(sats)).replace(",", "").replace(figures.MINUS, "-")
    btc, raw, more = re.fullmatch(r"(-?\d+\.\d{8}) BTC (-?\d+) sat(s?)", shown).groups()
    assert bool(more) == (abs(sats) != 1)
    assert int(raw) == sats
    assert int(btc.replace(".", "")) == sats


@given(st.text(st.characters(categories=["Ll", "Lu", "Nd"]), max_size=100))
def test_an_address_is_whole_and_is_copied_as_it_is(text):
    assert words(figures.address(text)) == text
    assert all(len(group) <= figures.ADDRESS_GROUP for group in figures.grouped(text))


@given(st.text(max_size=60))
def test_l8_no_text_of_others_becomes_markup_or_moves_what_is_read(text):
    for shown in (
        figures.address(text),
        figures.hexadecimal(text),
        figures.moment(text),
        figures.sentence(text),
    ):
        inside = re.sub(r"</?(span|wbr|time|code)( [a-z]+=\"[^\"<>]*\")*>", "", shown)
        assert "<" not in inside
        assert ">" not in inside
        assert not [char for char in shown if unicodedata.category(char) in {"Cf", "Cc", "Zl", "Zp"}]


def test_what_is_to_be_typed_stands_apart_from_the_sentence():
    assert figures.sentence("<b>: run `signerd login`, or `x`.") == (
        "&lt;b&gt;: run <code>signerd login</code>, or <code>x</code>."
    )
    assert figures.sentence("a ` alone") == "a ` alone"


def test_a_time_is_local_with_utc_beside_it():
    shown = figures.moment("2026-01-02T03:04:05.678+00:00")
    here = datetime.fromisoformat("2026-01-02T03:04:05+00:00").astimezone()
    assert 'datetime="2026-01-02T03:04:05.678000+00:00"' in shown
    assert 'title="2026-01-02 03:04:05 UTC"' in shown
    assert words(shown) == f"{here:%-d %b %Y, %H:%M:%S}"
