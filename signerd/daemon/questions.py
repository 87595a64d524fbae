"""What devices ask of the person: open in memory for a while, answered once, and never written down (L7, L10).

An answer passes through a future that is forgotten as soon as its one reader has it. Nothing here logs, and nothing that
has an answer in it has a ``repr`` that shows it.
"""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field

from firmware_bridge import Question
from signerd.errors import NoSuchQuestion

# A person finds the device, reads its matrix and types: a minute. Longer than this, nobody is there, and the device is
# given back to whoever needs it.
QUESTION_SECONDS = 180.0
# 128 bits: nobody guesses one (L7).
ID_BYTES = 16


class Unanswered(Exception):
    """Nobody answered within the question's time. Never told as it is: the unlocking says what became of it."""


@dataclass(frozen=True, eq=False)
class OpenQuestion:
    """``text``: what the device told before it asked. ``until``: on the clock of ``Questions``."""

    id: str
    device_id: str
    kind: Question
    text: str
    until: float
    given: asyncio.Future[str | None] = field(repr=False)


class Questions:
    """One loop uses it. One question for each device: a device that asks the next one has given the last one up."""

    def __init__(
        self,
        clock: Callable[[], float],
        entropy: Callable[[int], bytes],
        seconds: float = QUESTION_SECONDS,
    ) -> None:
        self._clock = clock
        self._entropy = entropy
        self._seconds = seconds
        self._open: dict[str, OpenQuestion] = {}

    def all(self) -> tuple[OpenQuestion, ...]:
        return tuple(self._open.values())

    def of(self, device_id: str) -> OpenQuestion | None:
        return next((asked for asked in self._open.values() if asked.device_id == device_id), None)

    def seconds_left(self, asked: OpenQuestion) -> float:
        return max(0.0, asked.until - self._clock())

    def open(self, device_id: str, kind: Question, text: str) -> OpenQuestion:
        earlier = self.of(device_id)
        if earlier is not None:
            self._close(earlier)
        given: asyncio.Future[str | None] = asyncio.get_running_loop().create_future()
        asked = OpenQuestion(
            self._entropy(ID_BYTES).hex(), device_id, kind, text, self._clock() + self._seconds, given
        )
        self._open[asked.id] = asked
        return asked

    async def wait(self, asked: OpenQuestion) -> str | None:
        """The person's answer; None where the device is to do without. Raises Unanswered when the time is up."""
        try:
            async with asyncio.timeout(self._seconds):
                return await asked.given
        except TimeoutError:
            raise Unanswered from None
        finally:
            self._close(asked)

    def answer(self, question_id: str, answer: str | None) -> OpenQuestion:
        """Hand it to the one who waits. Raises NoSuchQuestion: it was answered before, or its time is up."""
        asked = self._open.pop(question_id, None)
        if asked is None or asked.given.done():
            raise NoSuchQuestion("this question is not open")
        asked.given.set_result(answer)
        return asked

    def _close(self, asked: OpenQuestion) -> None:
        self._open.pop(asked.id, None)
        if not asked.given.done():
            asked.given.cancel()
