"""A real daemon over a real wire: a virtual Trezor shows an address, and the person says it is another."""

import asyncio
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from device_simulators.panel import ask_person
from multisig import OriginKey, profile_account_path
from signerd.callers import PAGE
from signerd.core.audit import Note
from signerd.core.values import OwnKey, Pin, VaultClaim
from signerd.daemon import vaults
from signerd.errors import AddressDiffers, AddressNotShown
from tests.conformance import makes
from tests.conformance.makes import VAULT
from tests.conformance.rigs import bridged, short_folder
from tests.conformance.rigs import running as during
from tests.support.daemons import daemon_at, make_config
from tests.support.fake_platform import FakePlatform

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
