"""A virtual device of each make with a person at its buttons, a vault it belongs to, and a bridge to it."""

import asyncio
import tempfile
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path

from firmware_bridge import Bridge, Deadlines, Device, Endpoint, Family
from firmware_bridge.virtual.coldcard.device import VirtualColdcard
from firmware_bridge.virtual.coldcard.wallet_store import XpubPolicy
from firmware_bridge.virtual.faults import Faults
from firmware_bridge.virtual.ledger.device import VirtualLedger
from firmware_bridge.virtual.panel import Panel, approve_all
from firmware_bridge.virtual.seed import Seed
from firmware_bridge.virtual.trezor.device import VirtualTrezor
from multisig import (
    KeyOrigin,
    Network,
    OriginKey,
    Vault,
    multisig_account_path,
)

__all__ = ["XpubPolicy"]

NETWORK = Network.TESTNET4
ACCOUNT = multisig_account_path(NETWORK)
MAKES = (Family.TREZOR, Family.COLDCARD)
VIRTUAL = {
    Family.TREZOR: VirtualTrezor,
    Family.COLDCARD: VirtualColdcard,
    Family.LEDGER: VirtualLedger,
}
SEEDS = tuple(Seed.from_entropy(bytes([number]) * 16) for number in (1, 2, 3))

# Short enough that a test of a deadline is quick, long enough for two busy cores.
QUICK = Deadlines(probe=3.0, read=5.0, person=8.0, per_input=0.1, grace=0.3, retry=0.0)


def replace_deadlines(**seconds: float) -> Deadlines:
    return replace(QUICK, **seconds)


def vault_key(seed: Seed) -> OriginKey:
    return OriginKey(KeyOrigin(seed.fingerprint, ACCOUNT), seed.xpub(ACCOUNT, NETWORK))


def make_vault(threshold: int = 2) -> Vault:
    return Vault(NETWORK, threshold, tuple(vault_key(seed) for seed in SEEDS))


@dataclass
class Rig:
    """One virtual device. Its seed is the first of `SEEDS` unless another is asked for."""

    family: Family
    device: VirtualTrezor | VirtualColdcard | VirtualLedger
    panel: Panel
    seed: Seed
    socket: Path
    endpoint: Endpoint | None = None

    async def plug_in(self) -> Endpoint:
        if isinstance(self.device, VirtualColdcard):
            self.endpoint = await self.device.start(self.socket)
        else:
            port = 0 if self.endpoint is None else int(self.endpoint.address.rpartition(":")[2])
            self.endpoint = await self.device.start(port=port)
        return self.endpoint

    async def unplug(self) -> None:
        await self.device.stop()

    async def mend(self) -> None:
        """Take the fault away, and plug the device in again if it has gone or stopped answering."""
        self.device.faults = Faults()
        await self.unplug()
        await self.plug_in()

    async def shown(self, kind: str = "sign") -> None:
        """Wait until the screen asks something of this kind."""
        changed = asyncio.Event()
        unwatch = self.panel.watch(lambda _event: changed.set())
        try:
            while (pending := self.panel.pending) is None or not pending[1].kind.startswith(kind):
                await changed.wait()
                changed.clear()
        finally:
            unwatch()


def make_rig(
    family: Family, folder: Path, *, seed: Seed = SEEDS[0], faults: Faults | None = None, **options: object
) -> Rig:
    panel = Panel(approve_all)
    device = VIRTUAL[family](seed, panel, NETWORK, faults=faults or Faults(), **options)
    return Rig(family, device, panel, seed, folder / f"coldcard-{seed.fingerprint}.sock")


@asynccontextmanager
async def plugged_in(rig: Rig) -> AsyncIterator[Endpoint]:
    try:
        yield await rig.plug_in()
    finally:
        await rig.unplug()


@asynccontextmanager
async def bridged(
    *rigs: Rig, deadlines: Deadlines = QUICK, clock: Callable[[], float] | None = None
) -> AsyncIterator[tuple[Bridge, list[Device]]]:
    """The devices plugged in, and a bridge that has found them; in the order of the rigs."""
    endpoints = [await rig.plug_in() for rig in rigs]
    options = {} if clock is None else {"clock": clock}
    try:
        async with Bridge(
            network=NETWORK, endpoints=endpoints, usb=False, deadlines=deadlines, **options
        ) as bridge:
            found = {device.endpoint: device for device in await bridge.refresh()}
            yield bridge, [found[endpoint] for endpoint in endpoints]
    finally:
        for rig in rigs:
            await rig.unplug()


@asynccontextmanager
async def running(coroutine: object) -> AsyncIterator[asyncio.Task]:
    """A task that does not outlive the block."""
    task = asyncio.ensure_future(coroutine)
    try:
        yield task
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError, Exception):
            await task


def short_folder() -> tempfile.TemporaryDirectory:
    """A Unix socket's path has at most about 100 characters; pytest's own folders may have more."""
    return tempfile.TemporaryDirectory(prefix="rig")
