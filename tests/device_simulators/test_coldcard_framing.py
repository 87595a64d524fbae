"""Packets of the virtual Coldcard, against the vendor's own client code as the other side."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from device_simulators.coldcard.errors import BadFraming
from device_simulators.coldcard.framing import Assembler, Message, to_packets
from device_simulators.coldcard.limits import MAX_MESSAGE, PACKET_SIZE

RESYNC = b"\x80" + b"\xff" * 63

messages = st.builds(Message, st.binary(min_size=4, max_size=MAX_MESSAGE), st.booleans())


def assemble(assembler, packets):
    return [message for packet in packets if (message := assembler.feed(packet)) is not None]


@given(st.lists(messages, max_size=5))
def test_messages_survive_packets(sent):
    assembler = Assembler()
    assert [m for message in sent for m in assemble(assembler, to_packets(message))] == sent


@given(messages)
def test_every_packet_is_64_bytes_and_only_the_last_ends_the_message(message):
    packets = to_packets(message)
    assert {len(packet) for packet in packets} == {PACKET_SIZE}
    assert [bool(packet[0] & 0x80) for packet in packets] == [False] * (len(packets) - 1) + [True]


@given(messages, st.integers(min_value=0, max_value=40))
def test_resync_forgets_what_was_half_sent(message, count):
    assembler = Assembler()
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
    assembler = Assembler()
    with pytest.raises(BadFraming, match=f"^{reason}$"):
        assemble(assembler, packets)
    assert assemble(assembler, to_packets(Message(b"vers", encrypted=False))) == [
        Message(b"vers", encrypted=False)
    ]


@given(st.lists(st.binary(max_size=70), max_size=60))
def test_s23_no_packet_makes_the_receiver_grow_or_fail(packets):
    assembler = Assembler()
    for packet in packets:
        try:
            message = assembler.feed(packet)
        except BadFraming:
            continue
        assert message is None or 4 <= len(message.data) <= MAX_MESSAGE
