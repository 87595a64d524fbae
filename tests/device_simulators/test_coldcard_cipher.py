"""The encrypted link of the virtual Coldcard."""

import pyaes
import pytest
from coincurve import PrivateKey
from hypothesis import given
from hypothesis import strategies as st

from device_simulators.coldcard.cipher import Session, raw_public_key, shared_key
from device_simulators.coldcard.errors import CommandRefused

scalars = st.integers(min_value=1, max_value=2**255).map(PrivateKey.from_int)


@given(scalars, scalars)
def test_both_sides_agree_on_one_key(ours, theirs):
    key = shared_key(ours, raw_public_key(theirs))
    assert key == shared_key(theirs, raw_public_key(ours))
    assert len(key) == 32


def test_a_point_off_the_curve_is_refused():
    with pytest.raises(CommandRefused):
        shared_key(PrivateKey.from_int(7), b"\x01" * 64)


@given(st.binary(min_size=32, max_size=32), st.lists(st.binary(min_size=1, max_size=200), max_size=8))
def test_streams_run_on_across_messages_of_any_length(key, messages):
    host, device = Session(key), Session(key)
    for message in messages:
        # Both ends start at counter 0 in each direction, so the first bytes mirror each other.
        assert device.decrypt(host.encrypt(message)) == message
        assert host.decrypt(device.encrypt(message)) == message


def test_the_stream_is_the_one_of_the_vendors_client():
    key = bytes(range(32))
    theirs = pyaes.AESModeOfOperationCTR(key, pyaes.Counter(0))
    ours = Session(key)
    for message in (b"xpubm/0'", bytes(75), b"\xff" * 2060):
        assert ours.decrypt(theirs.encrypt(message)) == message


def test_a_lost_message_makes_the_rest_unreadable():
    host, device = Session(bytes(32)), Session(bytes(32))
    host.encrypt(b"lost")
    assert device.decrypt(host.encrypt(b"stok")) != b"stok"


def test_the_key_does_not_show_itself():
    assert repr(Session(b"k" * 32)) == "Session(key=<redacted>)"
