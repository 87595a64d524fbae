"""What is checked of libsecp256k1's binding: vectors of others, and BIP-32's two ways to one key."""

from hashlib import sha256

import pytest
from hypothesis import given
from hypothesis import strategies as st

from multisig import secp256k1
from multisig.ecdsa import verify_ecdsa
from tests.support.vectors import own
from tests.support.wallets import ORDER

secrets = st.integers(1, ORDER - 1).map(lambda number: number.to_bytes(32))


@pytest.mark.parametrize("vector", own("wycheproof_ecdsa.json"))
def test_ecdsa_accepts_what_wycheproof_calls_valid(vector):
    point = bytes.fromhex(vector["public_key"])
    key = bytes([2 + (point[-1] & 1)]) + point[1:33]
    digest = sha256(bytes.fromhex(vector["message"])).digest()
    assert verify_ecdsa(key, digest, bytes.fromhex(vector["signature"])) is vector["valid"]


@pytest.mark.parametrize("vector", own("bip340.json"))
def test_schnorr_signs_and_verifies_as_bip_340(vector):
    private_key, aux, key, message, signature = (
        bytes.fromhex(vector[name]) for name in ("private_key", "aux", "public_key", "message", "signature")
    )
    assert secp256k1.verify_schnorr(key, message, signature) is vector["valid"]
    if private_key:
        assert secp256k1.x_only_public_key_of(private_key) == key
        assert secp256k1.sign_schnorr(private_key, message, aux) == signature


@given(secrets, st.binary(min_size=32, max_size=32))
def test_a_tweak_of_the_private_key_is_a_tweak_of_its_public_key(private_key, tweak):
    """A tweak of the group's order or above, and one that gives no key, is refused by both."""
    public_key = secp256k1.public_key_of(private_key)
    try:
        tweaked = secp256k1.tweaked_private_key(private_key, tweak)
    except ValueError:
        with pytest.raises(ValueError, match="tweak"):
            secp256k1.tweaked_public_key(public_key, tweak)
    else:
        for form in (public_key, secp256k1.uncompressed(public_key)):
            assert secp256k1.tweaked_public_key(form, tweak) == secp256k1.public_key_of(tweaked)


@given(secrets, secrets)
def test_both_sides_of_an_exchange_have_one_point(one, other):
    there = secp256k1.shared_point(one, secp256k1.public_key_of(other))
    assert there == secp256k1.shared_point(other, secp256k1.public_key_of(one))


@pytest.mark.parametrize("length", [0, 31, 33, 65])
def test_an_x_only_key_has_32_bytes(length):
    key = secp256k1.x_only_public_key_of(bytes(31) + b"\x01")
    other = (b"\x02" + key + bytes(32))[:length]
    assert secp256k1.is_x_only_public_key(key)
    assert not secp256k1.is_x_only_public_key(other)
    assert not secp256k1.verify_schnorr(other, bytes(32), bytes(64))
