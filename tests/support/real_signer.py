"""A whole daemon with a virtual device behind real HWI, signed in at a real platform, all in this process."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import httpx

from firmware_bridge import Bridge
from multisig import Network
from signerd.app import DaemonDependencies, open_daemon
from signerd.daemon import vaults
from signerd.daemon.service import Daemon
from signerd.journal import held
from tests.conformance.rigs import Rig, plugged_in
from tests.support.custody import Desk
from tests.support.daemons import MemoryStore, make_config, until
from tests.support.patience import PATIENCE
from tests.support.platform import PASSWORD


@asynccontextmanager
async def signer(
    desk: Desk,
    name: str,
    rig: Rig | None,
    folder: Path,
    store: MemoryStore | None = None,
    *,
    at: str = "",
    signs_in: bool = True,
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
) -> AsyncIterator[Daemon]:
    """``rig``: the plugged-in device, or None. ``at``: the state folder's name, by default the person's."""
    state = folder / (at or name)
    state.mkdir(mode=0o700, exist_ok=True)
    async with AsyncExitStack() as stack:
        endpoints = [] if rig is None else [await stack.enter_async_context(plugged_in(rig))]
        bridge = await stack.enter_async_context(
            Bridge(network=Network.REGTEST, endpoints=endpoints, usb=False)
        )
        transport = httpx.ASGITransport(desk.world.platform.asgi, client=("192.0.2.9", 50_000))
        outside = DaemonDependencies(transport=transport, bridge=bridge, sleep=sleep)
        stack.enter_context(held(state))
        daemon = await stack.enter_async_context(
            open_daemon(make_config(), state, store or MemoryStore(), outside)
        )
        if signs_in:
            await daemon.sign_in(f"{name}@example.org", PASSWORD)
        if rig is not None:
            await ready(daemon)
        yield daemon


async def ready(daemon: Daemon) -> None:
    async with asyncio.timeout(PATIENCE):
        while not any(device.state == "ready" for device in await daemon.devices()):  # noqa: ASYNC110 - asked, as a person asks
            await asyncio.sleep(0.02)


async def register(daemon: Daemon, *, replace: bool = False) -> None:
    preview = await daemon.preview_registration()
    await daemon.register(preview.device_id, preview.digest, replace=replace)


async def pin(daemon: Daemon, vault_id: str) -> str:
    await until(lambda: daemon.follower.reachable)
    (vault,) = [seen for seen in await vaults.vaults(daemon) if seen.vault_id == vault_id]
    assert vault.fault is None
    assert vault.verification_code is not None
    assert (await vaults.pin(daemon, vault_id, vault.verification_code)).enrolled
    return vault.verification_code
