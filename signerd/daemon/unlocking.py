"""How often an app may ask a device; unlocking a device, and its questions.

A question stays open in memory for a while, is answered once, and never stored or
logged (L7, L10): the answer passes through a future to its one reader.
"""

import asyncio
import contextlib
import math
from collections import defaultdict, deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from custody.common.text import plain, said
from firmware_bridge import Ask, Device, Progress, Question
from signerd.callers import LoopbackCaller
from signerd.daemon.devices import Devices, name_of
from signerd.daemon.views import device_view
from signerd.errors import DeviceFailed, NoSuchQuestion, NothingUnlocked, SignerdError, TooManyPrompts
from signerd.feed import Feed
from signerd.runtime import DaemonDependencies
from signerd.shapes import QuestionView, UnlockStep

# Comparing an address takes a person ten seconds or more.
MOST_A_MINUTE = 6
_WINDOW_SECONDS = 60.0


@dataclass
class Prompts:
    """Limits the prompts of each app. Used by one event loop."""

    clock: Callable[[], float]
    most: int = MOST_A_MINUTE
    _open: set[str] = field(default_factory=set)
    _taken: defaultdict[str, deque[float]] = field(default_factory=lambda: defaultdict(deque))

    @contextlib.contextmanager
    def turn(self, caller: LoopbackCaller) -> Iterator[None]:
        """A context for a call that asks a device for this caller. Raises TooManyPrompts: the device was not
        asked.
        """
        if caller.app_id is None:
            yield
            return
        if caller.app_id in self._open:
            raise TooManyPrompts("a device is asked for this app already")
        taken, now = self._taken[caller.app_id], self.clock()
        while taken and now - taken[0] >= _WINDOW_SECONDS:
            taken.popleft()
        if len(taken) >= self.most:
            raise TooManyPrompts(f"an app may ask devices {self.most} times a minute")
        taken.append(now)
        self._open.add(caller.app_id)
        try:
            yield
        finally:
            self._open.discard(caller.app_id)


def asked_by(caller: LoopbackCaller) -> str:
    """A suffix that names the app; empty for the person."""
    return "" if caller.app_id is None else f", asked by {caller.shown}"


# Answering takes a minute. After this time the device is free for other requests.
QUESTION_SECONDS = 180.0
# 128 bits: not guessable (L7).
ID_BYTES = 16


@dataclass(frozen=True, eq=False)
class OpenQuestion:
    """``text``: the device's message before the question. ``until``: on the clock of ``Unlocking``."""

    id: str
    kind: Question
    text: str
    until: float
    given: asyncio.Future[str | None] = field(repr=False)


# A request is answered within this time, below every client's timeout; longer steps are polled.
STEP_SECONDS = 20.0
ASKS = {
    Question.PIN: "asks for its PIN",
    Question.PASSPHRASE: "asks for its passphrase",
    Question.PAIRING: "asks whether its code is the same",
}
UNANSWERED = "the device's question was not answered in time"
TRY_AGAIN = "Start again when the device is before you. Nothing was entered."


@dataclass(eq=False)
class _Run:
    """One unlocking. ``text``: the device's last message. ``question``: the one that is not answered.
    ``outcome``: set at the end.
    """

    device: Device
    text: str = ""
    question: OpenQuestion | None = None
    unanswered: bool = False
    outcome: Device | SignerdError | None = None
    news: asyncio.Event = field(default_factory=asyncio.Event)
    task: asyncio.Task[None] | None = None


