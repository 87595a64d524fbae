"""Recipients and OP_RETURN data as callers write them (P21, P30)."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from custody.common.recipients import Recipient
from custody.server.errors import Invalid
from custody.server.proposals.payments import merge_amount, parse_op_return, parse_recipient
from multisig import Network

ADDRESS = "bcrt1qw508d6qejxtdg4y5r3zarvary0c5xw7kygt080"


def test_a_link_that_cannot_be_paid_is_refused_at_its_place():
    with pytest.raises(Invalid) as caught:
        parse_recipient(f"bitcoin:{ADDRESS}?amount=-1", Network.REGTEST, "/recipients/3")
    assert caught.value.faults[0].pointer == "/recipients/3"


def test_the_two_ways_to_name_an_amount_agree_or_are_refused():
    assert merge_amount(Recipient(ADDRESS, None), 5, "") == 5
    assert merge_amount(Recipient(ADDRESS, 5), None, "") == 5
    assert merge_amount(Recipient(ADDRESS, 5), 5, "") == 5
    with pytest.raises(Invalid, match="another amount"):
        merge_amount(Recipient(ADDRESS, 5), 6, "")
    with pytest.raises(Invalid, match="sweep: true"):
        merge_amount(Recipient(ADDRESS, None), None, "")


@pytest.mark.parametrize(
    ("text", "payload"),
    [
        ("hello", b"hello"),
        ("0xff00", b"\xff\x00"),
        ("0XFF", b"0XFF"),
        ("ü" * 40, "ü".encode() * 40),
        ("x" * 80, b"x" * 80),
    ],
)
def test_data(text, payload):
    assert parse_op_return(text) == payload


@pytest.mark.parametrize(
    "text",
    ["x" * 81, "ü" * 41, "0x", "0xf", "0xzz", "0x0 1", "0x" + "00" * 81, "CPT\x11", "0x43505410" + "00" * 32],
)
def test_p30_data_that_is_refused(text):
    with pytest.raises(Invalid) as caught:
        parse_op_return(text)
    assert caught.value.faults[0].pointer == "/op_return"


@given(st.binary(min_size=1, max_size=80).filter(lambda data: not data.startswith(b"CPT")))
def test_hex_says_any_bytes(data):
    assert parse_op_return("0x" + data.hex()) == data
