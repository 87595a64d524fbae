"""Several accounts on one desktop: a daemon for each, with a state folder of its own; a device serves one at
a time.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import httpx
import pytest

from device_simulators.panel import approve_all, ask_person
from firmware_bridge import Bridge, Endpoint, Family
from multisig import DerivationPath, Network
from signerd.app import DaemonDependencies, _turn, open_daemon
from signerd.core.states import State
from signerd.daemon.service import Daemon
from signerd.endpoint import socket_path
from signerd.errors import DeviceError
from signerd.journal import StateFolder
from tests.conformance.rigs import Rig, make_rig, plugged_in, replace_deadlines, short_folder
from tests.support.daemons import MemoryStore, approve, daemon_at, make_config, prepare, until, until_state
from tests.support.desk import snapshot_of, spend
from tests.support.fake_bridge import FakeBridge
from tests.support.fake_platform import FakePlatform
from tests.support.platform import seed
from tests.support.wallets import BOB

pytestmark = pytest.mark.anyio


def folder_of(tmp_path: Path, name: str) -> Path:
    folder = tmp_path / name
    folder.mkdir(mode=0o700)
    return folder


async def test_two_accounts_run_beside_each_other(tmp_path: Path) -> None:
    """Each has its session, journal, pins and proposals; what one decides is nothing to the other."""
    folders = [folder_of(tmp_path, name) for name in ("one", "two")]
    platforms = [FakePlatform(folder_of(tmp_path, name), {}) for name in ("platform-1", "platform-2")]
    bridges = [FakeBridge(), FakeBridge()]
    stores = [MemoryStore(), MemoryStore()]
    for folder, platform, psbt_id in zip(folders, platforms, ("p-1", "p-2"), strict=True):
        prepare(folder)
        platform.proposals = {psbt_id: snapshot_of(spend(), psbt_id)}
    async with (
        daemon_at(folders[0], platforms[0], bridges[0], store=stores[0]) as one,
        daemon_at(folders[1], platforms[1], bridges[1], store=stores[1]) as two,
    ):
        await until_state(one, "p-1", State.WAITING_PERSON)
        await until_state(two, "p-2", State.WAITING_PERSON)
        await approve(one, "p-1")
        await until_state(one, "p-1", State.SUBMITTED)
        assert [record.psbt_id for record in two.journal.records()] == ["p-2"]
        assert two.journal.record("p-2").state is State.WAITING_PERSON
        await one.sign_out()
        await approve(two, "p-2")
        await until_state(two, "p-2", State.SUBMITTED)
        assert (one.account.email, stores[0].kept) == (None, None)
        assert stores[1].kept is not None
    assert [len(platform.told()) for platform in platforms] == [1, 1]
    assert [bridge.asked for bridge in bridges] == [1, 1]
    assert socket_path(folders[0]) != socket_path(folders[1])


async def test_one_account_on_both_networks(tmp_path: Path) -> None:
    """One platform, one account with a workspace on each network: each daemon follows those of its own."""
    shared = folder_of(tmp_path, "platform")
    platform = FakePlatform(shared, {"p-1": snapshot_of(spend())})

    def both(request: httpx.Request) -> httpx.Response | None:
        if request.url.path != "/api/v1/get-user-info":
            return None
        user = platform._user()
        workspaces = user["OrganisationsInfo"]["Organisations"][0]["Workspaces"]["Workspaces"]
        (test,) = workspaces
        real = test | {"WorkspaceInfo": test["WorkspaceInfo"] | {"uid": 2, "net": "mainnet"}}
        workspaces.append(real)
        return httpx.Response(200, json=user)

    platform.before = both
    test, real = folder_of(tmp_path, "test"), folder_of(tmp_path, "real")
    prepare(test)
    # The platform knows both sign-ins; the script knows one token, so the second signs in with the session of
    # the first.
    store = MemoryStore()
    async with daemon_at(test, platform, FakeBridge(), store=store) as on_test:
        await until_state(on_test, "p-1", State.WAITING_PERSON)
        bridge = FakeBridge(signer=BOB)
        config = make_config(network="mainnet")
        async with daemon_at(real, platform, bridge, config=config, store=MemoryStore(store.kept)) as on_real:
            await until(lambda: on_real.follower.state.reachable)
            assert [w.id for w in on_real.follower.state.workspaces] == [2]
            assert [w.id for w in on_test.follower.state.workspaces] == [1]
            assert {(await d.status()).network for d in (on_test, on_real)} == {"regtest", "mainnet"}


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
        stack.enter_context(StateFolder.hold(state))
        yield await stack.enter_async_context(open_daemon(make_config(), state, MemoryStore(), outside))


async def device_states(daemon: Daemon) -> list[str]:
    return [device.state for device in await daemon.devices()]


async def device_becomes(daemon: Daemon, state: str) -> None:
    for _ in range(400):
        if await device_states(daemon) == [state]:
            return
        await asyncio.sleep(0.05)
    raise AssertionError([(d.state, d.detail) for d in await daemon.devices()])


@pytest.mark.parametrize("family", [Family.TREZOR, Family.COLDCARD])
async def test_a_device_at_work_for_one_daemon_is_left_alone_by_the_other(
    tmp_path: Path, family: Family, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    with short_folder() as name:
        rig: Rig = make_rig(family, Path(name), seed=seed(1))
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
