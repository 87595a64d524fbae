"""Which devices are connected, their states, and the stream of changes."""

import asyncio
import itertools
from functools import partial

import pytest

from firmware_bridge import errors
from firmware_bridge.bridge import Bridge
from firmware_bridge.model import Deadlines, Device, DeviceEvent, DeviceState, Endpoint, Sighting
from firmware_bridge.roster import EventHub
from firmware_bridge.worker import spawn
from multisig import Network, multisig_account_path
from tests.support import workers
from tests.support.patience import PATIENCE

pytestmark = pytest.mark.anyio

ENDPOINT = Endpoint.parse("trezor:webusb:001:2")
COLDCARD = Endpoint.parse("coldcard:hid:1-2:1.0")
PATH = multisig_account_path(Network.REGTEST)


class Bus:
    """Lists the plugged-in devices that the test sets, or calls what the test sets."""

    def __init__(self, *sightings):
        self.sightings = list(sightings)
        self.in_use = []
        self.trouble = None
        self.asked = 0

    async def __call__(self, in_use):
        self.in_use = list(in_use)
        self.asked += 1
        if self.trouble is not None:
            await self.trouble()
        return list(self.sightings)


class Clock:
    def __init__(self):
        self.now = 1000.0

    def __call__(self):
        return self.now


def never(*_arguments):
    raise AssertionError("a worker was started")


def bridge_to(*buses, spawner=never, clock=None, **deadlines):
    return Bridge(
        network=Network.REGTEST,
        listings=buses,
        spawner=spawner,
        clock=clock or Clock(),
        deadlines=Deadlines(**{"grace": 0.1, **deadlines}),
    )


scripted = partial(spawn, entry=workers.scripted)


async def test_a_device_that_cannot_be_driven_is_listed_with_the_reason_and_left_alone():
    async with bridge_to(Bus(Sighting(ENDPOINT, "Nano Z", unsupported="Too new."))) as bridge:
        (device,) = await bridge.refresh()
        assert (device.state, device.detail, device.model) == (DeviceState.UNSUPPORTED, "Too new.", "Nano Z")
        assert await bridge.refresh() == (device,)
        with pytest.raises(errors.Unsupported, match=r"Too new\."):
            await bridge.xpub(device.id, PATH)


async def test_a_device_that_may_not_be_opened_is_left_alone_until_it_may():
    bus = Bus(Sighting(ENDPOINT, "Coldcard", permitted=False))
    async with bridge_to(bus, spawner=partial(spawn, entry=workers.mute), start=0.1) as bridge:
        (device,) = await bridge.refresh()
        assert device.state == DeviceState.NO_PERMISSION
        with pytest.raises(errors.NoPermission):
            await bridge.xpub(device.id, PATH)
        assert await bridge.refresh() == (device,)
        bus.sightings = [Sighting(ENDPOINT, "Coldcard")]
        # Now it is asked; this one fails, and is there all the same.
        (device,) = await bridge.refresh()
        assert device.state == DeviceState.PRESENT


async def test_a_device_that_stays_unwell_is_asked_ever_less_often():
    clock = Clock()
    async with bridge_to(
        Bus(Sighting(ENDPOINT, "Coldcard")),
        spawner=partial(spawn, entry=workers.mute),
        clock=clock,
        start=0.01,
        retry=3.0,
        retry_shared=5.0,
    ) as bridge:
        asked = []
        for _ in range(30):
            await bridge.refresh()
            (record,) = bridge._roster.records.values()
            asked.append(record.probed_at)
            clock.now += 1
    times = sorted(set(asked))
    waits = [later - earlier for earlier, later in itertools.pairwise(times)]
    assert waits == [3, 3, 3, 5, 5, 5, 5]


async def test_a_no_to_an_earlier_request_does_not_make_an_unread_device_ready():
    async with bridge_to(Bus(Sighting(ENDPOINT, "Trezor"))) as bridge:
        await bridge._roster.look()
        (record,) = bridge._roster.records.values()

        async def refused(*_arguments, **_options):
            raise errors.RefusedByPerson

        record.lane.call = refused
        (device,) = await bridge.refresh()
        assert (device.state, device.fingerprint) == (DeviceState.PRESENT, None)


def hold(bridge, holders):
    """The programs that hold the device, whenever it is looked for one."""

    async def find_holder(_endpoint):
        return next(holders)

    bridge._roster._prober.find_holder = find_holder


async def test_a_device_in_another_programs_hands_is_named_and_not_asked_before_it_is_let_go():
    clock, bus, started = Clock(), Bus(Sighting(ENDPOINT, "Coldcard")), []

    def spawner(*arguments):
        started.append(arguments)
        raise OSError("no worker starts")

    async with bridge_to(bus, spawner=spawner, clock=clock) as bridge:
        hold(bridge, itertools.chain(["Sparrow", "Sparrow"], itertools.repeat(None)))
        (device,) = await bridge.refresh()
        assert (device.state, device.detail) == (DeviceState.BUSY, "In use by Sparrow.")
        clock.now += 60
        (device,) = await bridge.refresh()
        assert (device.state, device.detail) == (DeviceState.BUSY, "In use by Sparrow.")
        assert len(started) == 1
        clock.now += 60
        (device,) = await bridge.refresh()
        assert device.state == DeviceState.PRESENT
        assert len(started) == 2


