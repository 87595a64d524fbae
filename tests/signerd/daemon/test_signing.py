"""The device: the named one and never another, asked when it is ready, once, and believed in nothing. An
unforeseen error of the device library is reported and tried again (F).
"""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass, field, replace
from unittest.mock import AsyncMock

import pytest

from firmware_bridge import (
    Device,
    DeviceEvent,
    DeviceState,
    Disconnected,
    Endpoint,
    Family,
    Locked,
    NotEnrolled,
    RefusedByPerson,
)
from multisig import ChangeTo, build_psbt, sats
from signerd.core import events
from signerd.core.signing import SigningPolicy
from signerd.core.states import State
from signerd.daemon import runner
from signerd.daemon.devices import FIRST, UNFORESEEN, Devices
from signerd.errors import AddressDiffers, AddressNotShown, DeviceFailed, DeviceUnready, NoSuchDevice
from tests.support.daemons import approve, daemon_at, notices, some_rounds, submits, until, until_state
from tests.support.desk import VAULT, snapshot_of, spend
from tests.support.fake_bridge import FakeBridge
from tests.support.fake_platform import FakePlatform
from tests.support.wallets import ALICE, BOB, fund, make_vault, pay

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize("hindered", sorted(set(DeviceState) - {DeviceState.READY}))
async def test_f_a_device_that_cannot_be_asked_is_asked_when_it_is_ready(
    prepared, platform, bridge, hindered
):
    """Unplugged, locked, with the wrong app, without its passphrase, in another program's hands: the approval
    waits.
    """
    bridge.state = hindered
    async with daemon_at(prepared, platform, bridge) as daemon:
        await approve(daemon, "p-1")
        await some_rounds(daemon)
        assert daemon.journal.record("p-1").state is State.WAITING_DEVICE
        assert bridge.asked == 0
        bridge.becomes(DeviceState.READY)
        await until_state(daemon, "p-1", State.SUBMITTED)
        assert bridge.asked == 1


async def test_f_s18_another_device_or_passphrase_is_not_asked(daemon, bridge):
    """Ready, and of other keys: it is as if none were there, until the right one comes."""
    bridge.signer = BOB
    await approve(daemon, "p-1")
    await some_rounds(daemon)
    assert daemon.journal.record("p-1").state is State.WAITING_DEVICE
    assert bridge.asked == 0
    bridge.signer = ALICE
    bridge.becomes(DeviceState.READY)
    await until_state(daemon, "p-1", State.SUBMITTED)


@pytest.mark.parametrize("failure", [RefusedByPerson(), Disconnected(), NotEnrolled()], ids=lambda e: e.code)
async def test_a_device_that_gave_nothing_asks_the_person_again(daemon, bridge, failure):
    bridge.failures = [failure]
    await approve(daemon, "p-1")
    await until_state(daemon, "p-1", State.INTERRUPTED)
    assert failure.hint in daemon.journal.record("p-1").reason
    await submits(daemon, "p-1")


async def test_devices_are_looked_through_only_while_something_waits_for_one(prepared, platform, monkeypatch):
    """An idle daemon is not woken for it; one that waits notices also what no event told of."""
    monkeypatch.setattr(runner, "LOOK_AGAIN_SECONDS", 0.001)
    bridge = FakeBridge(state=DeviceState.LOCKED)
    bridge.list = AsyncMock(wraps=bridge.list)
    async with daemon_at(prepared, platform, bridge) as daemon:
        await until_state(daemon, "p-1", State.WAITING_PERSON)
        rounds, looks = daemon.follower.rounds, bridge.list.call_count
        await until(lambda: daemon.follower.rounds > rounds + 5)
        assert bridge.list.call_count == looks
        await approve(daemon, "p-1")
        await until(lambda: bridge.list.call_count > looks + 5)
        bridge.state = DeviceState.READY
        await until_state(daemon, "p-1", State.SUBMITTED)


