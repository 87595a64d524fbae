"""The link to a Ledger against a scripted server: cases that the library's own transport does not survive."""

import asyncio
from contextlib import asynccontextmanager
from types import SimpleNamespace
from unittest.mock import Mock

import pytest
from hwilib.devices.ledger_bitcoin.ledgercomm.interfaces import hid_device

from firmware_bridge.model import Endpoint, Family
from multisig import Network
from tests.conformance.rigs import NETWORK, make_vault
from tests.support.driver import policy_args
from tests.support.ledger_driver import ANOTHER, Cut, driven, fails_with, reply, scripted, version
from tests.support.wallets import make_spend

pytestmark = pytest.mark.anyio

VERSION, FINGERPRINT, XPUB = b"\xb0\x01", b"\xe1\x05", b"\xe1\x00"
REGISTER, SIGN, MESSAGE, CONTINUE = b"\xe1\x02", b"\xe1\x04", b"\xe1\x10", b"\xf8\x01"
MASTER = reply(0x9000, bytes.fromhex("d34db33f"))
INCORRECT = reply(0x6A80)
POLICY = policy_args(make_vault(), hmac=ANOTHER)
SIGN_ARGS = {"psbt": make_spend(make_vault()).to_base64(), "policy": POLICY}


async def test_an_answer_that_comes_in_pieces():
    async def dribble(reader, writer):
        for answer in (version(), MASTER):
            await reader.readexactly(int.from_bytes(await reader.readexactly(4)))
            for at in range(len(answer)):
                writer.write(answer[at : at + 1])
                await writer.drain()
                await asyncio.sleep(0)
        writer.close()

    server = await asyncio.start_server(dribble, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    async with server, driven(Endpoint(Family.LEDGER, f"tcp:127.0.0.1:{port}")) as driver:
        assert await driver.call("fingerprint") == "d34db33f"


KNOWN = {VERSION: [version()], FINGERPRINT: [MASTER]}
READING = ("fingerprint", {})
SIGNING = ("sign", SIGN_ARGS)
PROVING = ("sign_message", {"text": "I am here", "path": "m/84h/1h/0h/0/0"})
ENROLLING = ("enrol", {"policy": policy_args(make_vault()), "again": False})


@asynccontextmanager
async def answering(answers, network=NETWORK):
    """A device that knows who it is, and answers the other commands so."""
    async with scripted(KNOWN | answers) as (script, endpoint), driven(endpoint, network) as driver:
        yield script, driver


# A Ledger's answers, the call, and the outcome with its words.
FAILURES = [
    # The connection ends.
    *(({FINGERPRINT: [Cut(MASTER[:cut])]}, READING, "disconnected", "") for cut in (0, 2, 4, 6, 9)),
    ({FINGERPRINT: [(257).to_bytes(4) + bytes(20)]}, READING, "device-fault", "257 bytes"),
    # A question of an earlier host keeps it busy.
    *(({VERSION: [reply(status)]}, ("probe", {}), "busy", "") for status in (0x6901, 0x6985, 0xE000)),
    # It asks for what does not exist: nothing, an unknown request, a preimage, a leaf, more, a short result
    # and a shorter number.
    *(
        ({SIGN: [reply(0xE000, junk)], CONTINUE: [reply(0x9000)]}, SIGNING, "device-fault", "")
        for junk in (
            *(b"", b"\x99", b"\x40\x00" + bytes(32), b"\x41" + bytes(34)),
            *(b"\xa0", b"\x10\x07", b"\x10\xff"),
        )
    ),
    ({REGISTER: [reply(0x9000, bytes(64))]}, ENROLLING, "device-fault", "another vault"),
    # What a person is asked is asked once.
    ({SIGN: [INCORRECT]}, SIGNING, "device-fault", "0x6A80"),
    ({MESSAGE: [INCORRECT]}, PROVING, "device-fault", "0x6A80"),
    ({XPUB: [INCORRECT]}, ("identify", {}), "device-fault", "0x6A80"),
    # A harmless command precedes it: that takes the answer to the cut-off host's command.
    ({FINGERPRINT: [INCORRECT, MASTER], SIGN: [reply(0x6985)]}, SIGNING, "refused-by-person", ""),
]


@pytest.mark.parametrize(("answers", "call", "code", "words"), FAILURES)
async def test_how_it_ends_and_no_person_is_asked_twice(answers, call, code, words):
    op, args = call
    async with answering(answers) as (script, driver):
        with fails_with(code, words):
            await driver.call(op, **args)
    assert max(script.count(command) for command in (SIGN, MESSAGE, REGISTER, XPUB)) <= 1


@pytest.mark.parametrize(
    ("answers", "op", "args"),
    [
        ({VERSION: [INCORRECT, version()]}, "fingerprint", {}),
        ({FINGERPRINT: [INCORRECT, MASTER]}, "fingerprint", {}),
        ({XPUB: [INCORRECT, reply(0x9000, b"tpub")]}, "xpubs", {"paths": ["m/48h/1h/0h/2h"]}),
    ],
    ids=["version", "fingerprint", "xpub"],
)
async def test_a_command_that_clears_what_an_earlier_host_left_is_sent_twice(answers, op, args):
    async with answering(answers) as (_script, driver):
        assert await driver.call(op, **args)


@pytest.mark.parametrize("status", [0x5515, 0x6511, 0x6804, 0x6982, 0x6A82, 0x6FAA])
async def test_a_device_that_is_locked_or_asleep(status):
    async with answering({VERSION: [reply(status)]}) as (_script, driver):
        assert (await driver.call("probe")).obstacle == "locked"
        with fails_with("locked"):
            await driver.call("fingerprint")


@pytest.mark.parametrize("number", ["1.6.5", "2.0.6"])
async def test_an_app_that_knows_no_vaults_is_told_before_anything_is_asked(number):
    async with answering({VERSION: [version(number=number)]}) as (script, driver):
        assert (await driver.call("probe")).obstacle == "unsupported"
        with fails_with("unsupported", r"update it to 2\.1 or later"):
            await driver.call("sign", **SIGN_ARGS)
    assert {command[:2] for command in script.commands} == {VERSION}


@pytest.mark.parametrize(
    ("network", "answer", "expected"),
    [
        (Network.MAINNET, reply(0x9000, b"xpub6"), None),
        (Network.TESTNET4, reply(0x9000, b"tpubD"), None),
        (Network.REGTEST, reply(0x9000, b"tpubD"), None),
        (Network.MAINNET, reply(0x9000, b"tpubD"), "wrong-app"),
        (Network.TESTNET4, reply(0x9000, b"xpub6"), "wrong-app"),
        (Network.MAINNET, reply(0x6A82), "wrong-app"),
    ],
)
async def test_s14_an_app_without_a_name_is_known_by_its_keys(network, answer, expected):
    async with answering({VERSION: [version("app")], XPUB: [answer]}, network) as (_script, driver):
        assert (await driver.call("probe")).obstacle == expected


async def test_a_cable_that_is_pulled(monkeypatch):
    """After the first report."""
    unplugged = Mock(**{"write.return_value": -1, "read.side_effect": OSError("read error")})
    monkeypatch.setattr(hid_device, "hid", SimpleNamespace(device=lambda: unplugged))
    async with driven(Endpoint(Family.LEDGER, "hid:1-2:1.0"), NETWORK) as driver:
        with fails_with("disconnected"):
            await driver.call("fingerprint")
