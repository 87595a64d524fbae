"""A real daemon over a real wire: a virtual Trezor shows an address, and the person says it is another.
Several accounts on one desktop: a daemon for each, with a state folder of its own; a device serves one at a
time.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import pytest

from device_simulators.panel import approve_all, ask_person
from firmware_bridge import Bridge, Endpoint, Family
from multisig import DerivationPath, Network, OriginKey, profile_account_path
from signerd.app import DaemonDependencies, _turn, open_daemon
from signerd.callers import PAGE
from signerd.core.audit import Note
from signerd.core.values import OwnKey, Pin, VaultClaim
from signerd.daemon import vaults
from signerd.daemon.service import Daemon
from signerd.errors import AddressDiffers, AddressNotShown, DeviceError
from signerd.journal import held
from tests.conformance import makes
from tests.conformance.makes import VAULT
from tests.conformance.rigs import Rig, bridged, make_rig, plugged_in, replace_deadlines, short_folder
from tests.conformance.rigs import running as during
from tests.support.daemons import MemoryStore, daemon_at, make_config
from tests.support.fake_platform import FakePlatform
from tests.support.platform import seed

pytestmark = pytest.mark.anyio
VAULT_ID = "vault-1"
CONFIG = make_config(network="testnet4")


@pytest.fixture
def folder():
    with short_folder() as name:
        yield Path(name)


@asynccontextmanager
async def running(rig, folder):
    state, place = folder / "s", folder / "p"
    state.mkdir(mode=0o700)
    place.mkdir()
    async with (
        bridged(rig) as (bridge, [device]),
        daemon_at(state, FakePlatform(place), bridge, config=CONFIG, sign_in=False) as daemon,
    ):
        yield daemon, device


def know_the_vault(daemon, rig):
    """Registered and pinned, as the person did it once."""
    own = VAULT.cosigner_for(rig.seed.fingerprint)
    path = profile_account_path(CONFIG.network)
    profile = OriginKey(type(own.origin)(rig.seed.fingerprint, path), rig.seed.xpub(path, CONFIG.network))
    keys = (OwnKey(own, "vault", 0), OwnKey(profile, "profile", 0))
    daemon.journal.add_own_keys(keys, "key-1", Note("registered", "key-1"))
    daemon.journal.learn(VaultClaim(VAULT_ID, 1, "Savings", VAULT.descriptor, 2, 3, VAULT.address(0, 0)))
    daemon.journal.add_pin(Pin(VAULT_ID, 1, "Savings", VAULT, own), Note("pinned", VAULT_ID))


@asynccontextmanager
async def running_with_vault(rig, folder):
    async with running(rig, folder) as (daemon, device):
        know_the_vault(daemon, rig)
        yield daemon, device


async def test_s13_no_button_of_a_trezor_refuses_an_address_so_the_person_says_it_here(folder):
    """It ends at once, leaves the screen, and is written down and told as an alarm."""
    rig = makes.TREZOR.rig(folder)
    async with running_with_vault(rig, folder) as (daemon, device):
        rig.panel.script = ask_person
        with pytest.raises(AddressNotShown):
            await daemon.bridge_devices.another_address(device.id)
        async with during(vaults.show_vault_address(daemon, VAULT_ID, 0, 7, PAGE)) as showing:
            await rig.shown("address")
            rig.panel.press_no()
            await rig.shown("address-qr")
            await daemon.bridge_devices.another_address(device.id)
            with pytest.raises(AddressDiffers, match="you say that the device shows another address"):
                await asyncio.wait_for(showing, 2)
        assert rig.panel.pending is None
        (note,) = [entry.note for entry in daemon.journal.audit() if entry.note.kind == "address-differs"]
        assert note.facts["address"] == VAULT.address(0, 7)
        told = [line for line in daemon.feed.since(0) if line.subject == VAULT_ID]
        assert any(line.kind == "alarm" for line in told)
        assert any("No button on it means no" in line.text for line in told)


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
