import pytest
from hypothesis import given
from hypothesis import strategies as st

from multisig.encodings import (
    MAX_BASE58_CHARACTERS,
    Base58Error,
    Bech32Error,
    Encoding,
    decode_base58check,
    decode_bech32,
    decode_segwit,
    encode_base58check,
    encode_bech32,
    encode_segwit,
)
from tests.support.vectors import official

# The all-zero hash on mainnet: the best known burn address.
ZEROS = "1111111111111111111114oLvT2"


@given(st.binary(max_size=78))
def test_round_trip(payload):
    assert decode_base58check(encode_base58check(payload)) == payload


@given(st.binary(min_size=1, max_size=40), st.data())
def test_one_wrong_character_is_noticed(payload, data):
    text = encode_base58check(payload)
    at = data.draw(st.integers(0, len(text) - 1))
    other = data.draw(st.sampled_from("123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz"))
    if other != text[at]:
        with pytest.raises(Base58Error):
            decode_base58check(text[:at] + other + text[at + 1 :])


@pytest.mark.parametrize(
    "text",
    ["", "1", "11", "0", "O", "I", "l", ZEROS + " ", " " + ZEROS, ZEROS[:-1], ZEROS + "1", "１" + ZEROS[1:]],
)
def test_refuses(text):
    with pytest.raises(Base58Error):
        decode_base58check(text)


def test_s23_length_is_bounded_before_the_quadratic_part():
    with pytest.raises(Base58Error, match="too long"):
        decode_base58check("z" * (MAX_BASE58_CHARACTERS + 1))


FILE = "bip173_350.json"
ENCODINGS = {"bech32": Encoding.BECH32, "bech32m": Encoding.BECH32M}


def of_kind(*kinds):
    return official(FILE, lambda vector: vector["kind"] in kinds)


@pytest.mark.parametrize("vector", of_kind("valid_bech32", "valid_bech32m"))
def test_valid_strings(vector):
    text = vector["string"]
    hrp, values, encoding = decode_bech32(text)
    assert encoding is ENCODINGS[vector["kind"].removeprefix("valid_")]
    assert encode_bech32(hrp, values, encoding) == text.lower()


@pytest.mark.parametrize("vector", of_kind("invalid_bech32", "invalid_bech32m"))
def test_invalid_strings(vector):
    wanted = ENCODINGS[vector["kind"].removeprefix("invalid_")]
    try:
        _, _, found = decode_bech32(vector["string"])
    except Bech32Error:
        return
    assert found is not wanted


@pytest.mark.parametrize("vector", of_kind("invalid_segwit_address"))
@pytest.mark.parametrize("hrp", ["bc", "tb"])
def test_invalid_segwit_addresses(vector, hrp):
    with pytest.raises(Bech32Error):
        decode_segwit(hrp, vector["address"])


PROGRAMS = st.one_of(
    st.tuples(st.just(0), st.sampled_from([20, 32]).flatmap(lambda n: st.binary(min_size=n, max_size=n))),
    st.tuples(st.integers(1, 16), st.binary(min_size=2, max_size=40)),
)


@given(PROGRAMS, st.sampled_from(["bc", "tb", "bcrt"]))
def test_segwit_round_trip(witness, hrp):
    text = encode_segwit(hrp, *witness)
    assert decode_segwit(hrp, text) == witness
    assert decode_segwit(hrp, text.upper()) == witness


@pytest.mark.parametrize(
    ("version", "length"), [(-1, 32), (17, 32), (0, 19), (0, 33), (1, 1), (1, 41), (16, 0)]
)
def test_impossible_programs_have_no_address(version, length):
    with pytest.raises(Bech32Error):
        encode_segwit("bc", version, bytes(length))


def test_a_version_alone_is_no_address():
    with pytest.raises(Bech32Error, match="version is missing"):
        decode_segwit("bc", encode_bech32("bc", [], Encoding.BECH32))
