import hashlib

import pytest
from embit.util import py_ripemd160
from hypothesis import given
from hypothesis import strategies as st

from multisig import hashes
from multisig.hashes import hash160, sha256, sha256d

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
