"""The link to a Ledger against a scripted server: cases that the library's own transport does not survive."""

import asyncio
from types import SimpleNamespace

import pytest
from hwilib.devices.ledger_bitcoin.ledgercomm.interfaces import hid_device

from firmware_bridge.model import Endpoint, Family
from multisig import Network
from tests.conformance.rigs import NETWORK, make_vault
from tests.support.ledger_driver import ANOTHER, Cut, driven, fails_with, policy_of, reply, scripted, version
from tests.support.wallets import make_spend

pytestmark = pytest.mark.anyio

VERSION, FINGERPRINT, XPUB = b"\xb0\x01", b"\xe1\x05", b"\xe1\x00"
REGISTER, SIGN, MESSAGE, CONTINUE = b"\xe1\x02", b"\xe1\x04", b"\xe1\x10", b"\xf8\x01"
MASTER = reply(0x9000, bytes.fromhex("d34db33f"))
INCORRECT, BUSY = reply(0x6A80), reply(0x6901)
POLICY = policy_of(make_vault(), hmac=ANOTHER)
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


@pytest.mark.parametrize("cut", [0, 2, 4, 6, len(MASTER) - 1])
async def test_a_connection_that_ends_is_not_an_empty_status(cut):
    answers = {VERSION: [version()], FINGERPRINT: [Cut(MASTER[:cut])]}
    async with scripted(answers) as (_script, endpoint), driven(endpoint) as driver:
        with fails_with("disconnected"):
            await driver.call("fingerprint")


async def test_an_answer_of_a_length_that_no_answer_has():
    answers = {VERSION: [version()], FINGERPRINT: [(257).to_bytes(4) + bytes(20)]}
    async with scripted(answers) as (_script, endpoint), driven(endpoint) as driver:
        with fails_with("device-fault", "257 bytes"):
            await driver.call("fingerprint")


@pytest.mark.parametrize(
    ("answers", "op", "args"),
    [
        ({VERSION: [INCORRECT, version()], FINGERPRINT: [MASTER]}, "fingerprint", {}),
        ({VERSION: [version()], FINGERPRINT: [INCORRECT, MASTER]}, "fingerprint", {}),
        (
            {VERSION: [version()], FINGERPRINT: [MASTER], XPUB: [INCORRECT, reply(0x9000, b"tpub")]},
            "xpubs",
            {"paths": ["m/48h/1h/0h/2h"]},
        ),
    ],
    ids=["version", "fingerprint", "xpub"],
)
async def test_a_command_that_clears_what_an_earlier_host_left_is_sent_twice(answers, op, args):
    async with scripted(answers) as (_script, endpoint), driven(endpoint) as driver:
        assert await driver.call(op, **args)


@pytest.mark.parametrize(
    ("op", "args", "command"),
    [
        ("sign", SIGN_ARGS, SIGN),
        ("sign_message", {"text": "I am here", "path": "m/84h/1h/0h/0/0"}, MESSAGE),
        ("identify", {}, XPUB),
    ],
)
async def test_what_a_person_is_asked_is_asked_once(op, args, command):
    answers = {VERSION: [version()], FINGERPRINT: [MASTER], command: [INCORRECT]}
    async with scripted(answers) as (script, endpoint), driven(endpoint) as driver:
        with fails_with("device-fault", "0x6A80"):
            await driver.call(op, **args)
        assert script.count(command) == 1


async def test_a_harmless_command_precedes_each_prompt():
    """It takes the answer to the cut-off host's command; the signing after it starts afresh."""
    answers = {VERSION: [version()], FINGERPRINT: [INCORRECT, MASTER], SIGN: [reply(0x6985)]}
    async with scripted(answers) as (script, endpoint), driven(endpoint) as driver:
        with fails_with("refused-by-person"):
            await driver.call("sign", **SIGN_ARGS)
    assert script.count(SIGN) == 1


@pytest.mark.parametrize("status", [0x6901, 0x6985, 0xE000])
async def test_a_question_of_an_earlier_host_keeps_the_device_busy(status):
    async with scripted({VERSION: [reply(status)]}) as (_script, endpoint), driven(endpoint) as driver:
        with fails_with("busy"):
            await driver.call("probe")


@pytest.mark.parametrize("status", [0x5515, 0x6511, 0x6804, 0x6982, 0x6A82, 0x6FAA])
async def test_a_device_that_is_locked_or_asleep(status):
    async with scripted({VERSION: [reply(status)]}) as (_script, endpoint), driven(endpoint) as driver:
        assert (await driver.call("probe")).obstacle == "locked"
        with fails_with("locked"):
            await driver.call("fingerprint")


@pytest.mark.parametrize("number", ["1.6.5", "2.0.6"])
async def test_an_app_that_knows_no_vaults_is_told_before_anything_is_asked(number):
    answers = {VERSION: [version(number=number)]}
    async with scripted(answers) as (script, endpoint), driven(endpoint) as driver:
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
    answers = {VERSION: [version("app")], FINGERPRINT: [MASTER], XPUB: [answer]}
    async with scripted(answers) as (_script, endpoint), driven(endpoint, network) as driver:
        assert (await driver.call("probe")).obstacle == expected


@pytest.mark.parametrize(
    "junk",
    [b"", b"\x99", b"\x40\x00" + bytes(32), b"\x41" + bytes(34), b"\xa0", b"\x10\x07", b"\x10\xff"],
    ids=["empty", "unknown", "preimage", "leaf", "more", "short-result", "shorter-number"],
)
async def test_a_device_that_asks_for_what_does_not_exist(junk):
    answers = {
        VERSION: [version()],
        FINGERPRINT: [MASTER],
        SIGN: [reply(0xE000, junk)],
        CONTINUE: [reply(0x9000)],
    }
    async with scripted(answers) as (_script, endpoint), driven(endpoint) as driver:
        with fails_with("device-fault"):
            await driver.call("sign", **SIGN_ARGS)


async def test_a_registration_of_another_vault():
    answers = {VERSION: [version()], FINGERPRINT: [MASTER], REGISTER: [reply(0x9000, bytes(64))]}
    async with scripted(answers) as (_script, endpoint), driven(endpoint) as driver:
        with fails_with("device-fault", "another vault"):
            await driver.enrol(make_vault())


class Unplugged:
    """hidapi's handle on a device whose cable is pulled after the first report."""

    def open_path(self, path):
        self.path = path

    def set_nonblocking(self, _value):
        pass

    def write(self, _report):
        return -1

    def read(self, _size, timeout_ms=0):
        raise OSError("read error")

    def close(self):
        pass


async def test_a_cable_that_is_pulled(monkeypatch):
    monkeypatch.setattr(hid_device, "hid", SimpleNamespace(device=Unplugged))
    async with driven(Endpoint(Family.LEDGER, "hid:1-2:1.0"), NETWORK) as driver:
        with fails_with("disconnected"):
            await driver.call("fingerprint")
