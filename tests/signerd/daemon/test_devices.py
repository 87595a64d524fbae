"""Finding the device that is meant, and never another."""

from dataclasses import replace

import pytest

from firmware_bridge import Device, DeviceState, Disconnected, Endpoint, Family, Locked, NotEnrolled
from signerd.core import events
from signerd.core.events import SignOnDevice
from signerd.daemon.devices import UNFORESEEN, Devices
from signerd.errors import DeviceUnready, NoSuchDevice
from tests.support.desk import VAULT, spend
from tests.support.fake_bridge import FakeBridge
from tests.support.wallets import ALICE, BOB, make_vault

pytestmark = pytest.mark.anyio


def device(number: int, state: DeviceState = DeviceState.READY, signer=ALICE) -> Device:
    found = Device.at(Endpoint.parse(f"trezor:udp:127.0.0.1:{number}"), "Fake")
    return replace(found, state=state, fingerprint=signer.fingerprint)


class Several(FakeBridge):
    def __init__(self, *devices: Device) -> None:
        super().__init__()
        self._devices = devices

    async def list(self) -> tuple[Device, ...]:
        return self._devices


async def test_the_only_ready_one_is_taken_without_a_name() -> None:
    ready, locked = device(1), device(2, DeviceState.LOCKED, BOB)
    assert await Devices(Several(ready, locked)).chosen(None) == ready


async def test_among_several_the_person_names_one() -> None:
    one, two = device(1), device(2, signer=BOB)
    with pytest.raises(NoSuchDevice, match="several"):
        await Devices(Several(one, two)).chosen(None)
    assert await Devices(Several(one, two)).chosen(two.id) == two


async def test_none_and_unknown_and_not_ready_are_told_apart() -> None:
    locked = device(1, DeviceState.LOCKED)
    with pytest.raises(NoSuchDevice, match="no device is ready"):
        await Devices(Several(locked)).chosen(None)
    with pytest.raises(NoSuchDevice, match="trezor-404"):
        await Devices(Several(locked)).chosen("trezor-404")
    with pytest.raises(DeviceUnready, match="locked"):
        await Devices(Several(locked)).chosen(locked.id)


async def test_s18_a_device_is_found_by_its_master_key_only() -> None:
    devices = Devices(Several(device(1, DeviceState.LOCKED), device(2, signer=BOB)))
    assert await devices.ready(ALICE.fingerprint) is None
    with pytest.raises(NoSuchDevice, match=str(ALICE.fingerprint)):
        await devices.of(ALICE.fingerprint)
    assert (await devices.of(BOB.fingerprint)).id == device(2).id


async def test_absent_ones_are_not_shown() -> None:
    assert await Devices(Several(device(1, DeviceState.ABSENT))).all() == ()


async def test_a_vault_is_enrolled_under_a_name_that_the_device_takes() -> None:
    """The platform's names have any length and any letters; a name is no reason not to pin a vault."""
    coldcard = replace(device(1), family=Family.COLDCARD)
    bridge = Several(coldcard)
    vault = make_vault()
    await Devices(bridge).enrol(coldcard.id, vault, "Tresor der Genossenschaft Zürich", lambda _step: None)
    assert bridge.labels == [f"Tresor der Geno {vault.verification_code[:4]}"]


def asking() -> SignOnDevice:
    return SignOnDevice("p-1", spend().to_bytes(), VAULT, ALICE.fingerprint, FakeBridge().device.id)


@pytest.mark.parametrize("mistake", [RuntimeError("a mistake"), KeyError("x"), TimeoutError()])
async def test_f_a_mistake_in_the_library_is_this_devices_failure_and_is_logged(mistake, caplog) -> None:
    outcome = await Devices(FakeBridge(failures=[mistake])).sign(asking(), lambda _step: None)
    assert outcome == events.DeviceFailed("device-fault", UNFORESEEN, asked=True)
    (record,) = caplog.records
    assert (record.levelname, record.exc_info[1]) == ("ERROR", mistake)


@pytest.mark.parametrize(
    ("failure", "asked"),
    [
        (Locked(), False),
        # Its state stays ready: to leave the approval standing would be to try for ever, every two seconds.
        (NotEnrolled(), True),
        # It may have gone while the person was looking at it.
        (Disconnected(), True),
    ],
)
async def test_an_approval_stands_only_where_the_devices_own_state_says_when_to_ask_again(
    failure, asked
) -> None:
    outcome = await Devices(FakeBridge(failures=[failure])).sign(asking(), lambda _step: None)
    assert isinstance(outcome, events.DeviceFailed)
    assert (outcome.code, outcome.asked) == (failure.code, asked)
