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
import time
from collections.abc import AsyncIterator, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

import click

# Show a progress line after this long without output.
QUIET_SECONDS: Final = 2.0
TICK_SECONDS: Final = 1.0
CLEAR_LINE: Final = "\r\033[K"
MAX_LINE: Final = 4_096


class InputEnded(Exception):
    """The terminal's input has ended, so no question can be answered."""


@dataclass
class Terminal:
    """Use it within ``open``. Not thread-safe: for one event loop."""

    started: float = field(default_factory=time.monotonic)
    _said: float = field(default_factory=time.monotonic)
    _doing: str = ""
    _ticking: bool = False
    # The open question, and what will have its answer.
    _question: str = ""
    _answer: asyncio.Future[str] | None = None
    _typed: bytes = b""
    _ended: asyncio.Event = field(default_factory=asyncio.Event)

    @contextlib.asynccontextmanager
    async def open(self) -> AsyncIterator[None]:
        """Read the keyboard and show a ticking progress line during quiet spells, while the body runs."""
        ticking = asyncio.create_task(self._tick()) if sys.stdout.isatty() else None
        try:
            with self._listening():
                yield
        finally:
            if ticking is not None:
                ticking.cancel()
                await asyncio.gather(ticking, return_exceptions=True)
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
        if self._answer is not None:
            # Its line is left, and it is asked again below.
            click.echo()
        click.echo(text)
        if self._answer is not None:
            click.echo(f"{self._question} ", nl=False)
        self._said = time.monotonic()

    async def ended(self) -> None:
        """Wait until the terminal's input has ended."""
        await self._ended.wait()

    async def choose(self, question: str, answers: Mapping[str, str]) -> str:
        """One of ``answers``' values, for its key as typed; an empty key is what Enter alone means. One
        question is open at a time. Raises InputEnded.
        """
        while True:
            typed = await self._typed_after(question)
            if (answer := answers.get(typed.strip().lower())) is not None:
                return answer
            self.say(f"Answer with {' or '.join(key for key in answers if key)}.")

    async def _typed_after(self, question: str) -> str:
        if self._ended.is_set():
            raise InputEnded
        self._forget_what_was_typed()
        self._end_tick()
        click.echo(f"{question} ", nl=False)
        self._question, self._answer = question, asyncio.get_running_loop().create_future()
        try:
            return await self._answer
        except asyncio.CancelledError:
            # It was answered elsewhere: its line ends here.
            click.echo()
            raise
        finally:
            self._answer, self._said = None, time.monotonic()

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
            if self._answer is not None and not self._answer.done():
                self._answer.set_result(line.decode(errors="replace"))

    def _end(self) -> None:
        self._ended.set()
        if self._answer is not None and not self._answer.done():
            self._answer.set_exception(InputEnded())

    def _forget_what_was_typed(self) -> None:
        self._typed = b""
        if sys.stdin.isatty():
            with contextlib.suppress(termios.error):
                termios.tcflush(sys.stdin.fileno(), termios.TCIFLUSH)

    async def _tick(self) -> None:
        while True:
            await asyncio.sleep(TICK_SECONDS)
            quiet = time.monotonic() - self._said
            if self._answer is None and quiet >= QUIET_SECONDS:
                room = shutil.get_terminal_size().columns - 1
                click.echo(CLEAR_LINE + f"    {quiet:4.0f} s … {self._doing}"[:room], nl=False)
                self._ticking = True

    def _end_tick(self) -> None:
        if self._ticking:
            click.echo(CLEAR_LINE, nl=False)
            self._ticking = False
