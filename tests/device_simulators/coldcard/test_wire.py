"""Messages in 64-byte packets, and the encrypted link of the virtual Coldcard."""

import pyaes
import pytest
from coincurve import PrivateKey
from hypothesis import given
from hypothesis import strategies as st

from device_simulators.coldcard.replies import BadFraming, CommandRefused
from device_simulators.coldcard.wire import (
    MAX_MESSAGE,
    PACKET_SIZE,
    ColdcardMessage,
    LinkSession,
    PacketAssembler,
    raw_public_key,
    shared_key,
    to_packets,
)

RESYNC = b"\x80" + b"\xff" * 63

messages = st.builds(ColdcardMessage, st.binary(min_size=4, max_size=MAX_MESSAGE), st.booleans())


def assemble(assembler, packets):
    return [message for packet in packets if (message := assembler.feed(packet)) is not None]


@given(st.lists(messages, max_size=5))
def test_messages_survive_packets(sent):
    assembler = PacketAssembler()
    assert [m for message in sent for m in assemble(assembler, to_packets(message))] == sent


@given(messages)
def test_every_packet_is_64_bytes_and_only_the_last_ends_the_message(message):
    packets = to_packets(message)
    assert {len(packet) for packet in packets} == {PACKET_SIZE}
    assert [bool(packet[0] & 0x80) for packet in packets] == [False] * (len(packets) - 1) + [True]


@given(messages, st.integers(min_value=0, max_value=40))
def test_resync_forgets_what_was_half_sent(message, count):
    assembler = PacketAssembler()
    assemble(assembler, to_packets(message)[:-1][:count])
    assert assembler.feed(RESYNC) is None
    assert assemble(assembler, to_packets(message)) == [message]


@pytest.mark.parametrize(
    ("packets", "reason"),
    [
        ([b"\x84vers"], "short"),
        ([b"\x84vers" + bytes(60)], "long"),
        ([b"\x83ver" + bytes(60)], "badsz"),
        ([b"\x3f" + bytes(63)] * 33, "xlong"),
    ],
)
def test_s23_broken_framing_is_named_and_forgotten(packets, reason):
    assembler = PacketAssembler()
    with pytest.raises(BadFraming, match=f"^{reason}$"):
        assemble(assembler, packets)
    assert assemble(assembler, to_packets(ColdcardMessage(b"vers", encrypted=False))) == [
        ColdcardMessage(b"vers", encrypted=False)
    ]


@given(st.lists(st.binary(max_size=70), max_size=60))
def test_s23_no_packet_makes_the_receiver_grow_or_fail(packets):
    assembler = PacketAssembler()
    for packet in packets:
        try:
            message = assembler.feed(packet)
        except BadFraming:
            continue
        assert message is None or 4 <= len(message.data) <= MAX_MESSAGE


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
    host, device = LinkSession(key), LinkSession(key)
    for message in messages:
        # Both ends start at counter 0 in each direction, so the first bytes mirror each other.
        assert device.decrypt(host.encrypt(message)) == message
        assert host.decrypt(device.encrypt(message)) == message


def test_the_stream_is_the_one_of_the_vendors_client():
    key = bytes(range(32))
    theirs = pyaes.AESModeOfOperationCTR(key, pyaes.Counter(0))
    ours = LinkSession(key)
    for message in (b"xpubm/0'", bytes(75), b"\xff" * 2060):
        assert ours.decrypt(theirs.encrypt(message)) == message


def test_a_lost_message_makes_the_rest_unreadable():
    host, device = LinkSession(bytes(32)), LinkSession(bytes(32))
    host.encrypt(b"lost")
    assert device.decrypt(host.encrypt(b"stok")) != b"stok"


def test_the_key_does_not_show_itself():
    assert repr(LinkSession(b"k" * 32)) == "Session(key=<redacted>)"
