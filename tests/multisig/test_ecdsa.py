import base64

import pytest
from hypothesis import given
from hypothesis import strategies as st

from multisig import (
    InvalidMessage,
    Network,
    encode_address,
    hash160,
    message_hash,
    p2pkh,
    recover_message_key,
    secp256k1,
    signature_fault,
    verify_ecdsa,
)
from multisig.ecdsa import _verify
from tests.support.vectors import own

ORDER = 0xFFFFFFFF_FFFFFFFF_FFFFFFFF_FFFFFFFE_BAAEDCE6_AF48A03B_BFD25E8C_D0364141
KEY = b"\x07" * 32
PUBLIC_KEY = secp256k1.public_key_of(KEY)
DIGEST = bytes(range(32))
SIGNATURE = secp256k1.sign(KEY, DIGEST)


def numbers(der):
    length = der[3]
    return int.from_bytes(der[4 : 4 + length]), int.from_bytes(der[6 + length :])


def encode(r, s):
    fields = b"".join(b"\x02" + bytes((len(field),)) + field for field in map(integer, (r, s)))
    return b"\x30" + bytes((len(fields),)) + fields


def integer(number):
    return number.to_bytes(number.bit_length() // 8 + 1)


@given(st.binary(min_size=32, max_size=32), st.integers(1, ORDER - 1))
def test_a_signature_verifies_for_its_key_and_digest_only(digest, secret):
    key = secret.to_bytes(32)
    signature, public_key = secp256k1.sign(key, digest), secp256k1.public_key_of(key)
    assert signature_fault(signature) is None
    assert verify_ecdsa(public_key, digest, signature)
    assert not verify_ecdsa(public_key, bytes(32) if any(digest) else b"\x01" * 32, signature)
    assert not verify_ecdsa(PUBLIC_KEY, digest, signature) or public_key == PUBLIC_KEY


def test_what_is_kept_of_a_signature_is_bounded_and_small():
    """A sender of signatures must not fill the memory with them."""
    kept = _verify.cache_info()
    assert not verify_ecdsa(PUBLIC_KEY, DIGEST, SIGNATURE + bytes(1 << 20))
    assert not verify_ecdsa(PUBLIC_KEY + bytes(1 << 20), DIGEST, SIGNATURE)
    assert not verify_ecdsa(PUBLIC_KEY, DIGEST + bytes(1 << 20), SIGNATURE)
    assert _verify.cache_info() == kept
    assert kept.maxsize is not None
    assert kept.maxsize <= 4096


def test_p6_high_s():
    r, s = numbers(SIGNATURE)
    high = encode(r, ORDER - s)
    assert signature_fault(high) == "its S is high"
    assert not verify_ecdsa(PUBLIC_KEY, DIGEST, high)
    assert verify_ecdsa(PUBLIC_KEY, DIGEST, encode(r, s))


def test_half_the_order_is_the_last_low_s():
    assert signature_fault(encode(1, ORDER // 2)) is None
    assert signature_fault(encode(1, ORDER // 2 + 1)) == "its S is high"


@given(st.integers(0, len(SIGNATURE) - 1), st.integers(1, 255))
def test_p6_any_changed_byte(at, change):
    changed = bytearray(SIGNATURE)
    changed[at] ^= change
    assert not verify_ecdsa(PUBLIC_KEY, DIGEST, bytes(changed))


R, S = numbers(SIGNATURE)


@pytest.mark.parametrize(
    "der",
    [
        b"", b"\x30", SIGNATURE + b"\x01", SIGNATURE[:-1], b"\x31" + SIGNATURE[1:],
        b"\x30\x81" + SIGNATURE[1:], b"\x30\x07\x02\x02\x00\x01\x02\x01\x01",
        b"\x30\x06\x02\x01\x81\x02\x01\x01", b"\x30\x06\x03\x01\x01\x02\x01\x01",
        b"\x30\x06\x02\x01\x01\x03\x01\x01", b"\x30\x06\x02\x00\x02\x02\x01\x01",
        b"\x30\x06\x02\x02\x01\x01\x02\x00", b"\x30\x06\x02\x04\x01\x01\x02\x00",
        b"\x30\x06\x02\x05\x01\x01\x02\x00", b"\x30\x06\x02\xff\x01\x01\x02\x01",
        b"\x30\x07\x02\x01\x01\x02\x02\x00\x01", b"\x30\x06\x02\x01\x01\x02\x01\x81", bytes(8),
        b"\x30\x46" + bytes(70), b"\x30\x47" + SIGNATURE[2:],
    ],
)  # fmt: skip
def test_p6_not_strict_der(der):
    assert signature_fault(der) == "it is not strict DER"
    assert not verify_ecdsa(PUBLIC_KEY, DIGEST, der)


def test_zero_is_no_signature():
    for r, s in ((0, 1), (1, 0), (0, 0)):
        assert signature_fault(encode(r, s)) == "one of its numbers is zero"


@pytest.mark.parametrize(
    "public_key",
    [b"", bytes(33), PUBLIC_KEY[:-1], secp256k1.uncompressed(PUBLIC_KEY), b"\x02" + b"\xff" * 32,
     bytes((PUBLIC_KEY[0] ^ 1,)) + PUBLIC_KEY[1:]],
)  # fmt: skip
def test_keys_that_cannot_sign_in_segwit(public_key):
    assert not verify_ecdsa(public_key, DIGEST, SIGNATURE)


@pytest.mark.parametrize("digest", [b"", DIGEST[:-1], DIGEST + b"\0"])
def test_a_digest_has_32_bytes(digest):
    assert not verify_ecdsa(PUBLIC_KEY, digest, SIGNATURE)


def sign(text, header=31):
    compact, recovery_id = secp256k1.sign_recoverable(KEY, message_hash(text))
    return bytes((header + recovery_id,)) + compact


@pytest.mark.parametrize("vector", own("messages.json"))
def test_published_signature(vector):
    key = recover_message_key(vector["message"], base64.b64decode(vector["signature_base64"]))
    assert key.hex() == vector["public_key"]
    assert encode_address(p2pkh(hash160(key)), Network.MAINNET) == vector["p2pkh_address_mainnet"]


@given(st.text(max_size=300), st.sampled_from([27, 31, 35, 39]))
def test_any_header_kind_recovers_the_key(text, header):
    assert recover_message_key(text, sign(text, header)) == PUBLIC_KEY


def test_another_text_recovers_another_key():
    assert recover_message_key("pay 2", sign("pay 1")) != PUBLIC_KEY


def test_length_is_written_as_compact_size():
    assert len({message_hash("x" * length) for length in (252, 253, 254)}) == 3
    assert recover_message_key("x" * 70_000, sign("x" * 70_000)) == PUBLIC_KEY


@pytest.mark.parametrize(
    "signature",
    [b"", bytes(64), bytes(66), bytes(65), b"\x1a" + bytes(64), b"\x2b" + sign("x")[1:], b"\x1f" + bytes(64),
     b"\x1f" + b"\xff" * 64],
)  # fmt: skip
def test_impossible_signatures(signature):
    with pytest.raises(InvalidMessage):
        recover_message_key("x", signature)


def test_half_a_surrogate_pair_is_no_text():
    with pytest.raises(InvalidMessage):
        message_hash("\ud800")
