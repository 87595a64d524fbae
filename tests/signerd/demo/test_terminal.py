"""One question at a time, and an answer counts only for the question that was on the screen."""

import asyncio
import os
import pty
import sys
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import TextIO

import pytest

from device_simulators.errors import NoSuchPrompt
from signerd.demo.programs import Programs
from signerd.demo.stage import Demo
from signerd.demo.terminal import InputEnded, Terminal, boxed
from tests.support.patience import PATIENCE

pytestmark = pytest.mark.anyio
YES_NO = {"y": "yes", "n": "no"}


@dataclass
class Person:
    """At a pseudo-terminal: types, and reads what is asked."""

    keyboard: int
    capsys: pytest.CaptureFixture[str]
    seen: str = field(default="", init=False)

    def types(self, text: str) -> None:
        os.write(self.keyboard, text.encode())

    async def reads(self, words: str, *, times: int = 1) -> None:
        async with asyncio.timeout(PATIENCE):
            while self.seen.count(words) < times:
                await asyncio.sleep(0)
                self.seen += self.capsys.readouterr().out


@asynccontextmanager
async def seated(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> AsyncIterator[tuple[Terminal, Person]]:
    keyboard, descriptor = pty.openpty()
    with open(descriptor) as stdin:  # noqa: ASYNC230, PTH123 - a terminal's descriptor
        monkeypatch.setattr(sys, "stdin", stdin)
        terminal = Terminal()
        async with terminal.open():
            yield terminal, Person(keyboard, capsys)
    os.close(keyboard)


async def of(question: Coroutine[None, None, str]) -> asyncio.Task[str]:
    task = asyncio.create_task(question)
    await asyncio.sleep(0)
    return task


async def test_what_was_typed_before_a_question_answers_nothing(monkeypatch, capsys):
    async with seated(monkeypatch, capsys) as (terminal, person):
        # A whole line, and one that was begun.
        person.types("y\ny")
        asked = await of(terminal.choose("Approve?", YES_NO))
        await person.reads("Approve?")
        person.types("maybe\n")
        await person.reads("Answer with y or n.")
        await person.reads("Approve?", times=2)
        person.types("N\n")
        assert await asked == "no"


async def test_what_the_page_answers_counts_for_the_question_that_it_shows(monkeypatch, capsys, tmp_path):
    async with seated(monkeypatch, capsys) as (terminal, person), asyncio.timeout(PATIENCE):
        desk = Demo(tmp_path, Programs(tmp_path), auto=False, terminal=terminal).desk
        menu = await of(terminal.choose("What now?", {"t": "Token", "q": "Stop"}, gives_way=True))
        first, words = desk.story.number, desk.story.answers
        assert (desk.story.question, words) == ("What now?", ("Token", "Stop"))
        # A device has its buttons on the page: the other question is not there meanwhile.
        device = await of(terminal.choose("Which button?", YES_NO))
        assert desk.story.number == 0
        with pytest.raises(NoSuchPrompt):
            desk.answer(first, "Stop")
        person.types("yes\n")
        assert await device == "yes"
        for number, answer in ((first, "Stop"), (desk.story.number, "Approve"), (0, "Stop")):
            with pytest.raises(NoSuchPrompt):
                desk.answer(number, answer)
        desk.answer(desk.story.number, "Stop")
        assert await menu == "Stop"
        assert desk.story.number == 0
        await person.reads("Stop, on the page")


async def test_a_device_s_question_goes_first_and_the_other_is_asked_again(monkeypatch, capsys):
    async with seated(monkeypatch, capsys) as (terminal, person):
        menu = await of(terminal.choose("What now?", {"q": "stop"}, gives_way=True))
        await person.reads("What now?")
        first = await of(terminal.choose("Button of the first?", YES_NO, shown=boxed("Ledger", ("Send?",))))
        second = await of(terminal.choose("Button of the second?", YES_NO))
        await person.reads("Button of the first?")
        assert person.seen.index("─Ledger") < person.seen.index("Button of the first?")
        assert "Button of the second?" not in person.seen
        person.types("y\n")
        assert await first == "yes"
        await person.reads("Button of the second?")
        assert person.seen.count("What now?") == 1
        # Answered on the page: whatever is typed next is for what is asked next.
        second.cancel()
        await person.reads("What now?", times=2)
        person.types("q\n")
        assert await menu == "stop"


async def test_without_a_person_a_question_is_not_waited_for(monkeypatch, capsys):
    async def asks(stdin: TextIO) -> None:
        monkeypatch.setattr(sys, "stdin", stdin)
        terminal = Terminal()
        async with terminal.open(), asyncio.timeout(PATIENCE):
            with pytest.raises(InputEnded):
                await terminal.choose("Approve?", YES_NO)
            await terminal.ended.wait()

    with open(os.devnull) as nobody:  # noqa: ASYNC230, PTH123
        await asks(nobody)
    reading, writing = os.pipe()
    with open(reading) as closed:  # noqa: ASYNC230, PTH123
        os.close(writing)
        await asks(closed)
