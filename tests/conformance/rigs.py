"""A virtual device of each make, or a fake of it, with a person at its buttons, a vault it belongs to, and a
bridge to it.
"""

import asyncio
import socket
import tempfile
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import ClassVar

from mnemonic import Mnemonic

from device_simulators.coldcard.approvals import SAVED, Closing
from device_simulators.coldcard.device import VirtualColdcard
from device_simulators.fake import FakeDevice, listing_of, spawner_of
from device_simulators.faults import Faults
from device_simulators.ledger.device import VirtualLedger
from device_simulators.panel import Panel, approve_all
from device_simulators.seed import Seed
from device_simulators.trezor.device import VirtualTrezor
from firmware_bridge import Bridge, Deadlines, Device, Endpoint, Family, Registrations
from firmware_bridge.presence import endpoint_listing
from firmware_bridge.worker import Process, Spawner, spawn
from multisig import Network, Profile, Vault, multisig_account_path
from tests.support import wallets

PATIENCE = 90.0
"""Seconds until a case that hangs has failed. It judges no speed: the machine may be busy."""

EYES = 30.0
"""Seconds in which a device at an endpoint has been read to its last page, and its button pressed."""

NETWORK = Network.TESTNET4
ACCOUNT = multisig_account_path(NETWORK)
VIRTUAL = {Family.TREZOR: VirtualTrezor, Family.COLDCARD: VirtualColdcard, Family.LEDGER: VirtualLedger}
_ENTROPIES = tuple(bytes([number]) * 16 for number in (1, 2, 3))
SEEDS = tuple(Seed.from_entropy(entropy) for entropy in _ENTROPIES)
COSIGNERS = tuple(wallets.Holder(seed, NETWORK) for seed in SEEDS)
# The words for a device outside of this process.
WORDS = {
    seed.fingerprint: Mnemonic("english").to_mnemonic(entropy)
    for seed, entropy in zip(SEEDS, _ENTROPIES, strict=True)
}

# Without the pauses that spare real devices. A test of a deadline has a short one of its own
# (``replace_deadlines``), to which no input adds.
QUICK = Deadlines(
    probe=PATIENCE, read=PATIENCE, work=PATIENCE, person=PATIENCE, margin=0.0, grace=1.0, retry=0.0
)


def replace_deadlines(**seconds: float) -> Deadlines:
    return replace(QUICK, **seconds)


def make_vault(threshold: int = 2, network: Network = NETWORK) -> Vault:
    return wallets.make_vault(COSIGNERS, threshold, network=network)


@dataclass
class Rig:
    """One virtual device, or a fake of one. Its seed is the first of `SEEDS` unless another is asked for."""

    family: Family
    device: VirtualTrezor | VirtualColdcard | VirtualLedger | FakeDevice
    panel: Panel
    seed: Seed
    socket: Path
    endpoint: Endpoint | None = None
    workers: list[Process] = field(default_factory=list)
    """Every worker that was started for it, the last one last."""
    is_remote: ClassVar[bool] = False
    """Whether its device is outside of this process (`tests.conformance.remote`)."""

    @property
    def is_fake(self) -> bool:
        return isinstance(self.device, FakeDevice)

    @property
    def profile(self) -> Profile:
        """Of whoever has the device."""
        return wallets.Holder(self.seed, NETWORK).profile()

    async def plug_in(self) -> Endpoint:
        if isinstance(self.device, FakeDevice):
            self.device.plug_in()
            self.endpoint = self.device.endpoint
        elif isinstance(self.device, VirtualColdcard):
            self.endpoint = await self.device.start(self.socket)
        else:
            port = 0 if self.endpoint is None else int(self.endpoint.address.rpartition(":")[2])
            self.endpoint = await self.device.start(port=port)
        return self.endpoint

    async def unplug(self) -> None:
        if isinstance(self.device, FakeDevice):
            self.device.unplug()
        else:
            await self.device.stop()

    async def looked(self) -> None:
        """What is on the screen now has been told to the panel's watchers."""

    async def put_away(self) -> None:
        """At the end of a case."""
        await self.unplug()

    async def mend(self) -> None:
        """Take the fault away, and plug the device in again if it has gone or stopped answering."""
        self.device.faults = Faults()
        await self.unplug()
        await self.plug_in()

    async def shown(self, kind: str = "sign") -> None:
        """Wait until the screen asks something of this kind, but not for ever."""
        await self.until(lambda: self._asks(kind))

    async def until(self, reached: Callable[[], bool]) -> None:
        """Wait until the screen is like that, but not for ever."""
        changed = asyncio.Event()
        unwatch = self.panel.watch(lambda _event: changed.set())
        try:
            async with asyncio.timeout(PATIENCE):
                while not reached():
                    await changed.wait()
                    changed.clear()
        finally:
            unwatch()

    def _asks(self, kind: str) -> bool:
        """Eyes that cannot tell one kind of screen from another see one that asks."""
        pending = self.panel.pending
        return pending is not None and (pending[1].kind.startswith(kind) or not pending[1].kind)


