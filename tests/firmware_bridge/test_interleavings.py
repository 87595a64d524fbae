"""Concurrent events in any order: operations, cancels, unplugging, locking, a person, dying workers, looks
and probes.

Every operation ends with an outcome, the states follow their table, and the next operation works.
"""

import asyncio
import contextlib
import gc
import inspect
import itertools
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from device_simulators.errors import NoSuchPrompt
from device_simulators.fake import FakeDevice
from device_simulators.faults import Faults
from device_simulators.faults import Phase as Moment
from device_simulators.panel import approve_all, ask_person
from firmware_bridge import BridgeError, DeviceState, Family, RegistrationsInMemory
from multisig import signer_progress
from tests.conformance import rigs
from tests.conformance.makes import NAME
from tests.conformance.rigs import NETWORK, SEEDS, Rig, bridged, replace_deadlines
from tests.support import wallets
from tests.support.examples import examples

VAULT = rigs.make_vault()
SPEND = wallets.make_spend(VAULT)
PIN = "12"
# Short, and far from each other: what does not end by itself ends so.
DEADLINES = replace_deadlines(probe=1.0, read=1.0, work=2.0, person=2.0, grace=0.2, idle=0.05)
# All of them, each with its grace, one after the other.
MOST_SECONDS = 30.0


class Desk:
    """A device, a bridge, and the operations that may still run."""

    def __init__(self, rig, bridge, device_id):
        self.rig, self.bridge, self.id = rig, bridge, device_id
        self.device = rig.device
        self.begun = []

    def begin(self, coroutine):
        self.begun.append(asyncio.create_task(coroutine))

    def give_up(self):
        """The caller itself is cancelled."""
        for task in self.begun[-1:]:
            task.cancel()

    def fail(self, **faults):
        self.device.faults = Faults(**faults)

    def press(self, button):
        with contextlib.suppress(NoSuchPrompt):
            getattr(self.rig.panel, button)()

    def kill_worker(self):
        for worker in self.rig.workers[-1:]:
            worker.kill()

    async def shown(self):
        """Until the screen asks something; where nothing will, not for long."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(0.05):
                await self.device.shown()

    async def turn(self):
        for _ in range(5):
            await asyncio.sleep(0)

    async def ended(self):
        """Without any further decision of a person every operation ends with an outcome."""
        async with asyncio.timeout(MOST_SECONDS):
            outcomes = await asyncio.gather(*self.begun, return_exceptions=True)
        for outcome in outcomes:
            if isinstance(outcome, BaseException):
                assert isinstance(outcome, BridgeError | asyncio.CancelledError), repr(outcome)

    async def works_again(self):
        self.device.faults = Faults()
        self.device.plug_in()
        self.device.unlock()
        self.rig.panel.script = approve_all
        await self.bridge.refresh()
        await self.bridge.enrol(self.id, VAULT, NAME)
        signed = await self.bridge.sign(self.id, SPEND, VAULT)
        assert signer_progress(signed, VAULT, SEEDS[0].fingerprint).is_complete
        (device,) = await self.bridge.list()
        assert (device.state, device.fingerprint) == (DeviceState.READY, SEEDS[0].fingerprint)


async def type_pin(_question):
    await asyncio.sleep(0)
    return PIN


STEPS = {
    "sign": lambda desk: desk.begin(desk.bridge.sign(desk.id, SPEND, VAULT)),
    "enrol": lambda desk: desk.begin(desk.bridge.enrol(desk.id, VAULT, NAME)),
    "read": lambda desk: desk.begin(desk.bridge.fingerprint(desk.id)),
    "show": lambda desk: desk.begin(desk.bridge.show_address(desk.id, VAULT, 0, 1)),
    "unlock": lambda desk: desk.begin(desk.bridge.unlock(desk.id, type_pin)),
    "refresh": lambda desk: desk.begin(desk.bridge.refresh()),
    "cancel": lambda desk: desk.begin(desk.bridge.cancel(desk.id)),
    "give up": Desk.give_up,
    "unplug": lambda desk: desk.device.unplug(),
    "plug in": lambda desk: desk.device.plug_in(),
    "lock": lambda desk: desk.device.lock(),
    "open up": lambda desk: desk.device.unlock(),
    "press yes": lambda desk: desk.press("press_yes"),
    "press no": lambda desk: desk.press("press_no"),
    "kill the worker": Desk.kill_worker,
    "shown": Desk.shown,
    "stall": lambda desk: desk.fail(stall_at=Moment.PROMPT),
    "answer rubbish": lambda desk: desk.fail(garbage_at=Moment.PROBE),
    "leave while returning": lambda desk: desk.fail(vanish_at=Moment.RETURN),
    "turn": Desk.turn,
}


async def play(family, steps):
    problems = []
    asyncio.get_running_loop().set_exception_handler(lambda _loop, context: problems.append(context))
    device = FakeDevice(SEEDS[0], NETWORK, family=family, pin=PIN, script=ask_person)
    device.unlock()
    rig = Rig(family, device, device.panel, SEEDS[0], Path())
    async with bridged(rig, deadlines=DEADLINES, registrations=RegistrationsInMemory()) as (bridge, (found,)):
        events = bridge.events()
        desk = Desk(rig, bridge, found.id)
        for step in steps:
            done = STEPS[step](desk)
            if inspect.isawaitable(done):
                await done
        await desk.ended()
        await desk.works_again()
    states = [(event.old, event.new) async for event in events]
    assert all(earlier[1] == later[0] for earlier, later in itertools.pairwise(states))
    assert problems == []
    for _ in range(10):
        await asyncio.sleep(0)
    assert asyncio.all_tasks() == {asyncio.current_task()}


@pytest.mark.parametrize("family", [Family.TREZOR, Family.COLDCARD, Family.LEDGER])
@settings(
    max_examples=examples(10),
    phases=[Phase.explicit, Phase.reuse, Phase.generate],
    suppress_health_check=[HealthCheck.too_slow],
)
@given(steps=st.lists(st.sampled_from(list(STEPS)), min_size=2, max_size=14))
def test_whatever_happens_in_whatever_order_the_next_operation_works(family, steps):
    asyncio.run(play(family, steps))


def open_descriptors():
    gc.collect()
    return sum(1 for _ in Path("/proc/self/fd").iterdir())


def test_many_operations_leave_no_descriptor_open():
    steps = ["sign", "shown", "unplug", "refresh", "plug in", "refresh", "turn", "read"]
    steps += ["kill the worker", "sign", "cancel"]
    asyncio.run(play(Family.TREZOR, steps))
    before, days = open_descriptors(), 20
    for _ in range(days):
        asyncio.run(play(Family.TREZOR, steps))
    # What a day leaves open, twenty leave twenty times; what else this process opens for a moment is fewer.
    assert open_descriptors() - before < days