async def test_s6_two_devices_of_one_seed_do_not_pay_twice_at_once(prepared, tmp_path):
    psbts = [
        build_psbt(
            VAULT,
            [fund(VAULT, 100_000, index=n, salt=n)],
            [pay(50_000), ChangeTo(sats(49_000), 1, n)],
            locktime=0,
        )
        for n in (1, 2)
    ]
    platform = FakePlatform(tmp_path, {f"p-{n}": snapshot_of(psbt, f"p-{n}") for n, psbt in enumerate(psbts)})
    bridge = FakeBridge(gate=asyncio.Event())
    # The second device holds the same seed, and stays ready while the first one works.
    copy = replace(bridge.device, id="copy")
    bridge.list = AsyncMock(side_effect=lambda: (copy,) if bridge.asked else (bridge.device, copy))
    async with daemon_at(prepared, platform, bridge) as daemon:
        for psbt_id in platform.proposals:
            await until_state(daemon, psbt_id, State.WAITING_PERSON)
        for psbt_id in platform.proposals:
            await daemon.approve(psbt_id, (await daemon.proposal(psbt_id)).digest)
        await until(lambda: bridge.asked > 0)
        bridge.becomes(DeviceState.READY)
        await some_rounds(daemon, 3)
        assert bridge.asked == 1
        assert bridge.gate is not None
        bridge.gate.set()
        await until(lambda: len(daemon.journal.records([State.WAITING_PERSON])) == 1)
        assert bridge.asked == 1
        (held,) = daemon.journal.records([State.WAITING_PERSON])
        assert (await daemon.proposal(held.psbt_id)).to_acknowledge == ("paid-twice",)


def device(number: int, state: DeviceState = DeviceState.READY, signer=ALICE) -> Device:
    found = Device.at(Endpoint.parse(f"trezor:udp:127.0.0.1:{number}"), "Fake")
    return replace(found, state=state, fingerprint=signer.fingerprint)


def bridge_to(*devices: Device) -> FakeBridge:
    bridge = FakeBridge()
    bridge.list = AsyncMock(return_value=devices)
    return bridge


class Cancelled(FakeBridge):
    """One address after the other, as a device's lane has it, each until it is cancelled."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self.lane, self.on = asyncio.Lock(), asyncio.Event()

    async def show_address(self, *_args: object, **_kwargs: object) -> str:
        async with self.lane:
            self.on.set()
            await self.gate.wait()
            self.gate.clear()
            raise Disconnected

    async def cancel(self, _device_id: str) -> None:
        self.gate.set()


async def test_s13_of_two_addresses_that_are_asked_for_at_once_a_late_answer_strikes_the_first_alone():
    """And the second may differ as well: that is said again, once it can have been compared."""
    bridge, now = Cancelled(gate=asyncio.Event()), 0.0
    devices, place = Devices(bridge, clock=lambda: now), FIRST
    first, second = (
        asyncio.create_task(devices.show_address(bridge.device, VAULT, place, lambda _progress: None))
        for _ in range(2)
    )
    await bridge.on.wait()
    bridge.gate.set()
    with pytest.raises(DeviceFailed):
        await first
    with pytest.raises(AddressNotShown, match="just gone on to another"):
        await devices.another_address(bridge.device.id)
    assert not second.done()
    now = 2.5
    await devices.another_address(bridge.device.id)
    with pytest.raises(AddressDiffers, match="you say that the device shows another"):
        await second
    with pytest.raises(AddressNotShown):
        await devices.another_address(bridge.device.id)


READY, LOCKED, OF_BOB = device(1), device(2, DeviceState.LOCKED), device(3, signer=BOB)
ASKED = device(4, DeviceState.BUSY)


@pytest.mark.parametrize(
    ("there", "named", "found"),
    [
        ((READY, LOCKED), None, READY),
        ((READY, OF_BOB), OF_BOB.id, OF_BOB),
        ((READY, OF_BOB), None, "several"),
        ((LOCKED,), None, "no device is ready"),
        ((READY, ASKED), None, READY),
        ((LOCKED, ASKED), None, "Fake is asked something now"),
        ((LOCKED,), "trezor-404", "trezor-404"),
        ((LOCKED,), LOCKED.id, "locked"),
    ],
)
async def test_the_named_one_is_taken_or_the_only_ready_one(there, named, found):
    devices = Devices(bridge_to(*there))
    if isinstance(found, Device):
        assert await devices.chosen(named) == found
        return
    with pytest.raises((NoSuchDevice, DeviceUnready), match=found):
        await devices.chosen(named)


async def test_s18_a_device_is_found_by_its_master_key_only():
    devices = Devices(bridge_to(device(1, DeviceState.LOCKED), device(2, signer=BOB)))
    assert await devices.ready(ALICE.fingerprint) is None
    with pytest.raises(NoSuchDevice, match=str(ALICE.fingerprint)):
        await devices.of(ALICE.fingerprint)
    assert (await devices.of(BOB.fingerprint)).id == device(2).id
    unread = replace(ASKED, fingerprint=None)
    with pytest.raises(DeviceUnready, match="is asked something now"):
        await Devices(bridge_to(unread)).of(ALICE.fingerprint)


async def test_absent_ones_are_not_shown():
    assert await Devices(bridge_to(device(1, DeviceState.ABSENT))).all() == ()


async def test_a_vault_is_enrolled_under_a_name_that_the_device_takes():
    """The platform's names have any length and any letters; a name is no reason not to pin a vault."""
    coldcard = replace(device(1), family=Family.COLDCARD)
    bridge = bridge_to(coldcard)
    vault = make_vault()
    await Devices(bridge).enrol(coldcard.id, vault, "Tresor der Genossenschaft Zürich", lambda _step: None)
    assert bridge.labels == [f"Tresor der Geno {vault.verification_code[:4]}"]