async def no_longer_than_needed(closing: Closing, over: asyncio.Event) -> None:
    """How a virtual Coldcard under test says how a request ended: a refusal until the host has heard of it,
    and no clock.
    """
    if closing is not SAVED:
        await over.wait()


# What a virtual device is built with besides, so that no test waits for a clock.
UNDER_TEST: dict[Family, dict[str, object]] = {Family.COLDCARD: {"pause": no_longer_than_needed}}


def make_rig(
    family: Family, folder: Path, *, seed: Seed = SEEDS[0], faults: Faults | None = None, **options: object
) -> Rig:
    panel = Panel(approve_all)
    options = {**UNDER_TEST.get(family, {}), **options}
    device = VIRTUAL[family](seed, panel, NETWORK, faults=faults or Faults(), **options)
    return Rig(family, device, panel, seed, folder / f"coldcard-{seed.fingerprint}.sock")


def make_fake(family: Family, *, seed: Seed = SEEDS[0], **options: object) -> Rig:
    """A fake that plays a device of this make."""
    device = FakeDevice(seed, NETWORK, family=family, **options)
    return Rig(family, device, device.panel, seed, Path())


@asynccontextmanager
async def plugged_in(rig: Rig) -> AsyncIterator[Endpoint]:
    try:
        yield await rig.plug_in()
    finally:
        await rig.put_away()


@asynccontextmanager
async def bridged(
    *rigs: Rig,
    deadlines: Deadlines = QUICK,
    clock: Callable[[], float] | None = None,
    registrations: Registrations | None = None,
    network: Network = NETWORK,
) -> AsyncIterator[tuple[Bridge, list[Device]]]:
    """The devices plugged in, and a bridge that has found them; in the order of the rigs. No deadline is
    shorter than a device at an endpoint, and whoever reads it, needs.
    """
    if any(rig.is_remote for rig in rigs):
        bounds = ("probe", "read", "work", "person")
        deadlines = replace(deadlines, **{name: max(EYES, getattr(deadlines, name)) for name in bounds})
    endpoints = [await rig.plug_in() for rig in rigs]
    options = {} if clock is None else {"clock": clock}
    fakes = [rig.device for rig in rigs if isinstance(rig.device, FakeDevice)]
    places = [rig.endpoint for rig in rigs if not rig.is_fake]
    try:
        async with Bridge(
            network=network,
            usb=False,
            deadlines=deadlines,
            registrations=registrations,
            listings=[endpoint_listing(places), listing_of(*fakes)],
            spawner=_recording(rigs, spawner_of(*fakes)),
            **options,
        ) as bridge:
            found = {device.endpoint: device for device in await bridge.refresh()}
            yield bridge, [found[endpoint] for endpoint in endpoints]
    finally:
        for rig in rigs:
            await rig.put_away()


def _recording(rigs: Sequence[Rig], spawn_fake: Spawner) -> Spawner:
    """Starts workers, and tells the rigs which."""
    by_endpoint = {str(rig.endpoint): rig for rig in rigs}

    def start(channel: socket.socket, endpoint: str, network: str) -> Process:
        rig = by_endpoint[endpoint]
        process = (spawn_fake if rig.is_fake else spawn)(channel, endpoint, network)
        rig.workers.append(process)
        return process

    return start


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
