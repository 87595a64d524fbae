"""A Ledger's worker process that is killed, cancelled or left waiting, and the next one after it."""

import asyncio
from contextlib import asynccontextmanager

import pytest

from device_simulators.ledger import commands
from device_simulators.panel import Happening, approve_all, ask_person
from firmware_bridge.errors import Busy, Cancelled, Disconnected, TimedOut
from firmware_bridge.lane import Lane
from multisig import Psbt, accept_signatures, signer_progress
from tests.conformance import rigs
from tests.support import wallets
from tests.support.driver import policy_args
from tests.support.ledger_driver import bench
from tests.support.patience import PATIENCE

pytestmark = pytest.mark.anyio

VAULT = rigs.make_vault()
SEED = rigs.SEEDS[0]
PERSON = PATIENCE


@asynccontextmanager
async def workbench(deadlines=rigs.QUICK, **options):
    """A device that knows the vault, and a lane to it."""
    async with bench(**options) as b:
        policy = policy_args(VAULT, hmac=await b.driver.enrol(VAULT))
        b.driver.client.close()
        lane = Lane(b.endpoint, rigs.NETWORK, deadlines=deadlines)
        try:
            yield b, lane, policy
        finally:
            lane.release()


async def sign(lane, psbt, policy, *, deadline=PERSON, person=PERSON, on_note=None):
    args = {"psbt": psbt.to_base64(), "policy": policy, "payments": 1, "resume": False}
    return Psbt.parse(await lane.call("sign", args, deadline=deadline, person=person, on_note=on_note))


async def signs(lane, policy) -> bool:
    psbt = wallets.make_spend(VAULT)
    signed = accept_signatures(psbt, await sign(lane, psbt, policy), VAULT, SEED.fingerprint)
    return signer_progress(signed, VAULT, SEED.fingerprint).is_complete


@asynccontextmanager
async def asked(b, lane, policy, person=PERSON):
    """A signing that waits for the person."""
    shown = asyncio.Event()
    unwatch = b.panel.watch(lambda event: shown.set() if event.happening == Happening.SHOWN else None)
    b.panel.script = ask_person
    signing = asyncio.create_task(sign(lane, wallets.make_spend(VAULT), policy, person=person))
    try:
        async with asyncio.timeout(PERSON):
            await shown.wait()
        yield signing
    finally:
        unwatch()
        signing.cancel()


async def cancelled(lane, signing):
    await lane.cancel()
    with pytest.raises(Cancelled):
        await signing


async def out_of_time(_lane, signing):
    with pytest.raises(TimedOut):
        await signing


async def caller_gone(_lane, signing):
    signing.cancel()
    with pytest.raises(asyncio.CancelledError):
        await signing


@pytest.mark.parametrize("give_up", [cancelled, out_of_time, caller_gone])
@pytest.mark.parametrize("answer", ["press_yes", "press_no"])
async def test_what_is_answered_after_it_was_given_up_signs_nothing(give_up, answer, monkeypatch):
    """The app ends itself after a yes that no host follows up."""
    made = []
    real = commands._signature
    monkeypatch.setattr(
        commands, "_signature", lambda *given, **how: made.append(given) or real(*given, **how)
    )
    async with workbench() as (b, lane, policy):
        person = 0.3 if give_up is out_of_time else PERSON
        async with asked(b, lane, policy, person=person) as signing:
            await give_up(lane, signing)
        with pytest.raises(Busy) as caught:
            await lane.call("fingerprint", deadline=PERSON)
        assert "answer no there" in caught.value.detail
        assert b.panel.pending is not None
        b.panel.script = approve_all
        if answer == "press_no":
            b.panel.press_no()
            await _free_again(lane)
            assert made == []
            assert await signs(lane, policy)
            return
        ended = asyncio.Event()

        def at_once(_seconds, end):
            # A connection that is accepted while the port is closed would be neither served nor closed.
            return asyncio.get_running_loop().call_soon(lambda: (end(), ended.set()))

        b.device.call_later = at_once
        b.panel.press_yes()
        async with asyncio.timeout(PATIENCE):
            await ended.wait()
        with pytest.raises(Disconnected):
            await lane.call("fingerprint", deadline=PERSON)
        assert made == []


async def test_a_cancel_before_the_question_ends_the_command_on_the_device_too():
    async with workbench(answer_seconds=0.005) as (b, lane, policy):
        begun = asyncio.Event()
        b.record.events.clear()
        signing = asyncio.create_task(
            sign(lane, wallets.make_spend(VAULT), policy, on_note=lambda _note: begun.set())
        )
        await begun.wait()
        pid = lane.worker_pid
        await cancelled(lane, signing)
        assert await lane.call("fingerprint", deadline=PERSON) == str(SEED.fingerprint)
        assert (b.record.prompts, lane.worker_pid) == ([], pid)


async def _free_again(lane) -> None:
    """Waits until the question has gone."""
    async with asyncio.timeout(PATIENCE):
        while True:
            try:
                await lane.call("fingerprint", deadline=PERSON)
            except Busy:
                continue
            return
