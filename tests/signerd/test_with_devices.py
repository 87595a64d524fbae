"""A real daemon over real wires: a locked virtual Trezor asks the person, and a free one shows addresses."""

import asyncio
import logging
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from device_simulators.panel import ask_person
from multisig import OriginKey, profile_account_path
from signerd.callers import PAGE
from signerd.core.audit import Note
from signerd.core.claims import VaultClaim
from signerd.core.values import OwnKey, Pin
from signerd.errors import AddressDiffers, AddressNotShown
from tests.conformance import makes
from tests.conformance.makes import PIN, VAULT
from tests.conformance.rigs import bridged, short_folder
from tests.conformance.rigs import running as during
from tests.support.daemons import daemon_at, make_config
from tests.support.fake_platform import FakePlatform

pytestmark = pytest.mark.anyio
# A locked one over its real wire, with HWI in a process of its own; and the library's fake, which keeps the
# same contract.
MAKES = (makes.TREZOR, makes.FAKES[0])
VAULT_ID = "vault-1"
CONFIG = make_config(network="testnet4")


@pytest.fixture
def folder():
    with short_folder() as name:
        yield Path(name)


class Screen:
    """What a person reads from the device: where the digits stand."""

    def __init__(self, rig):
        self.matrix = "123456789"
        rig.panel.watch(self._look)

    def _look(self, event):
        if event.prompt.kind == "pin":
            *_words, top, middle, bottom = event.prompt.lines
            self.matrix = bottom + middle + top

    def places(self, pin):
        return "".join(str(self.matrix.index(digit) + 1) for digit in pin)


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


async def state_of(daemon):
    (view,) = await daemon.devices()
    return view.state


@pytest.mark.parametrize("make", MAKES, ids=makes.named)
async def test_the_right_pin_unlocks(make, folder, caplog):
    caplog.set_level(logging.DEBUG)
    rig = make.rig(folder, **make.pin)
    rig.device.lock()
    async with running(rig, folder) as (daemon, device):
        screen = Screen(rig)
        step = await daemon.unlocking.start(device.id)
        assert (step.state, step.question.kind) == ("asks", "pin")
        places = screen.places(PIN)
        done = await daemon.unlocking.answer(step.question.id, places)
        assert (done.state, done.device.fingerprint) == ("unlocked", str(rig.seed.fingerprint))
        assert await state_of(daemon) == "ready"
        said = [line.text for line in daemon.feed.since(0)]
    assert not [line for line in (*said, *caplog.messages) if PIN in line or places in line]


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
            await daemon.handling.another_address(device.id)
        async with during(daemon.addresses.show_of_vault(VAULT_ID, 0, 7, PAGE)) as showing:
            await rig.shown("address")
            rig.panel.press_no()
            await rig.shown("address-qr")
            await daemon.handling.another_address(device.id)
            with pytest.raises(AddressDiffers, match="you say that the device shows another address"):
                await asyncio.wait_for(showing, 2)
        assert rig.panel.pending is None
        (note,) = [entry.note for entry in daemon.journal.audit() if entry.note.kind == "address-differs"]
        assert note.facts["address"] == VAULT.address(0, 7)
        told = [line for line in daemon.feed.since(0) if line.subject == VAULT_ID]
        assert any(line.kind == "alarm" for line in told)
        assert any("No button on it means no" in line.text for line in told)