@dataclass(repr=False)
class Unlocking:
    """Unlocking devices step by step. Used by one event loop; ``close`` ends what runs.

    Each call returns the next step within ``STEP_SECONDS``: a question, that the device is at work, or that
    it is unlocked. A failure is raised as DeviceFailed.
    """

    devices: Devices
    feed: Feed
    outside: DaemonDependencies
    question_seconds: float = QUESTION_SECONDS
    step_seconds: float = STEP_SECONDS
    # The last run of each device.
    _runs: dict[str, _Run] = field(default_factory=dict)
    _cancels: set[asyncio.Task[None]] = field(default_factory=set)

    async def start(self, device_id: str) -> UnlockStep:
        """Begin, or join what has begun. Raises NoSuchDevice, DeviceFailed."""
        device = await self.devices.named(device_id)
        run = self._runs.get(device_id)
        if run is None or run.outcome is not None:
            run = _Run(device)
            self._runs[device_id] = run
            run.task = asyncio.create_task(self._unlock(run))
        return await self._next(run)

    async def step(self, device_id: str) -> UnlockStep:
        """The next step, or the outcome. Raises NothingUnlocked, DeviceFailed."""
        run = self._runs.get(device_id)
        if run is None:
            raise NothingUnlocked(f"no unlocking was begun for '{device_id}'")
        return await self._next(run)

    async def current(self, device_id: str) -> UnlockStep | None:
        """The current step, without waiting; None where there is no run. Raises DeviceFailed where the last
        one failed.
        """
        run = self._runs.get(device_id)
        return None if run is None else self._now(run)

    async def questions(self) -> tuple[QuestionView, ...]:
        return tuple(self._view(run, run.question) for run in self._runs.values() if run.question is not None)

    async def answer(self, question_id: str, answer: str | None) -> UnlockStep:
        """Answer a question once; None: on the device, or no. Raises NoSuchQuestion, DeviceFailed."""
        for run in self._runs.values():
            question = run.question
            if question is not None and question.id == question_id and not question.given.done():
                run.question = None
                question.given.set_result(answer)
                del answer
                return await self._next(run)
        raise NoSuchQuestion("this question is not open")

    async def close(self) -> None:
        """Cancel all runs."""
        tasks = [run.task for run in self._runs.values() if run.task is not None]
        tasks += self._cancels
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    # --- one unlocking --------------------------------------------------------------------------------------

    async def _unlock(self, run: _Run) -> None:
        device = run.device
        try:
            run.outcome = await self.devices.unlock(device.id, self._asker(run), self._teller(run))
            self.feed.add(device.id, "info", f"{name_of(device)} is unlocked.")
        except SignerdError as error:
            run.outcome = DeviceFailed(UNANSWERED, hint=TRY_AGAIN) if run.unanswered else error
            self.feed.add(device.id, "attention", f"{name_of(device)} was not unlocked: {said(run.outcome)}")
        finally:
            run.news.set()

    def _asker(self, run: _Run) -> Ask:
        async def ask(kind: Question) -> str | None:
            given: asyncio.Future[str | None] = asyncio.get_running_loop().create_future()
            until = self.outside.clock() + self.question_seconds
            run.question = OpenQuestion(self.outside.entropy(ID_BYTES).hex(), kind, run.text, until, given)
            self.feed.add(run.device.id, "question", f"{name_of(run.device)} {ASKS[kind]}.")
            run.news.set()
            try:
                async with asyncio.timeout(self.question_seconds):
                    return await given
            except TimeoutError:
                run.unanswered, run.question = True, None
                # Cancelling the operation cancels this coroutine: the task must survive it.
                task = asyncio.create_task(self.devices.bridge.cancel(run.device.id))
                self._cancels.add(task)
                task.add_done_callback(self._cancels.discard)
                await asyncio.shield(task)
                return None
            finally:
                run.question = None

        return ask

    def _teller(self, run: _Run) -> Callable[[Progress], None]:
        def tell(progress: Progress) -> None:
            run.text = plain(progress.text)
            self.feed.add(run.device.id, "progress", run.text)

        return tell

    # --- what is answered -----------------------------------------------------------------------------------

    async def _next(self, run: _Run) -> UnlockStep:
        """The next step or the outcome, or after a while that the device is at work. Raises the failure."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(self.step_seconds):
                while run.outcome is None and run.question is None:
                    run.news.clear()
                    await run.news.wait()
        return self._now(run)

    def _now(self, run: _Run) -> UnlockStep:
        device_id = run.device.id
        if isinstance(run.outcome, Device):
            return UnlockStep(device_id=device_id, state="unlocked", device=device_view(run.outcome))
        if run.outcome is not None:
            # A new exception for each caller: each adds its own traceback.
            raise type(run.outcome)(str(run.outcome), hint=run.outcome.hint)
        if run.question is None:
            return UnlockStep(device_id=device_id, state="works", text=run.text)
        return UnlockStep(
            device_id=device_id, state="asks", text=run.text, question=self._view(run, run.question)
        )

    def _view(self, run: _Run, question: OpenQuestion) -> QuestionView:
        return QuestionView(
            id=question.id,
            device_id=run.device.id,
            device=name_of(run.device),
            kind=str(question.kind),
            text=question.text,
            seconds_left=math.ceil(max(0.0, question.until - self.outside.clock())),
        )
