"""S20 to S22 with devices: intercepted on the cable, or with flawed firmware."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from firmware_bridge import Bridge, BridgeError, Device, Endpoint, Family
from multisig import MultisigError, signer_progress
from signerd.account.registration import Offer
from signerd.daemon.views import UNPROVEN_NONCES, device_view, preview_view
from tests.attacks.cases import sound
from tests.attacks.people import ALICE, VAULT
from tests.attacks.recipes.devices import FIRMWARE, LINKS
from tests.conformance import makes, rigs
from tests.conformance.coldcard_middle import Lie, in_the_middle
from tests.conformance.makes import Shown, enrol
from tests.conformance.rigs import NETWORK, Rig, Seed

pytestmark = pytest.mark.anyio

PSBT = sound().parsed


@pytest.fixture
def folder() -> Iterator[Path]:
    with rigs.short_folder() as name:
        yield Path(name)


async def outcome(bridge: Bridge, device: Device) -> str | None:
    """How it ends when Alice's device is asked; None where it signs all of it."""
    try:
        signed = await bridge.sign(device.id, PSBT, VAULT, signer=ALICE.fingerprint)
        complete = signer_progress(signed, VAULT, ALICE.fingerprint).is_complete
    except BridgeError as error:
        return error.code
    except MultisigError:
        return "passed on unsound"
    return None if complete else "incomplete"


# --- the cable (S21) ----------------------------------------------------------------------------------------


@contextmanager
def coldcard_behind(lie: str | None, folder: Path) -> Iterator[tuple[Rig, Endpoint]]:
    rig = makes.COLDCARD.rig(folder)
    place = rig.socket if lie is None else folder / "coldcard-middle.sock"
    yield rig, Endpoint(Family.COLDCARD, f"unix:{place}")


async def linked(lie: str | None, folder: Path) -> tuple[str | None, list[str]]:
    with coldcard_behind(lie, folder) as (rig, endpoint):
        async with rigs.plugged_in(rig):
            if lie is None:
                return await at(rig, endpoint)
            seed = Seed.from_entropy(b"M" * 16)
            async with in_the_middle(rig.socket, endpoint.place, seed=seed, network=NETWORK, lie=Lie[lie]):
                return await at(rig, endpoint)


async def at(rig: Rig, endpoint: Endpoint) -> tuple[str | None, list[str]]:
    shown = Shown(rig)
    async with Bridge(network=NETWORK, endpoints=[endpoint], usb=False, deadlines=rigs.QUICK) as bridge:
        (device,) = await bridge.refresh()
        if device.fingerprint == ALICE.fingerprint:
            await enrol(bridge, device, VAULT)
        return await outcome(bridge, device), shown.kinds


@pytest.mark.parametrize("who", LINKS)
async def test_s21_a_man_in_the_middle_of_a_coldcards_cable(who, folder):
    lie, expected = LINKS[who]
    ended, shown = await linked(lie, folder)
    assert ended == expected
    assert bool(shown) is (expected is None)


# --- firmware (S20, S22) ------------------------------------------------------------------------------------


def of(entry) -> Device:
    endpoint = Endpoint(Family(entry.family), "udp:127.0.0.1:1")
    return replace(Device.at(endpoint, "Any model"), firmware=entry.version, emulator=False)


OFFER = Offer(NETWORK, tuple(ALICE.vault_key(account) for account in range(8)), ALICE.profile().key)


@pytest.mark.parametrize("entry", FIRMWARE, ids=str)
def test_s20_s22_what_is_said_when_a_device_is_registered_and_listed(entry):
    device = of(entry)
    preview = preview_view(OFFER, device)
    for view in (preview, device_view(device)):
        assert {flaw.id for flaw in view.advisories} == set(entry.flaws)
    assert (UNPROVEN_NONCES in preview.notes) is not entry.proves
