"""The operations on one device: one worker process, one operation at a time, and a deadline for each.

A worker that misses its deadline is asked to stop (a Trezor is sent Cancel) and killed after a short grace
period. The next operation starts a new worker and tells it to clean up. Every deadline on this side of the
pipe is an `asyncio.timeout`.
"""

import asyncio
import contextlib
import logging
import socket
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any, Final

from firmware_bridge import protocol, worker
from firmware_bridge.errors import (
    BridgeError,
    Busy,
    Cancelled,
    DeviceFault,
    TimedOut,
    WorkerCrashed,
    from_worker,
)
from firmware_bridge.faults import clean_detail
from firmware_bridge.model import Deadlines, Endpoint, waits_for_person
from firmware_bridge.protocol import Question
from firmware_bridge.worker import START_METHOD, Process, Spawner, WorkerProcess, spawn
from multisig import Network

OnNote = Callable[[protocol.ProgressNote], None]
# Answers a device's question, or returns None.
OnAsk = Callable[[Question], Awaitable[str | None]]
_log = logging.getLogger(__name__)

# More than any transaction needs: a worker that sends more is faulty.
_MAX_NOTES: Final = 100_000
_MAX_QUESTIONS: Final = 20
# Raised when the worker has gone, or sends something that is not a message.
_CRASHES: Final = (asyncio.IncompleteReadError, ConnectionError, protocol.ProtocolError)


class Patience:
    """The time left for one call: the device has its seconds to work, the person theirs to answer.

    Only one side's seconds run at a time; the step that the worker reported last decides which. No step adds
    any, so that no worker can take longer than both together. Without `person` all time is the device's.
    """

    def __init__(self, work: float, person: float | None, now: float) -> None:
        self._left = {False: work, True: 0.0 if person is None else person}
        self._asks = person is not None
        self._at_person = False
        self._since = now

    @property
    def ends(self) -> float:
        """When the side whose seconds run has used them up, on the clock of `now`."""
        return self._since + self._left[self._at_person]

    def step(self, step: str, now: float) -> None:
        """The worker has reported this step."""
        self._left[self._at_person] -= now - self._since
        self._since = now
        self._at_person = self._asks and waits_for_person(step)


@dataclass
class _Call:
    """One running operation and its callbacks."""

    op: str
    args: object = field(repr=False)
    deadline: float
    person: float | None
    on_note: OnNote | None
    on_ask: OnAsk | None
    notes: int = 0
    questions: int = 0

    def may_tell(self) -> bool:
        self.notes += 1
        return self.notes <= _MAX_NOTES

    def may_ask(self) -> bool:
        self.questions += 1
        return self.questions <= _MAX_QUESTIONS


