"""Another wallet on the same machine: unmodified HWI opens a device that ours is at work with, and asks it
for a key.

It runs as a program of its own: `python -m tests.conformance.second_program
trezor:udp:127.0.0.1:21324`.
"""

import asyncio
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress

from hwilib.common import Chain
from hwilib.devices import coldcard as hwi_coldcard
from hwilib.devices.ckcc.client import UnixSimulatorPipe
from hwilib.devices.ledger import LedgerClient
from hwilib.devices.trezor import TrezorClient

from device_simulators.ledger import VirtualLedger
from firmware_bridge import Endpoint, Family

# Loads it: HWI's client of a Trezor wants libusb at any address.
from firmware_bridge.hwi_client import libusb  # noqa: F401
from tests.conformance.rigs import PATIENCE, Rig

# A Trezor One ignores it while it asks, and answers the program that wrote last: long enough for ours to have
# written again.
_IGNORED = 1.2
_PATH = "m/48h/1h/0h/2h"


async def grab(rig: Rig) -> None:
    """Returns when the other program has its key, has been turned away, or has been ignored for a while."""
    async with started(rig) as ask:
        await ask()


async def grab_while_asked(rig: Rig) -> None:
    """A Ledger's app then waits for a host that has left, and ends: here without that silence."""
    await grab(rig)
    device = rig.device
    if isinstance(device, VirtualLedger):

        def call_soon(_seconds: float, end: Callable[[], None]) -> asyncio.Handle:
            device.call_later = None
            return asyncio.get_running_loop().call_soon(end)

        device.call_later = call_soon


@asynccontextmanager
async def started(rig: Rig) -> AsyncIterator[Callable[..., Awaitable[None]]]:
    """The other program runs, and uses the device when this is called: at once, however long its start takes.

    `working`: in the middle of our work, where a Trezor's answer may come to us.
    """
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "tests.conformance.second_program",
        str(rig.endpoint),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
    )

    async def ask(*, working: bool = False) -> None:
        process.stdin.write(b"ask\n")
        async with asyncio.timeout(PATIENCE):
            with suppress(TimeoutError):
                ignored = rig.family is Family.TREZOR and (working or rig.panel.pending is not None)
                async with asyncio.timeout(_IGNORED if ignored else None):
                    said = await process.stdout.readline()
                    assert said.split()[:1] in ([b"key"], [b"refused"])

    try:
        async with asyncio.timeout(PATIENCE):
            assert await process.stdout.readline() == b"ready\n", "it did not start"
        yield ask
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()


def open_trezor(endpoint: Endpoint, chain: Chain = Chain.TEST) -> TrezorClient:
    """HWI's client of an emulator at any address."""
    return TrezorClient(endpoint.address, chain=chain, sim_path=endpoint.place)


def open_ledger(endpoint: Endpoint, chain: Chain = Chain.TEST) -> LedgerClient:
    """HWI's client of an emulator at any address. Where the device refuses it, HWI leaves its socket open."""
    client = LedgerClient.__new__(LedgerClient)
    try:
        client.__init__(endpoint.address, chain=chain)
    except Exception:
        client.transport_client.stop()
        raise
    return client


@contextmanager
def open_coldcard(path: str, chain: Chain = Chain.REGTEST) -> Iterator[hwi_coldcard.ColdcardClient]:
    """HWI's client of the device at this socket, told that it is hardware: otherwise HWI presses its
    buttons.
    """
    # ckcc would name its own socket after the device's path, which need not be a name.
    UnixSimulatorPipe.get_sim_pid = lambda _pipe: ""
    fixed = hwi_coldcard.CC_SIMULATOR_SOCK
    hwi_coldcard.CC_SIMULATOR_SOCK = path
    try:
        client = hwi_coldcard.ColdcardClient(path, chain=chain)
    finally:
        hwi_coldcard.CC_SIMULATOR_SOCK = fixed
    client.device.is_simulator = False
    client._is_edge = False
    try:
        yield client
    finally:
        client.close()


def _read_key(endpoint: Endpoint) -> str:
    match endpoint.family:
        case Family.TREZOR:
            return open_trezor(endpoint, Chain.TESTNET4).get_pubkey_at_path(_PATH).to_string()
        case Family.COLDCARD:
            with open_coldcard(endpoint.place, Chain.TESTNET4) as client:
                return client.get_pubkey_at_path(_PATH).to_string()
        case _:
            return open_ledger(endpoint, Chain.TESTNET4).get_pubkey_at_path(_PATH).to_string()


def _main() -> None:
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    sys.stdin.readline()
    try:
        words = "key " + _read_key(Endpoint.parse(sys.argv[1]))
    except Exception as error:  # noqa: BLE001 - HWI may raise anything at a busy device
        words = f"refused {error!r}"
    sys.stdout.write(words + "\n")


if __name__ == "__main__":
    _main()
