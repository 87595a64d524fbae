"""How the situations are played in which something goes wrong, or a lock is in the way."""

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial

from device_simulators.panel import Script, approve_all
from firmware_bridge import BridgeError, Busy
from multisig import Psbt
from tests.conformance import everyday, makes, payments, rigs, second_program
from tests.conformance.makes import VAULT, Person
from tests.conformance.stage import SIGNED, Played, Player, Stage


def answered_late(strike: Callable[[Stage], Awaitable[None]]) -> Player:
    """The host has gone; the person says yes, and the same is asked for again."""

    async def play(stage: Stage) -> Played:
        await stage.enrol()
        await stage.struck(stage.sign(), partial(strike, stage))
        makes.settle(stage.rig)
        await _until_free(stage)
        return await stage.play(stage.sign(), answer=SIGNED)

    return play


async def _until_free(stage: Stage) -> None:
    """The device has done what the person said yes to, or is gone."""
    async with asyncio.timeout(rigs.QUICK.person):
        while True:
            try:
                await stage.bridge.fingerprint(stage.device.id)
            except Busy:
                continue
            except BridgeError:
                pass
            return


def left_open(again: Callable[[], Psbt]) -> Player:
    """The host's worker is killed, no button is pressed, and this is asked for next."""

    async def play(stage: Stage) -> Played:
        await stage.enrol()
        await stage.struck(stage.sign(one_input()), stage.kill)
        return await stage.play(stage.sign(again()), answer=SIGNED)

    return play


def one_input() -> Psbt:
    return payments.make_spend(VAULT, n_inputs=1)


async def nothing(_stage: Stage) -> None:
    """No button is pressed."""


async def used_before(stage: Stage) -> Played:
    await stage.enrol()
    await second_program.grab(stage.rig)
    return await stage.play(stage.sign(), answer=SIGNED)


async def use_it(stage: Stage) -> None:
    """Another program does; then the person says yes."""
    await second_program.grab_while_asked(stage.rig)
    makes.settle(stage.rig)


async def used_while_working(stage: Stage) -> Played:
    """The other program comes when the first step of ours is told."""
    begun = asyncio.Event()
    await stage.enrol()
    signing = stage.sign(payments.make_spend(VAULT, n_inputs=50), on_progress=lambda _note: begun.set())
    async with (
        second_program.started(stage.rig) as use,
        rigs.running(stage.play(signing, answer=SIGNED)) as playing,
    ):
        async with asyncio.timeout(rigs.QUICK.person):
            await begun.wait()
        await use(working=True)
        return await playing


async def lock(stage: Stage) -> None:
    """And the person says yes."""
    stage.rig.device.lock()
    makes.settle(stage.rig)


def locked(stage: Stage) -> Awaitable[Played]:
    stage.rig.device.lock()
    return everyday.doing(everyday.key())(stage)


def locked_while_asked(stage: Stage) -> Awaitable[Played]:
    stage.rig.device.unlock()
    return everyday.doing(Stage.sign, enrolled=True, strike=lock, answer=SIGNED)(stage)


def unlocked(script: Script = approve_all, **answers: str) -> Player:
    async def play(stage: Stage) -> Played:
        person = Person(stage.rig, **answers)
        played = await stage.play(stage.bridge.unlock(stage.device.id, person), script)
        stage.values |= {"top": person.matrix[6:], "middle": person.matrix[3:6], "bottom": person.matrix[:3]}
        return played

    return play
