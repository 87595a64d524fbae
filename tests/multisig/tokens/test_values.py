"""; docs/understand/tokens.md, from which others write theirs."""

import re
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from multisig import InvalidToken
from multisig.tokens import (
    MAX_TOKEN_AMOUNT,
    Function,
    bytecode_hash,
    decode_payload,
    encode_payload,
    format_units,
    parse_bytecode,
    token_amount,
)
from multisig.tokens.values import _HIDDEN, leb128, read_leb128
from multisig.wire import Reader, WireError
from tests.support.vectors import ROOT


@given(st.integers(0, MAX_TOKEN_AMOUNT), st.integers(0, 18))
def test_whole_tokens_are_exact(amount, decimals):
    text = format_units(amount, decimals)
    assert Decimal(text).scaleb(decimals) == amount
    assert len(text.partition(".")[2]) == decimals


@pytest.mark.parametrize("decimals", [-1, 19, True, 2.0, "2", None])
def test_decimals_out_of_range_p21(decimals):
    with pytest.raises(InvalidToken, match="0 to 18"):
        format_units(1, decimals)


@pytest.mark.parametrize("value", [-1, MAX_TOKEN_AMOUNT + 1, True, 1.0, "1", None, Decimal(1)])
def test_amounts_out_of_range_p31(value):
    with pytest.raises(InvalidToken):
        token_amount(value)


@given(st.integers(0, 63).map(lambda bits: 2**bits) | st.integers(0, 2**63 - 1))
def test_leb128_round_trip(number):
    number = min(number, 2**63 - 1)
    reader = Reader(leb128(number))
    assert read_leb128(reader) == number
    reader.finish()


@pytest.mark.parametrize(
    ("number", "encoded"),
    [(0, "00"), (127, "7f"), (128, "8001"), (624485, "e58e26"), (2**63 - 1, "ffffffffffffffff7f")],
)
def test_leb128_form(number, encoded):
    """624485 is the example of the DWARF debugging format,
    from which LEB128 comes (version 4, section 7.6).
    """
    assert leb128(number).hex() == encoded


@given(st.binary(min_size=1, max_size=11))
def test_only_the_shortest_form_is_read(data):
    reader = Reader(data)
    try:
        number = read_leb128(reader)
    except WireError:
        return
    assert data.startswith(leb128(number))
    assert reader.offset == len(leb128(number))


@pytest.mark.parametrize("number", [-1, 2**63])
def test_leb128_writes_nothing_beyond_its_bound(number):
    with pytest.raises(ValueError, match="2\\^63"):
        leb128(number)


PAGE = (ROOT / "docs" / "understand" / "tokens.md").read_text(encoding="utf-8")


def blocks(language=""):
    return re.findall(rf"^```{language}\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE)


def test_the_example_payloads_are_valid():
    examples = [bytes.fromhex(block) for block in blocks()]
    transfer, deploy = (decode_payload(example) for example in examples)
    assert (transfer.function, transfer.amount) == (Function.TRANSFER, 1_250)
    assert (deploy.ticker, deploy.whitelist_enabled, deploy.max_supply) == ("GOLD", True, 5_000)
    assert [encode_payload(payload) for payload in (transfer, deploy)] == examples


def test_the_example_bytecode_is_valid_and_has_the_hash_that_is_named():
    (block,) = blocks("json")
    blob = block.strip().encode()
    assert parse_bytecode(blob).blob == blob
    assert f"`{bytecode_hash(blob).hex()}`" in PAGE


def test_the_page_lists_the_hidden_code_points():
    listed = PAGE.partition("### Hidden code points")[2].partition("· and the last two")[0]
    found = re.findall(r"U\+([0-9A-F]{4,6})(?:–([0-9A-F]{4,6}))?", listed)
    assert [(int(first, 16), int(last or first, 16)) for first, last in found] == list(_HIDDEN)
