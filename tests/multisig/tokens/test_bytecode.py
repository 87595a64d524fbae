"""The bytecode: one form for each token, one hash for each form, and nothing else accepted."""

import dataclasses
import hashlib
import json
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from multisig import InvalidToken
from multisig.tokens import (
    MAX_BYTECODE_BYTES,
    MAX_TOKEN_AMOUNT,
    MAX_WHITELIST,
    bytecode_hash,
    check_deployment,
    parse_bytecode,
)
from multisig.tokens.values import check_name
from tests.multisig.tokens import grammar
from tests.multisig.tokens.samples import BYTECODES, OWNER, bytecode
from tests.support.vectors import own

BLOB = bytecode().blob


def understood(blob):
    """What the package makes of a blob, in the grammar's form."""
    try:
        token = parse_bytecode(blob)
    except InvalidToken:
        return None
    assert token.blob == blob
    return {
        "sha256": token.deployment.bytecode_hash.hex(),
        "decimals": token.decimals,
        "icon": token.icon,
        "max_supply": token.max_supply,
        "name": token.name,
        "owner_script": token.owner_script.hex(),
        "ticker": token.ticker,
        "total_supply": token.total_supply,
        "whitelist": [script.hex() for script in token.whitelist],
        "whitelist_hash": token.whitelist_hash.hex(),
        "whitelist_enabled": token.whitelist_enabled,
    }


@pytest.mark.parametrize("vector", own("tokens/bytecode_valid.json"))
def test_valid_blobs_and_their_hashes(vector):
    blob = vector["blob"].encode()
    said = json.loads(blob) | {"sha256": vector["sha256"]}
    said |= {name: int(said[name]) for name in ("total_supply", "max_supply")}
    del said["template_version"]
    seen = understood(blob)
    assert seen == grammar.read_bytecode(blob)
    assert {name: value for name, value in seen.items() if name != "whitelist_hash"} == said
    assert bytecode_hash(blob).hex() == vector["sha256"]


@pytest.mark.parametrize("vector", own("tokens/bytecode_invalid.json"))
def test_each_way_to_be_invalid_is_refused_and_named(vector):
    blob = bytes.fromhex(vector["blob_hex"]) if "blob_hex" in vector else vector["blob"].encode()
    assert grammar.read_bytecode(blob) is None
    with pytest.raises(InvalidToken, match=re.escape(vector["says"])):
        parse_bytecode(blob)


@given(BYTECODES)
def test_round_trip(token):
    assert parse_bytecode(token.blob) == token
    assert token.deployment.bytecode_hash == hashlib.sha256(token.blob).digest()
    check_deployment(token.deployment, token)


@given(BYTECODES, st.data())
def test_a_mutated_blob_is_another_token_or_none(token, data):
    blob = token.blob
    start = data.draw(st.integers(0, len(blob)))
    end = data.draw(st.integers(start, min(len(blob), start + 3)))
    put = data.draw(st.binary(max_size=3) | st.text('",:{}[]0aG\\ ', max_size=3).map(str.encode))
    mutated = blob[:start] + put + blob[end:]
    seen = understood(mutated)
    assert seen == grammar.read_bytecode(mutated)
    assert (seen == understood(blob)) is (mutated == blob)


MEMBERS = st.sampled_from(sorted(json.loads(BLOB)))
ANY_JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
)


@given(MEMBERS, ANY_JSON)
def test_any_value_in_any_member_is_read_alike(name, value):
    text = json.dumps(
        json.loads(BLOB) | {name: value}, sort_keys=True, separators=(",", ":"), ensure_ascii=False
    )
    blob = text.encode("utf-8", "surrogatepass")
    assert understood(blob) == grammar.read_bytecode(blob)


def test_the_largest_valid_blob_is_within_the_bound_and_nothing_beyond_it_is_read():
    scripts = tuple(b"\x00\x20" + number.to_bytes(32, "big") for number in range(MAX_WHITELIST))
    largest = bytecode(
        name="\U0001fa99" * 64,
        icon="https://" + "a" * 504,
        ticker="ABCDEFGHIJKL",
        decimals=18,
        total_supply=MAX_TOKEN_AMOUNT,
        max_supply=MAX_TOKEN_AMOUNT,
        whitelist=scripts,
    )
    assert 70_000 < len(largest.blob) < MAX_BYTECODE_BYTES
    assert parse_bytecode(largest.blob) == largest
    with pytest.raises(InvalidToken, match="more than 80000 bytes"):
        parse_bytecode(b"[" * (MAX_BYTECODE_BYTES + 1))
    with pytest.raises(InvalidToken, match="more than 1000"):
        bytecode(whitelist=(*scripts, b"\x00\x20" + b"\xff" * 32))


@pytest.mark.parametrize("blob", [b"[" * MAX_BYTECODE_BYTES, BLOB.replace(b":2,", b":" + b"9" * 5000 + b",")])
def test_what_would_exhaust_the_parser_is_refused(blob):
    with pytest.raises(InvalidToken, match=r"nested too deeply|not JSON"):
        parse_bytecode(blob)


def test_a_refusal_never_repeats_what_it_refuses():
    """L8: the blob is a stranger's, and the sentence reaches a terminal and a page."""
    for evil in ('"\u001b[2J":1', '"name":"EVIL\u202e"', '"ticker":"EVIL"', '"icon":"EVIL:"'):
        with pytest.raises(InvalidToken) as refused:
            parse_bytecode(BLOB[:-1] + b"," + evil.encode() + b"}")
        assert "EVIL" not in str(refused.value)
        assert str(refused.value).isprintable()


@pytest.mark.parametrize(
    ("fields", "says"),
    [
        ({"template_version": 2}, "template's version"),
        ({"template_version": True}, "template's version"),
        ({"whitelist_enabled": 0}, "either on or off"),
        ({"name": ""}, "1 to 64"),
        ({"name": None}, "1 to 64"),
        ({"ticker": "gold"}, "ticker is not"),
        ({"icon": "http://example.com"}, "https or ipfs"),
        ({"icon": None}, "icon"),
        ({"owner_script": b""}, "not of a kind"),
        ({"whitelist": (OWNER, OWNER)}, "ascending"),
        ({"whitelist": (b"\x6a",)}, "not of a kind"),
        ({"max_supply": MAX_TOKEN_AMOUNT + 1, "decimals": 18}, "at most 9.223372036854775807"),
        ({"max_supply": MAX_TOKEN_AMOUNT + 1, "decimals": 0}, "at most 9223372036854775807"),
        ({"decimals": 19}, "0 to 18"),
    ],
)
def test_bytecode_that_is_wrong_cannot_be_built(fields, says):
    with pytest.raises(InvalidToken, match=says):
        bytecode(**fields)


@pytest.mark.parametrize(
    "fields",
    [
        {"decimals": 3},
        {"ticker": "SILVER"},
        {"total_supply": 1},
        {"max_supply": 500_001},
        {"whitelist_enabled": True},
        {"bytecode_hash": bytes(32)},
    ],
)
def test_a_deployment_that_says_something_else_than_its_bytecode_is_named_s12(fields):
    lie = dataclasses.replace(bytecode().deployment, **fields)
    with pytest.raises(InvalidToken, match=f"differ in {next(iter(fields))}"):
        check_deployment(lie, bytecode())


def test_the_characters_of_most_languages_may_stand_in_a_name():
    for name in ("Gold", "Χρυσός", "זהב", "ذهب", "金", "สีทอง", "सोना", "Café", "Gold & Co. (2)", "🪙"):
        check_name(name)
