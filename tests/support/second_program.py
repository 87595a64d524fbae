"""Another wallet on the same machine: unmodified HWI opens a device that ours is at work with, and asks it for a key.

It lives in a thread of the test. What becomes of it is its own affair: HWI has no deadline, so its sockets get one here.
"""

import asyncio
import contextlib
from collections.abc import Callable

from hwilib.common import Chain

from firmware_bridge import Endpoint, Family
from tests.support import coldcard, hwi, ledger_host
from tests.support.rigs import Rig

_PATIENCE = 1.0
_PATH = "m/48h/1h/0h/2h"


async def grab(rig: Rig) -> None:
    """Returns when the other program has its answer, or none."""
    await asyncio.to_thread(_GRABS[rig.family], rig.endpoint)


def _trezor(endpoint: Endpoint) -> None:
    client = hwi.trezor(endpoint)
    try:
        # Whatever HWI raises: the device answers that it is busy.
        with contextlib.suppress(Exception):
            client.get_pubkey_at_path(_PATH)
    finally:
        hwi.close(client)


def _coldcard(endpoint: Endpoint) -> None:
    with coldcard.hwi_client(endpoint.place, Chain.TESTNET4) as client:
        client.get_pubkey_at_path(_PATH)


def _ledger(endpoint: Endpoint) -> None:
    # The device answers that it is busy; our own operation has ended by then.
    with contextlib.suppress(Exception):
        client = ledger_host.client_of(endpoint, Chain.TESTNET4)
        client.get_pubkey_at_path(_PATH)


_GRABS: dict[Family, Callable[[Endpoint], None]] = {
    Family.TREZOR: _trezor,
    Family.COLDCARD: _coldcard,
    Family.LEDGER: _ledger,
}
