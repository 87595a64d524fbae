"""The virtual Ledger's stream and commands, before anything of Bitcoin comes into play."""

import pytest

from device_simulators.errors import AddressUnavailable, InvalidListenAddress
from device_simulators.ledger import VirtualLedger
from device_simulators.ledger.apdu import (
    Apdu,
    Assembler,
    MalformedApdu,
    MalformedStream,
    Reply,
    Status,
    to_bytes,
)
from device_simulators.panel import Panel
from multisig import Network
from tests.support.ledger_host import host_of, table
from tests.support.virtual import NETWORK, seed

pytestmark = pytest.mark.anyio

GET_VERSION = (0xB0, 0x01)
FINGERPRINT = (0xE1, 0x05)


def test_commands_are_cut_out_of_the_stream_however_it_arrives():
    stream = b"\x00\x00\x00\x02ab" + b"\x00\x00\x00\x01c"
    assert Assembler().feed(stream) == [b"ab", b"c"]
    one_by_one = Assembler()
    assert [command for byte in stream for command in one_by_one.feed(bytes((byte,)))] == [b"ab", b"c"]


@pytest.mark.parametrize("length", [0, 261, 0xFFFFFFFF])
def test_a_length_that_no_command_has(length):
    with pytest.raises(MalformedStream):
        Assembler().feed(length.to_bytes(4))


def test_an_answer_s_length_leaves_out_the_status_word():
    assert to_bytes(Reply(Status.OK, b"abc")) == bytes.fromhex("00000003 616263 9000")


@pytest.mark.parametrize(
    ("raw", "data"), [("e1050001", b""), ("e105000100", b""), ("e105000102abcd", b"\xab\xcd")]
)
def test_a_command_is_read(raw, data):
    assert Apdu.parse(bytes.fromhex(raw)) == Apdu(0xE1, 0x05, 1, data)


@pytest.mark.parametrize("raw", ["e10500", "e105000102ab", "e105000101abcd", "e1050001ff" + "00" * 256])
def test_a_command_whose_data_is_not_as_long_as_it_says(raw):
    with pytest.raises(MalformedApdu):
        Apdu.parse(bytes.fromhex(raw))


@pytest.mark.parametrize(("network", "name"), [(NETWORK, b"Bitcoin Test"), (Network.MAINNET, b"Bitcoin")])
async def test_the_app_tells_its_name_and_version(network, name):
    async with table(network=network) as it:
        status, data = await it.host.exchange(*GET_VERSION, p2=0)
        assert (status, data) == (0x9000, b"\x01" + bytes((len(name),)) + name + b"\x052.4.6\x01\x00")
        assert await it.host.exchange(*FINGERPRINT) == (0x9000, bytes(seed().fingerprint))


@pytest.mark.parametrize(
    ("command", "status"),
    [
        ((0xE0, 0x40), 0x6E00),
        ((0xE1, 0x01), 0x6D00),
        ((0xB0, 0x33), 0x6D00),
        ((0xE1, 0x05, b"", 0, 2), 0x6A86),
        ((0xF8, 0x01), 0xB007),
        ((0xF8, 0x02), 0x6E00),
        ((0xE1, 0x00, b"\x00"), 0x6A80),
        ((0xE1, 0x00, b"\x01\x0b" + bytes(44)), 0x6A80),
        ((0xE1, 0x04, b"\xff" * 8), 0x6A80),
    ],
)
async def test_commands_that_are_none(command, status):
    async with table() as it:
        assert await it.host.exchange(*command) == (status, b"")
        assert (await it.host.exchange(*FINGERPRINT))[0] == 0x9000


async def test_a_stream_that_makes_no_sense_is_closed_and_the_next_one_is_served():
    async with table() as it:
        it.host.writer.write(b"GET / HTTP/1.1\r\n")
        assert await it.host.reader.read() == b""
        async with host_of(it.endpoint) as again:
            assert (await again.exchange(*FINGERPRINT))[0] == 0x9000


async def test_in_another_app_it_tells_the_name_and_nothing_else():
    async with table(app_name="Ethereum") as it:
        _, data = await it.host.exchange(*GET_VERSION)
        assert b"Ethereum" in data
        assert await it.host.exchange(*FINGERPRINT) == (0x6E00, b"")
        it.device.app_name = "Bitcoin Test"  # the person opens it
        assert (await it.host.exchange(*FINGERPRINT))[0] == 0x9000


async def test_a_locked_device_tells_nothing():
    async with table() as it:
        it.device.lock()
        for command in (GET_VERSION, FINGERPRINT, (0xF8, 0x01), (0x00, 0x00)):
            assert await it.host.exchange(*command) == (0x5515, b"")
        it.device.unlock()
        assert (await it.host.exchange(*FINGERPRINT))[0] == 0x9000


async def test_the_host_that_connects_last_is_served_and_no_other():
    async with table() as it:
        assert (await it.host.exchange(*FINGERPRINT))[0] == 0x9000
        async with host_of(it.endpoint) as other:
            assert (await other.exchange(*FINGERPRINT))[0] == 0x9000
            it.host.send(*FINGERPRINT)
            assert await it.host.hears_nothing()
        it.host.send(*FINGERPRINT)
        assert await it.host.hears_nothing()


async def test_a_taken_port():
    async with table() as it:
        port = int(it.endpoint.place.rpartition(":")[2])
        with pytest.raises(AddressUnavailable):
            await VirtualLedger(seed(), Panel(), NETWORK).start(port=port)


@pytest.mark.parametrize(("host", "port"), [("0.0.0.0", 0), ("example.org", 0), ("127.0.0.1", 65_536)])
async def test_an_address_that_is_not_of_this_machine_or_none(host, port):
    with pytest.raises(InvalidListenAddress):
        await VirtualLedger(seed(), Panel(), NETWORK).start(host, port)


async def test_a_device_that_is_plugged_in_again_is_at_its_port_and_knows_nothing_of_before():
    async with table() as it:
        port = int(it.endpoint.place.rpartition(":")[2])
        assert await it.device.start(port=port) == it.endpoint
        assert await it.host.hears_nothing()
        async with host_of(it.endpoint) as again:
            assert (await again.exchange(*FINGERPRINT))[0] == 0x9000