async def asked(failure: Exception) -> events.ProposalEvent:
    bridge, signing = FakeBridge(failures=[failure]), SigningPolicy(VAULT, ALICE.vault_key())
    return await Devices(bridge).sign(bridge.device.id, spend().to_bytes(), signing, lambda _step: None)


@pytest.mark.parametrize("mistake", [RuntimeError("a mistake"), KeyError("x"), TimeoutError()])
async def test_f_a_mistake_in_the_library_is_this_devices_failure_and_is_logged(mistake, caplog):
    outcome = await asked(mistake)
    assert outcome == events.NoSignature("device-fault", UNFORESEEN, asked=True)
    (record,) = caplog.records
    assert (record.levelname, record.exc_info[1]) == ("ERROR", mistake)


@pytest.mark.parametrize(
    ("failure", "shown"),
    [
        (Locked(), False),
        # Its state stays ready: to leave the approval standing would be to try for ever, every two seconds.
        (NotEnrolled(), True),
        # It may have gone while the person was looking at it.
        (Disconnected(), True),
    ],
)
async def test_an_approval_stands_only_where_the_devices_own_state_says_when_to_ask_again(failure, shown):
    outcome = await asked(failure)
    assert isinstance(outcome, events.NoSignature)
    assert (outcome.code, outcome.asked) == (failure.code, shown)


@dataclass
class Mistaken(FakeBridge):
    """``wrong``: which of its methods raise; ``raised`` counts how often each did."""

    wrong: set[str] = field(default_factory=set)
    raised: dict[str, int] = field(default_factory=dict)

    def _perhaps(self, method: str) -> None:
        if method in self.wrong:
            self.raised[method] = self.raised.get(method, 0) + 1
            raise RuntimeError(f"nobody foresaw it in {method}")

    async def list(self) -> tuple[Device, ...]:
        self._perhaps("list")
        return await super().list()

    async def watch(self) -> None:
        self._perhaps("watch")
        await super().watch()

    async def events(self) -> AsyncIterator[DeviceEvent]:
        self._perhaps("events")
        async for event in super().events():
            yield event
            self._perhaps("events")


TOLD = {"watch": "Looking for devices", "events": "Listening to devices", "list": "Listing the devices"}


@pytest.mark.parametrize("method", TOLD)
async def test_f_a_mistake_of_the_library_is_told_and_tried_again(prepared, platform, method):
    bridge = Mistaken(wrong={method})
    async with daemon_at(prepared, platform, bridge) as daemon:
        await until_state(daemon, "p-1", State.WAITING_PERSON)
        if method == "list":
            # The daemon looks for devices only while a proposal waits for one.
            await approve(daemon, "p-1")
        await until(lambda: bridge.raised.get(method, 0) > 3)
        (note,) = await notices(daemon, "unexpectedly")
        assert note.startswith(TOLD[method])
        told = [line for line in daemon.feed.since(0, "devices") if line.kind == "attention"]
        assert [line.text.startswith(TOLD[method]) for line in told] == [True]
        bridge.wrong = set()
        if method != "list":
            await approve(daemon, "p-1")
        await until_state(daemon, "p-1", State.SUBMITTED)
        assert bridge.asked == 1
        await until(lambda: not daemon.troubles.sentences())
        assert await notices(daemon, "unexpectedly") == []


async def test_f_changes_while_no_one_listened_are_noticed(prepared, platform):
    bridge = Mistaken(wrong={"events"})
    bridge.state = DeviceState.LOCKED
    async with daemon_at(prepared, platform, bridge) as daemon:
        await approve(daemon, "p-1")
        await until(lambda: bridge.raised.get("events", 0) > 0)
        bridge.state = DeviceState.READY
        bridge.wrong = set()
        await until_state(daemon, "p-1", State.SUBMITTED)
