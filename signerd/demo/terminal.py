"""The demo's terminal: progress lines, and one question at a time.

Input is read by the event loop, so that a Ctrl-C or an answer from elsewhere ends a question at once. Input
typed before a question is shown is discarded.
"""

import asyncio
import contextlib
import os
import select
import shutil
import sys
import termios
import textwrap
import time
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Final

import click

from signerd.runtime import alongside

# Show a progress line after this long without output.
QUIET_SECONDS: Final = 2.0
TICK_SECONDS: Final = 1.0
CLEAR_LINE: Final = "\r\033[K"
MAX_LINE: Final = 4_096
WORDS: Final = {"yes": "y", "no": "n"}


class InputEnded(Exception):
    """The terminal's input has ended, so no question can be answered."""


def _future() -> "asyncio.Future[str]":
    return asyncio.get_running_loop().create_future()


@dataclass(eq=False)
class Question:
    """``text``: as the terminal shows it, with the keys of the answers. One that gives way waits for the
    devices'.
    """

    asked: str
    text: str
    answers: Mapping[str, str]
    above: str
    gives_way: bool
    answer: asyncio.Future[str] = field(default_factory=_future)


@dataclass
class Terminal:
    """Use it within ``open``. Not thread-safe: for one event loop. ``asks`` is called with the question that
    is open now, if any: the page shows it, too. ``ended``: the input has.
    """

    asks: Callable[[Question | None], None] = field(default=lambda _question: None, repr=False)
    started: float = field(default_factory=time.monotonic)
    _said: float = field(default_factory=time.monotonic)
    _doing: str = ""
    _ticking: bool = False
    _open: list[Question] = field(default_factory=list)
    _shown: Question | None = None
    _typed: bytes = b""
    ended: asyncio.Event = field(default_factory=asyncio.Event)

    @contextlib.asynccontextmanager
    async def open(self) -> AsyncIterator[None]:
        """Read the keyboard and show a ticking progress line during quiet spells, while the body runs."""
        try:
            async with alongside(self._tick()) if sys.stdout.isatty() else contextlib.nullcontext():
                with self._listening():
                    yield
        finally:
            self._end_tick()

    def tell(self, text: str) -> None:
        """Print a step or its result, with the seconds since the start."""
        self.say(
            f"[{time.monotonic() - self.started:5.1f} s] {text}", doing="" if text.startswith(" ") else text
        )

    def say(self, text: str, *, doing: str = "") -> None:
        """Print ``text``, and an open question again below it. ``doing``: the text of the progress line from
        now on.
        """
        self._end_tick()
        self._doing = doing.strip() or self._doing
        self._leave_question()
        click.echo(text)
        if self._shown is not None and not self._shown.answer.done():
            click.echo(self._shown.text, nl=False)
        self._said = time.monotonic()

    async def choose(
        self, question: str, answers: Mapping[str, str], *, shown: str = "", gives_way: bool = False
    ) -> str:
        """The words of the answer, for its key as typed (y and n also as words); an empty key is Enter alone.

        One question is open at a time; one that ``gives_way`` is interrupted by the others and asked again
        after them. ``shown`` is printed above the question. Raises InputEnded.
        """
        if self.ended.is_set():
            raise InputEnded
        keys = "   ".join(f"{key}: {words}" for key, words in answers.items() if key)
        open_question = Question(question, f"{question} {keys}: ", answers, shown, gives_way)
        self._open.append(open_question)
        try:
            while True:
                self._show_next()
                typed = await open_question.answer
                key = typed.strip().lower()
                if (answer := answers.get(WORDS.get(key, key))) is not None:
                    return answer
                again = f"Answer with {' or '.join(key for key in answers if key)}."
                former, open_question = open_question, replace(open_question, above=again, answer=_future())
                self._open[self._open.index(former)] = open_question
        finally:
            self._open.remove(open_question)
            self._show_next()

    def reply(self, words: str) -> None:
        """Answer the question that is open from elsewhere."""
        if self._shown is not None and not self._shown.answer.done():
            self._shown.answer.set_result(
                next(key for key, its in self._shown.answers.items() if its == words)
            )
            click.echo(f"{words}, on the page")

    def _show_next(self) -> None:
        """Show the question that is next, unless it stands there."""
        wanted = min(self._open, key=lambda one: one.gives_way, default=None)
        if wanted is self._shown or self.ended.is_set():
            return
        self._leave_question()
        self._shown = None
        self._said = time.monotonic()
        if wanted is not None:
            self._forget_what_was_typed()
            self._end_tick()
            if wanted.above:
                self.say(wanted.above)
            click.echo(wanted.text, nl=False)
            self._shown = wanted
        self.asks(wanted)

    def _leave_question(self) -> None:
        """End the line of a question that was not answered there."""
        if self._shown is not None and (not self._shown.answer.done() or self._shown.answer.cancelled()):
            click.echo()

    @contextlib.contextmanager
    def _listening(self) -> Iterator[None]:
        loop = asyncio.get_running_loop()
        try:
            descriptor = sys.stdin.fileno()
            loop.add_reader(descriptor, self._read, descriptor)
        except (OSError, ValueError, AttributeError, NotImplementedError):
            # A file, or no input at all.
            self._end()
            yield
            return
        try:
            yield
        finally:
            loop.remove_reader(descriptor)

    def _read(self, descriptor: int) -> None:
        # The input may have been flushed since. The terminal is shared with other processes, so it stays
        # blocking.
        if not select.select([descriptor], [], [], 0)[0]:
            return
        try:
            some = os.read(descriptor, MAX_LINE)
        except OSError:
            some = b""
        if not some:
            asyncio.get_running_loop().remove_reader(descriptor)
            self._end()
            return
        self._typed = (self._typed + some)[-MAX_LINE:]
        while b"\n" in self._typed:
            line, _, self._typed = self._typed.partition(b"\n")
            if self._shown is not None and not self._shown.answer.done():
                self._shown.answer.set_result(line.decode(errors="replace"))

    def _end(self) -> None:
        self.ended.set()
        for open_question in self._open:
            if not open_question.answer.done():
                open_question.answer.set_exception(InputEnded())

    def _forget_what_was_typed(self) -> None:
        self._typed = b""
        if sys.stdin.isatty():
            with contextlib.suppress(termios.error):
                termios.tcflush(sys.stdin.fileno(), termios.TCIFLUSH)

    async def _tick(self) -> None:
        while True:
            await asyncio.sleep(TICK_SECONDS)
            quiet = time.monotonic() - self._said
            if self._shown is None and quiet >= QUIET_SECONDS:
                room = shutil.get_terminal_size().columns - 1
                click.echo(CLEAR_LINE + f"    {quiet:4.0f} s … {self._doing}"[:room], nl=False)
                self._ticking = True

    def _end_tick(self) -> None:
        if self._ticking:
            click.echo(CLEAR_LINE, nl=False)
            self._ticking = False


def boxed(title: str, lines: tuple[str, ...]) -> str:
    """A device's screen, no wider than the terminal."""
    room = max(shutil.get_terminal_size().columns - 4, 20)
    wrapped = [part for line in lines for part in textwrap.wrap(line, room) or [""]]
    width = min(max(len(line) for line in (title, *wrapped)), room) + 1
    rows = [f"┌─{title:─<{width}}┐", *(f"│ {line:<{width}}│" for line in wrapped), f"└{'─' * (width + 1)}┘"]
    return "\n" + "\n".join(rows)
