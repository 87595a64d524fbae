"""Several accounts on one desktop: a daemon for each, with a state folder of its own; a device serves one at
a time.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import pytest

from device_simulators.panel import approve_all, ask_person
from firmware_bridge import Bridge, Endpoint, Family
from multisig import DerivationPath, Network
from signerd.app import DaemonDependencies, _turn, open_daemon
from signerd.daemon.service import Daemon
from signerd.errors import DeviceError
from signerd.journal import held
from tests.conformance.rigs import Rig, make_rig, plugged_in, replace_deadlines, short_folder
from tests.support.daemons import MemoryStore, make_config
from tests.support.fake_platform import FakePlatform
from tests.support.platform import seed

pytestmark = pytest.mark.anyio


def folder_of(tmp_path: Path, name: str) -> Path:
    folder = tmp_path / name
    folder.mkdir(mode=0o700)
    return folder


@asynccontextmanager
async def bridged_daemon(endpoint: Endpoint, state: Path, platform: FakePlatform) -> AsyncIterator[Daemon]:
    async with AsyncExitStack() as stack:
        bridge = await stack.enter_async_context(
            Bridge(
                network=Network.REGTEST,
                endpoints=[endpoint],
                usb=False,
                deadlines=replace_deadlines(retry_shared=0.0),
                turn=_turn(state),
            )
        )
        outside = DaemonDependencies(transport=platform.transport, bridge=bridge)
        stack.enter_context(held(state))
        yield await stack.enter_async_context(open_daemon(make_config(), state, MemoryStore(), outside))


async def device_states(daemon: Daemon) -> list[str]:
    return [device.state for device in await daemon.devices()]


async def device_becomes(daemon: Daemon, state: str) -> None:
    for _ in range(400):
        if await device_states(daemon) == [state]:
            return
        await asyncio.sleep(0.05)
    raise AssertionError([(d.state, d.detail) for d in await daemon.devices()])


async def test_a_device_at_work_for_one_daemon_is_left_alone_by_the_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    with short_folder() as name:
        rig: Rig = make_rig(Family.TREZOR, Path(name), seed=seed(1))
        platform = FakePlatform(tmp_path)
        one, two = folder_of(tmp_path, "one"), folder_of(tmp_path, "two")
        async with plugged_in(rig) as endpoint, bridged_daemon(endpoint, one, platform) as first:
            await device_becomes(first, "ready")
            (device,) = await first.devices()
            path = (await first.preview_registration()).keys[0].path
            rig.panel.script = ask_person
            asking = asyncio.create_task(
                first.bridge_devices.sign_text(
                    device.id, "I am here", DerivationPath.parse(path) / "0/0", lambda _: None
                )
            )
            await rig.shown("")
            async with bridged_daemon(endpoint, two, platform) as second:
                await device_becomes(second, "busy")
                (seen,) = await second.devices()
                assert seen.detail == f"In use by the signerd of {one}."
                with pytest.raises(DeviceError):
                    await second.preview_registration()
                assert not asking.done()
                rig.panel.script = approve_all
                rig.panel.press_yes()
                assert len(await asking) == 65
                await device_becomes(second, "ready")
                assert (await second.preview_registration()).fingerprint == device.fingerprint
            # What the other one did meanwhile costs the first nothing.
            assert (await first.preview_registration()).fingerprint == device.fingerprint
