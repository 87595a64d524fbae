"""Messages in 64-byte packets, and the encrypted link of the virtual Coldcard."""

import pyaes
import pytest
from hypothesis import given
from hypothesis import strategies as st

from device_simulators.coldcard.replies import BadFraming
from device_simulators.coldcard.wire import (
    MAX_MESSAGE,
    ColdcardMessage,
    LinkSession,
    PacketAssembler,
    to_packets,
)

messages = st.builds(ColdcardMessage, st.binary(min_size=4, max_size=MAX_MESSAGE), st.booleans())


def assemble(assembler, packets):
    return [message for packet in packets if (message := assembler.feed(packet)) is not None]


@given(st.lists(messages, max_size=5))
def test_messages_survive_packets(sent):
    assembler = PacketAssembler()
    assert [m for message in sent for m in assemble(assembler, to_packets(message))] == sent


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


def test_the_stream_is_the_one_of_the_vendors_client():
    key = bytes(range(32))
    theirs = pyaes.AESModeOfOperationCTR(key, pyaes.Counter(0))
    ours = LinkSession(key)
    for message in (b"xpubm/0'", bytes(75), b"\xff" * 2060):
        assert ours.decrypt(theirs.encrypt(message)) == message
