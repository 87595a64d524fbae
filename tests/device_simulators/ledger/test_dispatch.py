"""The virtual Ledger's conversation with hosts that interrupt, leave, come back and talk across each
other.
"""

import asyncio
from types import SimpleNamespace

import pytest

from device_simulators.panel import Happening, ask_person
from tests.support.ledger_host import (
    OK,
    VAULT,
    Host,
    Table,
    host_of,
    policy_of,
    registered,
    spending,
    table,
)
from tests.support.virtual import seed, spend

pytestmark = pytest.mark.anyio

GET_VERSION = (0xB0, 0x01)
FINGERPRINT = (0xE1, 0x05)
CONTINUE = (0xF8, 0x01)
POLICY = policy_of(VAULT)
MESSAGE_AT_MASTER = b"\x00\x00" + bytes(32)
"""An empty message, for which the host is asked nothing: the prompt comes at once."""


async def seen(it: Table, happening: Happening, times: int = 1) -> None:
    """Wait until the screen has changed in this way so many times."""
    changed = asyncio.Event()
    unwatch = it.device.panel.watch(lambda _: changed.set())
    while it.record.happenings.count(happening) < times:
        await changed.wait()
        changed.clear()
    unwatch()


async def press_yes(it: Table, times: int) -> None:
    """At so many prompts, one after the other."""
    before = it.record.happenings.count(Happening.APPROVED)
    for number in range(before + 1, before + times + 1):
        await seen(it, Happening.SHOWN, number)
        it.device.panel.press_yes()
        await seen(it, Happening.APPROVED, number)


async def prompt_open(it: Table) -> None:
    before = it.record.happenings.count(Happening.SHOWN)
    it.host.send(0xE1, 0x10, MESSAGE_AT_MASTER)
    await seen(it, Happening.SHOWN, before + 1)


async def works(host: Host) -> bool:
    return await host.exchange(*FINGERPRINT) == (OK, bytes(seed().fingerprint))


async def test_a_host_that_comes_in_the_middle_ends_the_command_and_is_served_the_second_time():
    async with table() as it:
        mark = await registered(it.host, POLICY)
        it.host.send(**spending(spend(VAULT), POLICY).apdu(mark))
        assert (await it.host.receive())[0] == 0xE000
        it.host.writer.transport.abort()
        async with host_of(it.endpoint) as other:
            assert await other.exchange(*GET_VERSION, p2=0) == (0x6A80, b"")
            assert (await other.exchange(*GET_VERSION, p2=0))[0] == OK
            assert (await other.sign(spending(spend(VAULT), POLICY), mark))[0] == OK
            assert len(other.yielded) == 1


async def test_what_a_dead_host_was_asked_is_not_taken_from_the_next_one():
    async with table() as it:
        it.host.send(0xE1, 0x02, b"\x00")
        assert await it.host.receive() == (0x6A80, b"")
        assert await it.host.exchange(*CONTINUE, b"late") == (0xB007, b"")
        assert await works(it.host)


async def test_a_prompt_stays_on_the_screen_when_the_host_dies_and_others_hear_that_it_is_busy():
    async with table(ask_person) as it:
        await prompt_open(it)
        it.host.writer.transport.abort()
        async with host_of(it.endpoint) as other:
            for command in (GET_VERSION, FINGERPRINT, CONTINUE):
                assert await other.exchange(*command) == (0x6901, b"")
            assert it.device.panel.pending is not None
            await press_yes(it, 1)
            while await other.exchange(*FINGERPRINT) == (0x6901, b""):
                pass  # it signs
            assert await works(other), "the answer to the first host is not given to the second one"


async def test_signing_that_outlives_its_host_waits_for_the_person_and_is_cleared_by_the_next_command():
    async with table() as it:
        mark = await registered(it.host, POLICY)
        it.device.panel.script = ask_person
        lie = spending(spend(VAULT), POLICY)
        task = asyncio.ensure_future(it.host.run(lie.apdu(mark), lie.interpreter()))
        await seen(it, Happening.SHOWN, it.record.happenings.count(Happening.APPROVED) + 1)
        task.cancel()
        it.host.writer.transport.abort()
        await press_yes(it, 1)
        async with host_of(it.endpoint) as other:
            assert await other.exchange(*GET_VERSION) == (0x6A80, b"")
            assert (await other.exchange(*GET_VERSION))[0] == OK


async def test_an_app_whose_host_falls_silent_in_the_middle_of_a_command_ends():
    """Five seconds, by the clock that it was given; a host that answers, or a person who thinks, keeps it."""
    clock = Clock()
    async with table(call_later=clock.call_later) as it:
        mark = await registered(it.host, POLICY)
        assert clock.running == []
        it.host.send(**spending(spend(VAULT), POLICY).apdu(mark))
        assert (await it.host.receive())[0] == 0xE000
        ((seconds, end),) = clock.running
        assert seconds == 5
        end()
        with pytest.raises((ConnectionError, asyncio.IncompleteReadError)):
            await it.host.exchange(*FINGERPRINT)
        with pytest.raises(ConnectionRefusedError):
            await asyncio.open_connection("127.0.0.1", int(it.endpoint.place.rpartition(":")[2]))
        async with host_of(await it.device.start()) as again:
            assert await works(again)


async def test_a_person_who_thinks_for_long_does_not_end_the_app():
    clock = Clock()
    async with table(ask_person, call_later=clock.call_later) as it:
        await prompt_open(it)
        assert clock.running == []
        it.device.panel.press_yes()
        assert (await it.host.receive())[0] == OK


class Clock:
    """What was to be called later, and has neither been called nor cancelled."""

    def __init__(self):
        self.running = []

    def call_later(self, seconds, call):
        timer = (seconds, call)
        self.running.append(timer)
        return SimpleNamespace(cancel=lambda: self.running.remove(timer))


async def test_a_scan_takes_the_line_and_the_signer_is_never_answered_again():
    async with table() as it:
        mark = await registered(it.host, POLICY)
        it.host.send(**spending(spend(VAULT), POLICY).apdu(mark))
        assert (await it.host.receive())[0] == 0xE000
        async with host_of(it.endpoint) as scanner:
            assert await scanner.exchange(*GET_VERSION) == (0x6A80, b"")
            it.host.send(*CONTINUE, b"")
            assert await it.host.hears_nothing()
            assert await works(scanner)


async def test_to_lock_it_ends_what_is_under_way():
    async with table(ask_person) as it:
        await prompt_open(it)
        it.device.lock()
        assert await it.host.receive() == (0x5515, b"")
        it.device.unlock()
        await prompt_open(it)
        assert it.record.happenings == [Happening.SHOWN, Happening.WITHDRAWN, Happening.SHOWN]
        it.device.panel.press_no()
        assert await it.host.receive() == (0x6985, b"")


async def test_to_unplug_it_takes_the_prompt_off_the_screen_and_forgets_the_command():
    async with table(ask_person) as it:
        await prompt_open(it)
        port = int(it.endpoint.place.rpartition(":")[2])
        await it.device.stop()
        await it.device.stop()
        assert it.device.panel.pending is None
        assert it.record.happenings == [Happening.SHOWN, Happening.WITHDRAWN]
        with pytest.raises(ConnectionRefusedError):
            await asyncio.open_connection("127.0.0.1", port)
        await it.device.start(port=port)
        async with host_of(it.endpoint) as again:
            assert await works(again)


async def test_a_device_at_the_pace_of_hardware_answers_in_its_own_time():
    loop = asyncio.get_running_loop()
    async with table(answer_seconds=0.02) as it:
        started = loop.time()
        assert await works(it.host)
        assert loop.time() - started >= 0.02
