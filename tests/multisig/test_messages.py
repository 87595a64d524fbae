import base64

import pytest
from coincurve import PrivateKey
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
)
from tests.support.vectors import own

KEY = PrivateKey(b"\x07" * 32)
PUBLIC_KEY = KEY.public_key.format(compressed=True)


def sign(text, header=31):
    compact = KEY.sign_recoverable(message_hash(text), hasher=None)
    return bytes((header + compact[64],)) + compact[:64]


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
