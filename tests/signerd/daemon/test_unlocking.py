"""Unlocking through the daemon: a question, an answer, the next step; and it ends even if the
person never answers.
"""

import asyncio
import logging
from pathlib import Path

import pytest

from firmware_bridge import Device, DeviceState, Question
from signerd.api.devices import DevicesApi
from signerd.daemon.devices import UNFORESEEN
from signerd.daemon.service import Daemon
from signerd.daemon.unlocking import UNANSWERED, Unlocking
from signerd.errors import DeviceFailed, NoSuchDevice, NoSuchQuestion, NothingUnlocked
from signerd.loopback.binding import body_of
from signerd.runtime import DaemonDependencies
from tests.support.daemons import daemon_at, told, until
from tests.support.fake_bridge import FakeBridge

pytestmark = pytest.mark.anyio
# Nine digits: four stand in some random id by chance.
PIN = "791379137"
STILL = DaemonDependencies(clock=lambda: 0.0, entropy=bytes)


@pytest.fixture
def bridge() -> FakeBridge:
    return FakeBridge(state=DeviceState.LOCKED, secrets={Question.PIN: PIN})


def device_of(bridge: FakeBridge) -> str:
    return bridge.device.id


def impatient(daemon: Daemon, seconds: float = 0.01) -> Unlocking:
    """As the daemon's own, with a question's time cut short."""
    daemon.unlocking = Unlocking(daemon.bridge_devices, daemon.feed, STILL, seconds)
    return daemon.unlocking


async def test_it_asks_one_question_after_the_other_and_the_right_answers_unlock_it(daemon, bridge):
    bridge.secrets[Question.PASSPHRASE] = ""
    pin = await daemon.unlocking.start(device_of(bridge))
    assert (pin.state, pin.question.kind) == ("asks", "pin")
    assert await daemon.unlocking.questions() == (pin.question,)
    passphrase = await daemon.unlocking.answer(pin.question.id, PIN)
    assert (passphrase.state, passphrase.question.kind) == ("asks", "passphrase")
    assert passphrase.question.id != pin.question.id
    done = await daemon.unlocking.answer(passphrase.question.id, "")
    assert (done.state, done.device.state) == ("unlocked", "ready")
    assert await daemon.unlocking.questions() == ()
    assert told(daemon, device_of(bridge), "question")[0] == "Fake device asks for its PIN."


@pytest.mark.parametrize("given", ["1111", None], ids=["wrong", "left"])
async def test_a_pin_that_is_wrong_or_left_to_the_device_is_told(daemon, bridge, given):
    step = await daemon.unlocking.start(device_of(bridge))
    with pytest.raises(DeviceFailed, match="wrong"):
        await daemon.unlocking.answer(step.question.id, given)
    with pytest.raises(DeviceFailed, match="wrong"):
        await daemon.unlocking.step(device_of(bridge))
    again = await daemon.unlocking.start(device_of(bridge))
    assert again.question.id != step.question.id
    assert (await daemon.unlocking.answer(again.question.id, PIN)).state == "unlocked"


async def test_without_an_answer_the_device_is_released(daemon, bridge):
    unlocking = impatient(daemon)
    step = await unlocking.start(device_of(bridge))
    await until(lambda: bool(told(daemon, device_of(bridge), "attention")))
    with pytest.raises(DeviceFailed, match=UNANSWERED):
        await unlocking.step(device_of(bridge))
    assert bridge.cancels == 1
    assert await unlocking.questions() == ()
    with pytest.raises(NoSuchQuestion):
        await unlocking.answer(step.question.id, PIN)


async def test_the_page_goes_and_the_question_stays_for_the_next_one(daemon, bridge):
    first = asyncio.create_task(daemon.unlocking.start(device_of(bridge)))
    await until(lambda: bool(told(daemon, device_of(bridge), "question")))
    first.cancel()
    step = await daemon.unlocking.step(device_of(bridge))
    assert (await daemon.unlocking.answer(step.question.id, PIN)).state == "unlocked"


async def test_two_tabs_see_the_same_question_and_one_answer_counts(daemon, bridge):
    one, two = await asyncio.gather(*(daemon.unlocking.start(device_of(bridge)) for _tab in range(2)))
    assert one.question == two.question
    assert (await daemon.unlocking.answer(one.question.id, PIN)).state == "unlocked"
    with pytest.raises(NoSuchQuestion):
        await daemon.unlocking.answer(two.question.id, PIN)


async def test_a_cancel_ends_it(daemon, bridge):
    step = await daemon.unlocking.start(device_of(bridge))
    await daemon.bridge_devices.cancel(device_of(bridge))
    await until(lambda: bool(told(daemon, device_of(bridge), "attention")))
    with pytest.raises(DeviceFailed, match="cancelled"):
        await daemon.unlocking.step(device_of(bridge))
    with pytest.raises(NoSuchQuestion):
        await daemon.unlocking.answer(step.question.id, PIN)


async def test_a_device_at_work_is_waited_for_in_steps(daemon, bridge):
    begun = asyncio.Event()

    async def slow(*_args: object, **_given: object) -> Device:
        await begun.wait()
        return bridge.device

    bridge.unlock = slow
    daemon.unlocking = Unlocking(daemon.bridge_devices, daemon.feed, STILL, step_seconds=0.01)
    assert (await daemon.unlocking.start(device_of(bridge))).state == "works"
    assert (await daemon.unlocking.step(device_of(bridge))).state == "works"
    begun.set()
    assert (await daemon.unlocking.step(device_of(bridge))).state == "unlocked"


async def test_what_is_not_there_is_told_apart(daemon, bridge):
    with pytest.raises(NoSuchDevice):
        await daemon.unlocking.start("trezor-404")
    with pytest.raises(NothingUnlocked):
        await daemon.unlocking.step(device_of(bridge))


async def test_a_daemon_that_stops_gives_an_open_question_up(prepared, platform, bridge):
    async with daemon_at(prepared, platform, bridge) as daemon:
        await daemon.unlocking.start(device_of(bridge))
        running = daemon.unlocking._runs[device_of(bridge)].task
    assert running.done()


class Leaky(FakeBridge):
    """A library whose mistake repeats what was typed."""

    async def unlock(self, _device_id, ask, **_given):
        raise ValueError(f"bad PIN {await ask(Question.PIN)}")


def holding(folder: Path, text: bytes) -> list[Path]:
    return [file for file in folder.iterdir() if file.is_file() and text in file.read_bytes()]


async def test_l10_what_was_typed_is_in_no_log_no_error_no_line_and_no_entry(
    prepared, platform, bridge, caplog
):
    caplog.set_level(logging.DEBUG)
    leaky = Leaky(state=DeviceState.LOCKED)
    for device, expected in ((bridge, "wrong"), (leaky, UNFORESEEN)):
        async with daemon_at(prepared, platform, device) as daemon:
            step = await daemon.unlocking.start(device_of(device))
            body = body_of(DevicesApi.answer_question)(answer="66666666")
            with pytest.raises(DeviceFailed, match=expected) as refused:
                await daemon.unlocking.answer(step.question.id, body.answer)
            words = [
                repr(body),
                repr(daemon.unlocking.__dict__),
                str(refused.value),
                refused.value.hint,
                *(line.text for line in daemon.feed.since(0)),
                *(str(entry) for entry in daemon.journal.audit()),
                caplog.text,
            ]
            assert "66666666" not in "\n".join(words)
            # A journal's file, too.
            assert not holding(prepared, b"66666666")