class Lane:
    """Operations on one device, one after the other. Hold `lock` around calls that belong together."""

    def __init__(
        self, endpoint: Endpoint, network: Network, *, deadlines: Deadlines, spawner: Spawner = spawn
    ) -> None:
        self.lock = asyncio.Lock()
        self._endpoint = endpoint
        self._network = network
        self._deadlines = deadlines
        self._spawner = spawner
        self._worker: WorkerProcess | None = None
        self._sent = 0
        self._calling: asyncio.Event | None = None
        self._stopped_by: BridgeError | None = None
        self._probing = False
        self._left_open = False
        self._silent = False
        self._idle: asyncio.TimerHandle | None = None
        # What `unlock` returned: it tells the device that the passphrase has been given.
        self.session: str | None = None

    @property
    def worker_pid(self) -> int | None:
        """The process that has the device open."""
        return None if self._worker is None else self._worker.process.pid

    @property
    def confined(self) -> tuple[int, bool] | None:
        """What confines the worker: the ABI of Landlock (0: none), and whether its system calls are filtered.
        None without a worker.
        """
        hello = None if self._worker is None else self._worker.hello
        return None if hello is None else (hello.landlock, hello.seccomp)

    async def call(
        self,
        op: str,
        args: object = None,
        *,
        deadline: float,
        person: float | None = None,
        on_note: OnNote | None = None,
        on_ask: OnAsk | None = None,
        probing: bool = False,
    ) -> Any:
        """The worker's answer (see `firmware_bridge.operations`), within `deadline` seconds and the grace
        period. Starting a worker does not count.

        `person`: while the device waits for the person (`waits_for_person`), these seconds count instead of
        `deadline`.

        What a killed worker left open on the device is cleaned up first. A device that did not answer a probe
        (`probing`) may be answering another program: an operation that a person wants interrupts that,
        another probe does not.

        :raises BridgeError: the operation did not succeed.
        """
        if self._calling is not None:
            raise Busy("Another operation of this program is running on the device.")
        call = _Call(op, args or {}, deadline, person, on_note, on_ask)
        self._calling, self._stopped_by = asyncio.Event(), None
        self._probing = probing
        self._cancel_idle_timer()
        try:
            reused = self._worker
            try:
                return await self._attempt(call)
            except WorkerCrashed:
                # The idle worker may have died unnoticed.
                if reused is None or op not in worker.REPEATABLE or self._stopped_by is not None:
                    raise
                return await self._attempt(call)
        finally:
            self._calling.set()
            self._calling = None
            self._start_idle_timer()

    async def cancel(self) -> None:
        """Cancel the running operation, if any; its caller gets `Cancelled`, or the answer if that was
        quicker.
        """
        await self._stop(Cancelled())

    def abort(self, outcome: BridgeError) -> None:
        """The device has gone: end the running operation at once, with this outcome."""
        if self._calling is not None:
            self._stopped_by = outcome
        self._discard()

    def release(self) -> None:
        """Close the device. A running call ends as if its worker had crashed."""
        self._cancel_idle_timer()
        if self._calling is not None:
            self._discard()
        elif self._worker is not None:
            driver, self._worker = self._worker, None
            driver.end()

    async def _attempt(self, call: _Call) -> Any:
        driver = await self._ensure_worker()
        if self._stopped_by is not None:
            raise self._stopped_by
        return await self._exchange(driver, self._next_request(call), call)

    def _next_request(self, call: _Call) -> protocol.WorkerCall:
        self._sent += 1
        recover = self._left_open or (self._silent and not self._probing)
        if recover:
            self._left_open = self._silent = False
        return protocol.WorkerCall(self._sent, call.op, call.args, recover=recover, session=self.session)

    async def _exchange(self, driver: WorkerProcess, request: protocol.WorkerCall, call: _Call) -> Any:
        clock = asyncio.get_running_loop().time
        patience = Patience(call.deadline, call.person, clock())
        try:
            async with asyncio.timeout_at(patience.ends) as timer:

                def on_step(step: str) -> None:
                    patience.step(step, clock())
                    timer.reschedule(patience.ends)

                await driver.send(request)
                return await self._answer(driver, request.id, call, on_step)
        except TimeoutError:
            return await self._give_up(driver, request.id, call)
        except _CRASHES as crash:
            self._discard()
            raise self._stopped_by or WorkerCrashed(detail=type(crash).__name__) from crash
        except asyncio.CancelledError:
            # The caller has gone. The device may show a question, so ask the worker to cancel it.
            if call.person is not None:
                with contextlib.suppress(BridgeError):
                    await self._give_up(driver, request.id, call)
            else:
                self._discard()
            raise

    async def _answer(
        self, driver: WorkerProcess, request_id: int, call: _Call, on_step: Callable[[str], None]
    ) -> Any:
        asking: asyncio.Task[None] | None = None
        try:
            while True:
                message = await driver.receive()
                match message:
                    case protocol.ProgressNote(id=number, step=step) if (
                        number == request_id and call.may_tell()
                    ):
                        on_step(step)
                        if call.on_note is not None:
                            call.on_note(message)
                    case protocol.Ask(id=number) if number == request_id and call.may_ask():
                        if asking is not None:
                            # The worker asks the next question: it waits for no answer to the last one.
                            asking.cancel()
                        # In a task: the death of a worker, or a cancel, must not wait for a person's answer.
                        asking = asyncio.create_task(_ask(driver, message, call.on_ask))
                    case protocol.OperationDone(id=number, value=value) if number == request_id:
                        return value
                    case protocol.OperationFailed(id=number) if number == request_id:
                        raise self._outcome(message)
                    case _:
                        raise protocol.ProtocolError(f"an unexpected {type(message).__name__}")
        finally:
            if asking is not None:
                asking.cancel()

    def _outcome(self, failed: protocol.OperationFailed) -> BridgeError:
        return self._stopped_by or from_worker(failed.code, failed.detail and clean_detail(failed.detail))

    async def _give_up(self, driver: WorkerProcess, request_id: int, call: _Call) -> Any:
        """After the deadline: ask the worker to stop, wait for the grace period, kill it. A late answer still
        counts.
        """
        self._stopped_by = self._stopped_by or TimedOut()
        try:
            async with asyncio.timeout(self._deadlines.grace):
                await driver.send(protocol.WorkerCall(request_id, protocol.CANCEL))
                return await self._answer(driver, request_id, call, lambda _step: None)
        except (TimeoutError, *_CRASHES):
            self._discard()
            raise self._stopped_by from None
        except asyncio.CancelledError:
            self._discard()
            raise

    async def _stop(self, outcome: BridgeError) -> None:
        calling, driver = self._calling, self._worker
        if calling is None:
            return
        self._stopped_by = outcome
        try:
            async with asyncio.timeout(self._deadlines.grace):
                if driver is not None:
                    with contextlib.suppress(ConnectionError):
                        # The worker may have closed the channel.
                        await driver.send(protocol.WorkerCall(self._sent, protocol.CANCEL))
                await calling.wait()
        except TimeoutError:
            self._discard()
            await calling.wait()

    def _discard(self) -> None:
        driver, self._worker = self._worker, None
        if driver is not None:
            self._silent = self._silent or self._probing
            self._left_open = self._left_open or not self._probing
            driver.kill()

    async def _ensure_worker(self) -> WorkerProcess:
        if self._worker is not None and not self._worker.usable():
            self._discard()
        if self._worker is None:
            self._worker = await self._start()
        return self._worker

    async def _start(self) -> WorkerProcess:
        try:
            async with asyncio.timeout(self._deadlines.start):
                return await self._greet(await self._open())
        except BridgeError:
            raise
        except Exception as error:
            # multiprocessing fails in many ways: a fork server that was killed, no memory, a daemonic parent.
            raise WorkerCrashed("The helper process that talks to devices does not start.") from error

    async def _open(self) -> WorkerProcess:
        spawning = asyncio.get_running_loop().run_in_executor(None, self._spawn)
        try:
            process, ours = await asyncio.shield(spawning)
        except asyncio.CancelledError:
            # The thread cannot be stopped. End the process that it starts.
            spawning.add_done_callback(_abandon)
            raise
        reader, writer = await asyncio.open_connection(sock=ours, limit=protocol.MAX_FRAME)
        return WorkerProcess(process, reader, writer)

    def _spawn(self) -> tuple[Process, socket.socket]:
        ours, theirs = socket.socketpair()
        try:
            with theirs:
                return self._spawner(theirs, str(self._endpoint), self._network.value), ours
        except BaseException:
            ours.close()
            raise

    async def _greet(self, driver: WorkerProcess) -> WorkerProcess:
        try:
            hello = await driver.receive()
        except BaseException:
            driver.kill()
            raise
        if not isinstance(hello, protocol.Hello):
            driver.kill()
            raise DeviceFault("the helper process did not say hello")
        driver.hello = hello
        _log.debug("worker %d: Landlock %d, seccomp %s", hello.pid, hello.landlock, hello.seccomp)
        if START_METHOD == "forkserver" and not hello.preloaded:
            _log.warning("HWI was not preloaded by the fork server: every worker imports it")
        return driver

    def _start_idle_timer(self) -> None:
        if self._worker is None:
            return
        self._idle = asyncio.get_running_loop().call_later(self._deadlines.idle, self.release)

    def _cancel_idle_timer(self) -> None:
        if self._idle is not None:
            self._idle.cancel()
            self._idle = None


def _abandon(spawning: asyncio.Future[tuple[Process, socket.socket]]) -> None:
    if spawning.cancelled() or spawning.exception() is not None:
        return
    process, ours = spawning.result()
    process.kill()
    ours.close()


async def _ask(driver: WorkerProcess, question: protocol.Ask, on_ask: OnAsk | None) -> None:
    answer = None
    try:
        given = None if on_ask is None else await on_ask(Question(question.question))
        if given is not None and not isinstance(given, str):
            # The value is not shown: it may be a secret.
            raise TypeError(f"an answer is a text, not {type(given).__name__}")  # noqa: TRY301 - counts as no answer
        answer = given
    except Exception:  # noqa: BLE001 - a bug of the caller's code counts as no answer
        _log.exception("the callback that answers a question of the device failed")
    # The worker may have died meanwhile.
    with contextlib.suppress(ConnectionError):
        await driver.send(protocol.AskReply(question.number, answer))
