"""What the virtual Trezor shows when unmodified HWI drives it. That it drives every make as hardware:
firmware_bridge/test_parity.py.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import anyio.to_thread
import pytest

from device_simulators.panel import Panel, Script, approve_all
from device_simulators.trezor import VirtualTrezor
from firmware_bridge.model import Endpoint
from multisig import (
    ChangeTo,
    Sats,
    TxOut,
    accept_signatures,
    op_return_script,
)
from tests.conformance.second_program import open_trezor
from tests.support import hwi, virtual
from tests.support.virtual import NETWORK, Record, seed, spend

pytestmark = pytest.mark.anyio


class Bench:
    """A running device, what it showed, and HWI's client of it."""

    def __init__(self, device: VirtualTrezor, endpoint: Endpoint) -> None:
        self.device = device
        self.endpoint = endpoint
        self.record = Record(device.panel)

    async def hwi(self, work):
        """Do something with a fresh HWI client, in a thread."""

        def run():
            client = open_trezor(self.endpoint)
            try:
                return work(client)
            finally:
                hwi.close(client)

        return await anyio.to_thread.run_sync(run)


@asynccontextmanager
async def bench(script: Script = approve_all, **options) -> AsyncIterator[Bench]:
    options.setdefault("allow_keypress", True)
    device = VirtualTrezor(seed(), Panel(script), NETWORK, **options)
    endpoint = await device.start()
    try:
        yield Bench(device, endpoint)
    finally:
        await device.stop()


async def signed_by(psbt, **options):
    """(what HWI gave back, what was shown)."""
    async with bench(**options) as it:
        return await it.hwi(lambda client: hwi.sign(client, psbt)), it.record


BINARY = bytes(range(1, 76))


@pytest.mark.parametrize(
    ("data", "shown"),
    [
        (BINARY[:1], "01"),
        (BINARY[:32], BINARY[:32].hex().upper()),
        (BINARY[:33], BINARY[:31].hex().upper() + ".."),
        (BINARY, BINARY[:31].hex().upper() + ".."),
        (b"t" * 75, "t" * 75),
    ],
    ids=lambda value: value if isinstance(value, str) and len(value) == 1 else str(len(value)),
)
async def test_op_return_data_is_shown_as_far_as_the_screen_goes_and_signed_whole(data, shown):
    policy = virtual.profile()
    outputs = [TxOut(Sats(0), op_return_script(data)), ChangeTo(Sats(990_000), 1, 0)]
    psbt = spend(policy, outputs=outputs)
    returned, record = await signed_by(psbt)
    assert record.kinds == ["sign-op-return", "sign-total"]
    assert record.prompts[0].lines == ("Confirm OP_RETURN:", shown)
    accept_signatures(psbt, returned, policy, seed().fingerprint)
