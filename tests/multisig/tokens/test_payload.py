"""CPT-1 payloads: the vectors, a second decoder that agrees, and values that cannot be wrong."""

import dataclasses
import re

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from multisig import InvalidToken
from multisig.script import parse_op_return
from multisig.tokens import (
    MAX_TOKEN_AMOUNT,
    Function,
    TokenCall,
    decode_payload,
    encode_payload,
    is_token_payload,
    token_script,
)
from tests.multisig.tokens import grammar
from tests.multisig.tokens.samples import CONTRACT, OWNER, PAYLOADS, as_vector, bytecode
from tests.support.vectors import own

VALID, INVALID = own("tokens/payloads_valid.json"), own("tokens/payloads_invalid.json")


def understood(data):
    """What the package makes of data, in the grammar's form."""
    try:
        return as_vector(decode_payload(data))
    except InvalidToken:
        return None


@pytest.mark.parametrize("vector", VALID)
def test_valid_payloads_decode_to_what_they_say_and_encode_again(vector):
    data = bytes.fromhex(vector["hex"])
    expected = {name: value for name, value in vector.items() if name not in {"id", "hex"}}
    assert is_token_payload(data)
    assert as_vector(decode_payload(data)) == grammar.decode(data) == expected
    assert encode_payload(decode_payload(data)) == grammar.encode(expected) == data


@pytest.mark.parametrize("vector", INVALID)
def test_each_way_to_be_invalid_is_refused_and_named(vector):
    data = bytes.fromhex(vector["hex"])
    assert grammar.decode(data) is None
    with pytest.raises(InvalidToken, match=re.escape(vector["says"])):
        decode_payload(data)


@pytest.mark.parametrize("vector", VALID)
def test_no_prefix_of_a_payload_is_one_and_no_byte_may_follow(vector):
    data = bytes.fromhex(vector["hex"])
    assert [length for length in range(len(data)) if understood(data[:length])] == []
    assert [byte for byte in range(256) if understood(data + bytes((byte,)))] == []


@pytest.mark.parametrize("vector", VALID)
def test_every_change_of_one_bit_is_another_payload_or_none(vector):
    data = bytes.fromhex(vector["hex"])
    for bit in range(len(data) * 8):
        changed = bytearray(data)
        changed[bit // 8] ^= 1 << bit % 8
        seen = understood(bytes(changed))
        assert seen == grammar.decode(bytes(changed))
        assert seen != as_vector(decode_payload(data))


@given(PAYLOADS)
def test_round_trip(payload):
    data = encode_payload(payload)
    assert len(data) <= 78
    assert decode_payload(data) == payload
    assert grammar.decode(data) == as_vector(payload)
    assert grammar.encode(as_vector(payload)) == data
    assert grammar.payload_of(token_script(payload)) == data


@given(st.integers(0x10, 0x1B), st.binary(max_size=80))
@example(0x10, b"")
def test_both_decoders_agree_on_anything_behind_a_header(header, rest):
    data = b"CPT" + bytes((header,)) + rest
    assert understood(data) == grammar.decode(data)


@given(PAYLOADS.map(token_script), st.data())
def test_both_find_the_same_data_in_a_mutated_output(script, data):
    start = data.draw(st.integers(0, 3))
    changed = (
        script[:start] + data.draw(st.binary(max_size=3)) + script[start + data.draw(st.integers(0, 2)) :]
    )
    pushed = parse_op_return(changed)
    assert grammar.payload_of(changed) == (pushed if pushed is None or len(pushed) <= 78 else None)


@given(PAYLOADS, st.data())
def test_both_decoders_agree_on_mutations(payload, data):
    encoded = encode_payload(payload)
    start = data.draw(st.integers(0, len(encoded)))
    end = data.draw(st.integers(start, min(len(encoded), start + 4)))
    mutated = encoded[:start] + data.draw(st.binary(max_size=4)) + encoded[end:]
    seen = understood(mutated)
    assert seen == grammar.decode(mutated)
    if seen is not None:
        assert encode_payload(decode_payload(mutated)) == mutated


@pytest.mark.parametrize(
    ("data", "expected"),
    [(b"CPT", True), (b"CPT\x20", True), (b"CPT is text", True), (b"CP", False),
     (b"cpt\x11", False), (b"", False)],
)  # fmt: skip
def test_whatever_begins_with_the_magic_claims_to_be_of_a_token_p30(data, expected):
    assert is_token_payload(data) is expected


@pytest.mark.parametrize(
    ("fields", "says"),
    [
        ({"contract_id": "00"}, "64 lower-case hex"),
        ({"contract_id": CONTRACT.upper()}, "64 lower-case hex"),
        ({"contract_id": CONTRACT + "\n"}, "64 lower-case hex"),
        ({"contract_id": bytes(32)}, "64 lower-case hex"),
        ({"function": 2}, "no such function"),
        ({"function": "transfer"}, "no such function"),
        ({"amount": None}, "transfer needs an amount"),
        ({"address": None}, "transfer needs an address"),
        ({"amount": 0}, "amount is zero"),
        ({"amount": -1}, "from 0 to"),
        ({"amount": MAX_TOKEN_AMOUNT + 1}, "from 0 to"),
        ({"amount": True}, "whole number"),
        ({"amount": 1.0}, "whole number"),
        ({"amount": "1"}, "whole number"),
        ({"address": b""}, "not of a kind"),
        ({"address": "0014" + "00" * 20}, "not of a kind"),
        ({"address": b"\x52\x20" + bytes(32)}, "not of a kind"),
        ({"address": b"\x6a\x14" + bytes(20)}, "not of a kind"),
        ({"address": OWNER + b"\x00"}, "not of a kind"),
        ({"function": Function.PAUSE}, "pause takes no amount"),
        ({"function": Function.PAUSE, "amount": None}, "pause takes no address"),
        ({"function": Function.ADD_TO_WHITELIST}, "add_to_whitelist takes no amount"),
        ({"function": Function.TRANSFER_OWNERSHIP, "amount": None, "address": None}, "needs an address"),
    ],
)
def test_a_call_that_is_wrong_cannot_be_built(fields, says):
    right = {"contract_id": CONTRACT, "function": Function.TRANSFER, "amount": 1, "address": OWNER}
    TokenCall(**right)
    with pytest.raises(InvalidToken, match=says):
        TokenCall(**(right | fields))


@pytest.mark.parametrize(
    ("fields", "says"),
    [
        ({"bytecode_hash": bytes(31)}, "32 bytes"),
        ({"bytecode_hash": "00" * 32}, "32 bytes"),
        ({"ticker": "gold"}, "ticker is not"),
        ({"ticker": b"GOLD"}, "ticker is not"),
        ({"decimals": 19}, "0 to 18"),
        ({"decimals": True}, "0 to 18"),
        ({"decimals": 2.0}, "0 to 18"),
        ({"total_supply": -1}, "not below zero"),
        ({"total_supply": 500_001}, "above the maximum"),
        ({"total_supply": False}, "whole number"),
        ({"total_supply": 0, "max_supply": 0}, "maximum supply is zero"),
        ({"max_supply": MAX_TOKEN_AMOUNT + 1}, "at most 92233720368547758.07"),
        ({"whitelist_enabled": 1}, "either on or off"),
    ],
)
def test_a_deployment_that_is_wrong_cannot_be_built(fields, says):
    with pytest.raises(InvalidToken, match=says):
        dataclasses.replace(bytecode().deployment, **fields)