@pytest.mark.parametrize("outcome", [errors.Busy, errors.NoPermission])
async def test_who_wants_a_device_in_another_programs_hands_is_told_whose(outcome):
    bus = Bus(Sighting(ENDPOINT, "Coldcard"))
    async with bridge_to(bus) as bridge:
        hold(bridge, itertools.repeat("Trezor Suite"))
        await bridge._roster.look()
        with pytest.raises(errors.Busy, match=r"In use by Trezor Suite\."):
            async with bridge._roster.using(ENDPOINT.device_id):
                raise outcome
        (device,) = await bridge.list()
        assert (device.state, device.detail) == (DeviceState.BUSY, "In use by Trezor Suite.")


async def test_what_was_plugged_in_again_between_two_looks_went_and_came():
    bus = Bus(Sighting(ENDPOINT, "Nano S", unsupported="Too old.", incarnation="1/7"))
    async with bridge_to(bus) as bridge:
        events = bridge.events()
        await bridge.refresh()
        bus.sightings = [Sighting(ENDPOINT, "Nano X", unsupported="Too new.", incarnation="1/8")]
        (device,) = await bridge.refresh()
        assert (device.model, device.detail) == ("Nano X", "Too new.")
        await bridge.refresh()
    s = DeviceState
    states = [event.new async for event in events]
    assert states == [s.PRESENT, s.UNSUPPORTED, s.ABSENT, s.PRESENT, s.UNSUPPORTED]


async def test_a_silent_coldcard_is_asked_again_late_or_when_a_caller_wants_it():
    """A second handshake would break what another program does with it."""
    clock = Clock()
    async with bridge_to(
        Bus(Sighting(COLDCARD, "Coldcard")), spawner=scripted, clock=clock, probe=0.1, retry=3.0
    ) as bridge:
        events = bridge.events()
        (device,) = await bridge.refresh()
        clock.now += 29
        await bridge.refresh()
        with pytest.raises(errors.DeviceFault):
            await bridge.xpub(device.id, PATH)
        # The question was left by our own operation, not by another program's.
        clock.now += 3
        await bridge.refresh()
        clock.now += 29
        await bridge.refresh()
        clock.now += 1
        await bridge.refresh()
    s = DeviceState
    states = [event.new async for event in events]
    probe = [s.PROBING, s.PRESENT]
    assert states == [s.PRESENT, *probe, s.BUSY, s.PRESENT, *probe, *probe]


async def test_a_device_pulled_out_while_it_works_is_disconnected_at_once():
    bus = Bus(Sighting(ENDPOINT, "Coldcard"))
    async with bridge_to(bus, spawner=scripted, probe=0.1, read=30) as bridge:
        await bridge.refresh()
        (record,) = bridge._roster.records.values()

        async def work():
            async with bridge._roster.using(record.device.id):
                await record.lane.call("hang", deadline=30)

        working = asyncio.create_task(work())
        await asyncio.sleep(0)
        assert (await bridge.list())[0].state == DeviceState.BUSY
        await bridge._roster.look()
        assert bus.in_use == [ENDPOINT]
        bus.sightings = []
        assert await bridge.refresh() == ()
        with pytest.raises(errors.Disconnected):
            await working


def event(number):
    device = Device.at(Endpoint.parse("trezor:udp:127.0.0.1:1"), str(number))
    return DeviceEvent(str(number), DeviceState.ABSENT, DeviceState.PRESENT, device)


async def heard(stream):
    return [item.device_id async for item in stream]


async def test_everyone_hears_everything_from_when_they_came():
    hub = EventHub()
    early = hub.stream()
    hub.publish(event(1))
    late = hub.stream()
    hub.publish(event(2))
    hub.close()
    assert await heard(early) == ["1", "2"]
    assert await heard(late) == ["2"]
    assert await heard(early) == []


async def test_l11_who_does_not_read_loses_the_oldest_and_costs_nothing_more():
    hub = EventHub()
    stream = hub.stream()
    for number in range(3000):
        hub.publish(event(number))
    hub.close()
    ids = await heard(stream)
    assert len(ids) < 1100
    assert ids[-1] == "2999"


# --- a listing that fails or hangs: the devices stay as they were, and the next look works

NANO = Sighting(Endpoint.parse("ledger:hid:1-2:1.0"), "Nano Z", unsupported="Too new.")
STICK = Sighting(ENDPOINT, "Stick", unsupported="Too old.")


async def out_of_descriptors():
    raise OSError(24, "Too many open files")


async def models(bridge):
    return [device.model for device in await bridge.refresh()]


async def test_a_listing_that_fails_takes_no_device_away_and_is_told_of_once(caplog):
    broken, sound = Bus(NANO), Bus()
    async with bridge_to(broken, sound, probe=0.05) as bridge:
        assert await models(bridge) == ["Nano Z"]
        broken.trouble = out_of_descriptors
        sound.sightings = [STICK]
        assert await models(bridge) == ["Nano Z", "Stick"]
        assert await models(bridge) == ["Nano Z", "Stick"]
        assert caplog.text.count("Too many open files") == 1
        broken.trouble, broken.sightings = None, []
        assert await models(bridge) == ["Stick"]


async def test_a_listing_that_hangs_delays_no_caller_and_is_not_asked_twice():
    free = asyncio.Event()
    broken, sound = Bus(), Bus(STICK)
    broken.trouble = free.wait
    async with asyncio.timeout(PATIENCE), bridge_to(broken, sound, probe=0.05) as bridge:
        assert await models(bridge) == ["Stick"]
        assert await models(bridge) == ["Stick"]
        assert broken.asked == 1
        broken.sightings = [NANO]
        free.set()
        assert await models(bridge) == ["Stick", "Nano Z"]
