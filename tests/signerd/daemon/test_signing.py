"""The device: asked when it is ready, once, and believed in nothing."""

import asyncio
from dataclasses import replace

import pytest

from firmware_bridge import Device, DeviceState, Disconnected, NotEnrolled, RefusedByPerson
from multisig import ChangeTo, build_psbt, sats
from signerd.core.states import State
from signerd.daemon import runner
from tests.support.daemons import approve, daemon_at, some_rounds, submits, until, until_state
from tests.support.desk import VAULT, snapshot_of
from tests.support.fake_bridge import FakeBridge
from tests.support.fake_platform import FakePlatform
from tests.support.wallets import ALICE, BOB, fund, pay

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


class Counting(FakeBridge):
    """How often the devices were looked through."""

    looks = 0

    async def list(self) -> tuple[Device, ...]:
        self.looks += 1
        return await super().list()


async def test_devices_are_looked_through_only_while_something_waits_for_one(prepared, platform, monkeypatch):
    """An idle daemon is not woken for it; one that waits notices also what no event told of."""
    monkeypatch.setattr(runner, "LOOK_AGAIN_SECONDS", 0.001)
    bridge = Counting(state=DeviceState.LOCKED)
    async with daemon_at(prepared, platform, bridge) as daemon:
        await until_state(daemon, "p-1", State.WAITING_PERSON)
        rounds, looks = daemon.follower.state.rounds, bridge.looks
        await until(lambda: daemon.follower.state.rounds > rounds + 5)
        assert bridge.looks == looks
        await approve(daemon, "p-1")
        await until(lambda: bridge.looks > 5)
        bridge.state = DeviceState.READY
        await until_state(daemon, "p-1", State.SUBMITTED)


class TwoOfOneSeed(FakeBridge):
    """The second device holds the same seed, and stays ready while the first one works."""

    async def list(self) -> tuple[Device, ...]:
        other = replace(self.device, id="copy")
        return (other,) if self.asked else (self.device, other)


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
    bridge = TwoOfOneSeed(gate=asyncio.Event())
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
