"""Another wallet on the same machine: unmodified HWI opens a device that ours is at work with, and asks it for a key.

A program of its own, as a person's other wallet is: `python -m tests.support.second_program trezor:udp:127.0.0.1:21324`.
"""

import asyncio
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path

from hwilib.common import Chain

from firmware_bridge import Endpoint, Family
from tests.support import coldcard, hwi, ledger_host
from tests.support.patience import PATIENCE
from tests.support.rigs import Rig

_ROOT = Path(__file__).parents[2]
# A Trezor One ignores it while it asks, and answers whoever wrote last: long enough for ours to have written again.
_IGNORED = 1.2
_PATH = "m/48h/1h/0h/2h"


async def grab(rig: Rig) -> None:
    """Returns when the other program has its key, has been turned away, or has been ignored for a while."""
    async with started(rig) as ask:
        await ask()


@asynccontextmanager
async def started(rig: Rig) -> AsyncIterator[Callable[..., Awaitable[None]]]:
    """The other program runs, and uses the device when this is called: at once, however long its start takes.

    `working`: in the middle of our work, where a Trezor's answer may come to us.
    """
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "tests.support.second_program",
        str(rig.endpoint),
        cwd=_ROOT,
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


def _read_key(endpoint: Endpoint) -> str:
    match endpoint.family:
        case Family.TREZOR:
            return hwi.trezor(endpoint, Chain.TESTNET4).get_pubkey_at_path(_PATH).to_string()
        case Family.COLDCARD:
            with coldcard.hwi_client(endpoint.place, Chain.TESTNET4) as client:
                return client.get_pubkey_at_path(_PATH).to_string()
        case _:
            return ledger_host.client_of(endpoint, Chain.TESTNET4).get_pubkey_at_path(_PATH).to_string()


def _main() -> None:
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    sys.stdin.readline()
    try:
        words = "key " + _read_key(Endpoint.parse(sys.argv[1]))
    except Exception as error:  # noqa: BLE001 - whatever HWI makes of a device that is busy
        words = f"refused {error!r}"
    sys.stdout.write(words + "\n")


if __name__ == "__main__":
    _main()
