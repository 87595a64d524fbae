import pytest
from hypothesis import given
from hypothesis import strategies as st

from multisig.bech32 import Bech32Error, Encoding, decode, decode_segwit, encode, encode_segwit
from multisig.script import witness_output
from tests.support.vectors import official

FILE = "bip173_350.json"
ENCODINGS = {"bech32": Encoding.BECH32, "bech32m": Encoding.BECH32M}


def of_kind(*kinds):
    return official(FILE, lambda vector: vector["kind"] in kinds)


@pytest.mark.parametrize("vector", of_kind("valid_bech32", "valid_bech32m"))
def test_valid_strings(vector):
    text = vector["string"]
    hrp, values, encoding = decode(text)
    assert encoding is ENCODINGS[vector["kind"].removeprefix("valid_")]
    assert encode(hrp, values, encoding) == text.lower()


@pytest.mark.parametrize("vector", of_kind("invalid_bech32", "invalid_bech32m"))
def test_invalid_strings(vector):
    wanted = ENCODINGS[vector["kind"].removeprefix("invalid_")]
    try:
        _, _, found = decode(vector["string"])
    except Bech32Error:
        return
    assert found is not wanted


@pytest.mark.parametrize("vector", of_kind("valid_segwit_address"))
def test_valid_segwit_addresses(vector):
    text = vector["address"]
    hrp = text.lower().rpartition("1")[0]
    if vector.get("invalid_since_bip350"):
        with pytest.raises(Bech32Error):
            decode_segwit(hrp, text)
        return
    version, program = decode_segwit(hrp, text)
    assert witness_output(version, program).hex() == vector["script_pubkey_hex"]
    assert encode_segwit(hrp, version, program) == text.lower()


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
        decode_segwit("bc", encode("bc", [], Encoding.BECH32))
