"""The screen and the buttons."""

import asyncio

import pytest

from device_simulators.errors import NoSuchPrompt
from device_simulators.panel import (
    Decision,
    Happening,
    Panel,
    Prompt,
    approve_all,
    ask_person,
    refuse_all,
)
from tests.support.virtual import Record

pytestmark = pytest.mark.anyio

PROMPT = Prompt("sign-output", ("Send 1 BTC", "to somebody?"))


@pytest.mark.parametrize(
    ("script", "approved"),
    [
        (approve_all, True),
        (refuse_all, False),
        (lambda prompt: Decision.YES if "1 BTC" in prompt.lines[0] else Decision.NO, True),
    ],
)
async def test_a_script_decides(script, approved):
    panel = Panel(script)
    record = Record(panel)
    assert await panel.ask(PROMPT) is approved
    assert record.happenings == [Happening.SHOWN, Happening.APPROVED if approved else Happening.REFUSED]
    assert {event.id for event in record.events} == {1}


async def asked(panel: Panel) -> asyncio.Task[bool]:
    task = asyncio.create_task(panel.ask(PROMPT))
    await asyncio.sleep(0)
    return task


async def test_a_person_decides_with_the_buttons():
    panel = Panel(ask_person)
    for press, approved in ((panel.press_yes, True), (panel.press_no, False)):
        task = await asked(panel)
        number, prompt = panel.pending
        assert prompt == PROMPT
        press(number)
        assert await task is approved
        assert panel.pending is None


async def test_where_no_button_says_no_the_question_stays():
    """As on the address screen of a Trezor One, whose left button shows the QR code."""
    panel = Panel(refuse_all)
    task = asyncio.create_task(panel.ask(Prompt("address", ("2N…",), no="")))
    await asyncio.sleep(0)
    with pytest.raises(NoSuchPrompt):
        panel.press_no()
    assert panel.pending is not None
    panel.press_yes()
    assert await task is True


async def test_a_button_without_a_prompt_and_a_late_answer_to_another_prompt():
    panel = Panel()
    with pytest.raises(NoSuchPrompt, match="nothing"):
        panel.press_yes()
    task = await asked(panel)
    with pytest.raises(NoSuchPrompt, match="prompt 7 is not on the screen; prompt 1 is"):
        panel.press_yes(7)
    panel.press_no()
    with pytest.raises(NoSuchPrompt, match="nothing"):
        panel.press_yes()
    assert await task is False


async def test_only_one_prompt_at_a_time():
    panel = Panel()
    task = await asked(panel)
    with pytest.raises(RuntimeError, match="one thing at a time"):
        await panel.ask(PROMPT)
    panel.press_yes()
    assert await task


async def test_a_prompt_whose_asker_goes_away_is_withdrawn():
    panel = Panel()
    record = Record(panel)
    task = await asked(panel)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert record.happenings == [Happening.SHOWN, Happening.WITHDRAWN]
    assert panel.pending is None


async def test_a_watcher_may_press_when_it_sees_the_prompt_and_the_script_does_not_press_again():
    panel = Panel(refuse_all)
    panel.watch(lambda event: panel.press_yes(event.id) if event.happening is Happening.SHOWN else None)
    assert await panel.ask(PROMPT) is True


async def test_a_watcher_sees_every_event_in_order():
    panel = Panel(approve_all)
    seen = []
    panel.watch(seen.append)
    panel.notify(Prompt("pin", ("789",)))
    await panel.ask(PROMPT)
    assert [(event.id, event.happening) for event in seen] == [
        (1, Happening.NOTICE),
        (2, Happening.SHOWN),
        (2, Happening.APPROVED),
    ]


async def test_a_watcher_that_has_left_hears_nothing():
    panel = Panel(approve_all)
    seen = []
    unwatch = panel.watch(seen.append)
    unwatch()
    await panel.ask(PROMPT)
    assert seen == []
