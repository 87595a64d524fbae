"""The forms of bytes: compact sizes, base58, bech32 and hashes."""

import hashlib

import pytest
from embit.util import py_ripemd160
from hypothesis import given
from hypothesis import strategies as st

from multisig import hashes
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
from multisig.hashes import hash160, sha256, sha256d
from multisig.wire import Reader, compact_size
from tests.support.vectors import official


@given(st.integers(0, 2**64 - 1))
def test_compact_size_round_trip(number):
    reader = Reader(compact_size(number))
    assert reader.compact_size() == number
    reader.finish()


@pytest.mark.parametrize(
    ("number", "encoded"),
    [
        (0, "00"),
        (252, "fc"),
        (253, "fdfd00"),
        (65_535, "fdffff"),
        (65_536, "fe00000100"),
        (2**32, "ff0000000001000000"),
    ],
)
def test_compact_size_form(number, encoded):
    assert compact_size(number).hex() == encoded


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


# From the paper that defines RIPEMD-160, appendix B.
RIPEMD160 = [
    (b"", "9c1185a5c5e9fc54612808977ee8f548b2258d31"),
    (b"a", "0bdc9d2d256b3ee9daae347be6f4dc835a467ffe"),
    (b"abc", "8eb208f7e05d987a9b044a8e98c6b087f15a0bfc"),
    (b"message digest", "5d0689ef49d2fae572b881b123a85ffa21595f36"),
    (b"abcdefghijklmnopqrstuvwxyz", "f71c27109c692c1b56bbdceb5b9d2865b3708dbc"),
    (b"abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq", "12a053384a9c0c88e405a06c27dcf49ada62eb2b"),
    (b"1234567890" * 8, "9b752e45573d4b39f4dbd3323cab82bf63326bfb"),
]


@pytest.mark.parametrize(("data", "digest"), RIPEMD160)
def test_ripemd160(data, digest):
    assert hashes.ripemd160(data).hex() == digest
    assert py_ripemd160.ripemd160(data).hex() == digest


@given(st.binary(max_size=200))
def test_both_forms_of_ripemd160_agree(data):
    assert py_ripemd160.ripemd160(data) == hashes.ripemd160(data)


def test_without_openssl_s_ripemd160_the_one_in_python_is_used(monkeypatch):
    def refuse(name, *_args, **_kwargs):
        raise ValueError(f"unsupported hash type {name}")

    monkeypatch.setattr(hashlib, "new", refuse)
    assert hashes._choose_ripemd160() is py_ripemd160.ripemd160


def test_sha256d_and_hash160():
    assert sha256d(b"abc") == sha256(sha256(b"abc"))
    assert sha256(b"abc").hex() == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
    assert hash160(b"").hex() == "b472a266d0bd89c13706a4132ccfb16f7c3b9fcb"
