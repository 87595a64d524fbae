"""S21: a man in the middle of a Coldcard's cable reads nothing, and is not a signer of the vault."""

import pytest

from firmware_bridge import Bridge, DeviceFault, Endpoint, Family, WrongDevice
from tests.conformance import makes, payments, rigs
from tests.conformance.coldcard_middle import Lie, in_the_middle
from tests.conformance.makes import VAULT, Shown
from tests.conformance.rigs import ACCOUNT, NETWORK, Seed

pytestmark = [pytest.mark.anyio, pytest.mark.in_process]

MALLORY = Seed.from_entropy(b"M" * 16)


@pytest.fixture
def coldcard(folder):
    return makes.COLDCARD.rig(folder)


@pytest.fixture
def endpoint(folder):
    return Endpoint(Family.COLDCARD, f"unix:{folder / 'coldcard-middle.sock'}")


def between(rig, endpoint, lie):
    return in_the_middle(rig.socket, endpoint.place, seed=MALLORY, network=NETWORK, lie=lie)


def bridge_to(endpoint):
    return Bridge(network=NETWORK, endpoints=[endpoint], usb=False, deadlines=rigs.QUICK)


@pytest.mark.parametrize("lie", [Lie.PASS_ON, Lie.SIGN, Lie.IMPERSONATE])
async def test_s21_a_man_in_the_middle_is_noticed(coldcard, endpoint, lie):
    async with (
        rigs.plugged_in(coldcard),
        between(coldcard, endpoint, lie) as middle,
        bridge_to(endpoint) as bridge,
    ):
        (device,) = await bridge.refresh()
        assert device.fingerprint is None
        with pytest.raises(DeviceFault, match="MiTM"):
            await bridge.xpub(device.id, ACCOUNT)
        with pytest.raises(DeviceFault, match="MiTM"):
            await bridge.sign(device.id, payments.make_spend(VAULT), VAULT)
    # The master key's xpub is all that he hears, as does every host that completes the handshake.
    assert set(middle.heard) == {"mitm", "xpub"}


async def test_s21_a_device_in_place_of_the_real_one_is_no_signer(coldcard, endpoint):
    """He can be a device of his own, but not one that the vault knows."""
    shown = Shown(coldcard)
    async with (
        rigs.plugged_in(coldcard),
        between(coldcard, endpoint, Lie.REPLACE),
        bridge_to(endpoint) as bridge,
    ):
        (device,) = await bridge.refresh()
        assert device.fingerprint == MALLORY.fingerprint
        with pytest.raises(WrongDevice):
            await bridge.enrol(device.id, VAULT, "Savings")
        with pytest.raises(WrongDevice):
            await bridge.sign(device.id, payments.make_spend(VAULT), VAULT)
    assert shown.prompts == []
