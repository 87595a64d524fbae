"""The virtual Ledger's stream and commands, before anything of Bitcoin comes into play."""

import asyncio

import pytest

from device_simulators.ledger.apdu import (
    Apdu,
    ApduReply,
    CommandAssembler,
    MalformedApdu,
    MalformedStream,
    StatusWord,
    to_bytes,
)
from firmware_bridge import Family
from tests.conformance import rigs
from tests.support import bare_hwi

pytestmark = pytest.mark.anyio


def test_commands_are_cut_out_of_the_stream_however_it_arrives():
    stream = b"\x00\x00\x00\x02ab" + b"\x00\x00\x00\x01c"
    assert CommandAssembler().feed(stream) == [b"ab", b"c"]
    one_by_one = CommandAssembler()
    assert [command for byte in stream for command in one_by_one.feed(bytes((byte,)))] == [b"ab", b"c"]


@pytest.mark.parametrize("length", [0, 261, 0xFFFFFFFF])
def test_a_length_that_no_command_has(length):
    with pytest.raises(MalformedStream):
        CommandAssembler().feed(length.to_bytes(4))


def test_an_answer_s_length_leaves_out_the_status_word():
    assert to_bytes(ApduReply(StatusWord.OK, b"abc")) == bytes.fromhex("00000003 616263 9000")


@pytest.mark.parametrize(
    ("raw", "data"), [("e1050001", b""), ("e105000100", b""), ("e105000102abcd", b"\xab\xcd")]
)
def test_a_command_is_read(raw, data):
    assert Apdu.parse(bytes.fromhex(raw)) == Apdu(0xE1, 0x05, 1, data)


@pytest.mark.parametrize("raw", ["e10500", "e105000102ab", "e105000101abcd", "e1050001ff" + "00" * 256])
def test_a_command_whose_data_is_not_as_long_as_it_says(raw):
    with pytest.raises(MalformedApdu):
        Apdu.parse(bytes.fromhex(raw))


async def test_a_stream_that_makes_no_sense_is_closed_and_the_next_one_is_served(tmp_path):
    rig = rigs.make_rig(Family.LEDGER, tmp_path)
    async with rigs.plugged_in(rig) as endpoint:
        host, _, port = endpoint.place.rpartition(":")
        reader, writer = await asyncio.open_connection(host, int(port))
        writer.write(b"GET / HTTP/1.1\r\n")
        assert await reader.read() == b""
        writer.close()
        assert await bare_hwi.fingerprint(rig) == bytes(rig.seed.fingerprint)
