"""A real daemon over real wires: a locked virtual Trezor asks the person, and a free one shows addresses."""

import asyncio
import logging
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from device_simulators.panel import ask_person
from firmware_bridge import DeviceState
from multisig import OriginKey, profile_account_path
from signerd.callers import PAGE
from signerd.core.audit import Note
from signerd.core.claims import VaultClaim
from signerd.core.values import OwnKey, Pin
from signerd.daemon.device_actions import UNANSWERED, Unlocking
from signerd.errors import AddressDiffers, AddressNotShown, DeviceFailed
from tests.conformance import makes
from tests.conformance.makes import PIN, VAULT, Shown, profile_of
from tests.conformance.rigs import bridged, short_folder
from tests.conformance.rigs import running as during
from tests.support.daemons import daemon_at, make_config, until
from tests.support.fake_platform import FakePlatform

pytestmark = pytest.mark.anyio
# A locked one over its real wire, with HWI in a process of its own; and the library's fake, which keeps the
# same contract.
MAKES = (makes.TREZOR, makes.FAKES[0])
PASSPHRASES = ((makes.TREZOR, "passphrase_protection"), (makes.FAKES[0], "passphrase"))
VAULT_ID = "vault-1"
# The daemon looks after a locked device now and then.
LOCKED = {"locked", "probing"}
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


@pytest.mark.parametrize("make", MAKES, ids=makes.named)
async def test_a_wrong_pin_is_told_and_the_next_try_works(make, folder):
    rig = make.rig(folder, **make.pin)
    rig.device.lock()
    async with running(rig, folder) as (daemon, device):
        screen = Screen(rig)
        step = await daemon.unlocking.start(device.id)
        with pytest.raises(DeviceFailed):
            await daemon.unlocking.answer(step.question.id, screen.places("4321"))
        assert await state_of(daemon) in LOCKED
        again = await daemon.unlocking.start(device.id)
        assert (await daemon.unlocking.answer(again.question.id, screen.places(PIN))).state == "unlocked"


@pytest.mark.parametrize("make", MAKES, ids=makes.named)
async def test_without_an_answer_the_device_is_free_again(make, folder):
    rig = make.rig(folder, **make.pin)
    rig.device.lock()
    async with running(rig, folder) as (daemon, device):
        screen, installation = Screen(rig), daemon.unlocking
        impatient = Unlocking(daemon.bridge_devices, daemon.feed, lambda: 0.0, bytes, 0.1)
        assert (await impatient.start(device.id)).state == "asks"
        await until(lambda: impatient._runs[device.id].outcome is not None)
        with pytest.raises(DeviceFailed, match=UNANSWERED):
            await impatient.step(device.id)
        assert await state_of(daemon) in LOCKED
        assert await impatient.questions() == ()
        step = await installation.start(device.id)
        assert (await installation.answer(step.question.id, screen.places(PIN))).state == "unlocked"


@pytest.mark.parametrize("make", MAKES, ids=makes.named)
async def test_the_person_gives_up_and_starts_again(make, folder):
    rig = make.rig(folder, **make.pin)
    rig.device.lock()
    async with running(rig, folder) as (daemon, device):
        screen = Screen(rig)
        await daemon.unlocking.start(device.id)
        await daemon.handling.cancel(device.id)
        await until(lambda: daemon.unlocking._runs[device.id].outcome is not None)
        assert await daemon.unlocking.questions() == ()
        step = await daemon.unlocking.start(device.id)
        assert (await daemon.unlocking.answer(step.question.id, screen.places(PIN))).state == "unlocked"


@pytest.mark.parametrize(("make", "option"), PASSPHRASES, ids=lambda value: getattr(value, "name", ""))
async def test_a_passphrase_opens_its_own_wallet(make, option, folder):
    rig = make.rig(folder, **{option: True})
    hidden = rig.seed.with_passphrase("horse")
    async with running(rig, folder) as (daemon, device):
        step = await daemon.unlocking.start(device.id)
        assert step.question.kind == "passphrase"
        done = await daemon.unlocking.answer(step.question.id, "horse")
        assert done.device.fingerprint == str(hidden.fingerprint)


@pytest.mark.parametrize("make", [m for m in makes.VIRTUAL if not m.types_pin], ids=makes.named)
async def test_a_make_that_is_unlocked_by_its_own_buttons_says_so(make, folder):
    rig = make.rig(folder)
    async with running(rig, folder) as (daemon, device):
        with pytest.raises(DeviceFailed, match=r"buttons|support"):
            await daemon.unlocking.start(device.id)
        assert device.state is DeviceState.READY


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


@pytest.mark.parametrize("make", makes.VIRTUAL, ids=makes.named)
async def test_real_devices_show_addresses_of_the_vault_and_of_the_profile(make, folder):
    rig = make.rig(folder)
    async with running(rig, folder) as (daemon, device):
        know_the_vault(daemon, rig)
        await daemon.bridge_devices.enrol(device.id, VAULT, "Savings", lambda _progress: None)
        screen = Shown(rig)
        for index in (0, 7):
            shown = await daemon.addresses.show_of_vault(VAULT_ID, 0, index, PAGE)
            assert shown.address == VAULT.address(0, index)
        shown = await daemon.addresses.show_of_profile(0, 3, PAGE)
        assert shown.address == profile_of(rig).address(0, 3)
        pixels = "".join(screen.text.split())
        assert VAULT.address(0, 7) in pixels
        assert shown.address in pixels
        keys = await daemon.handling.account_keys(device.id, 0, PAGE)
        assert [key.xpub for key in keys.keys] == [
            str(VAULT.cosigner_for(rig.seed.fingerprint).xpub),
            str(profile_of(rig).key.xpub),
        ]


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
