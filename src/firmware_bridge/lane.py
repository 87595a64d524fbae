"""One device's road: at most one worker process on it, one operation at a time, and an end to every wait.

A worker that misses its deadline is asked to give up (a Trezor is told Cancel) and killed after a short grace. The next
operation starts a new one, which knows that it has to clear up.
"""

import asyncio
import contextlib
import logging
import multiprocessing
import socket
import sys
import threading
import types
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from multiprocessing.process import BaseProcess
from typing import Any, Final, Protocol

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
from firmware_bridge.model import Deadlines, Endpoint
from multisig import Network

# A process that starts takes HWI from the fork server's memory instead of importing it: 10 ms instead of 100. Where
# forking is not safe (macOS) or not there (Windows), each worker imports it for itself.
START_METHOD: Final = "forkserver" if sys.platform == "linux" else "spawn"
_starting = threading.Lock()
_log = logging.getLogger(__name__)

OnNote = Callable[[str, str], None]
Entry = Callable[[socket.socket, str, str], None]


class Process(Protocol):
    """What a lane needs of a child process."""

    @property
    def pid(self) -> int | None: ...

    def is_alive(self) -> bool: ...

    def kill(self) -> None: ...


# (the child's end of the channel, endpoint, network) -> the running process
Spawner = Callable[[socket.socket, str, str], Process]


def spawn(channel: socket.socket, endpoint: str, network: str, *, entry: Entry = worker.main) -> BaseProcess:
    """Start a worker. Blocks while the fork server starts, once in the life of the program."""
    context: Any = multiprocessing.get_context(START_METHOD)
    if START_METHOD == "forkserver":
        context.set_forkserver_preload([worker.PRELOAD])
    process: BaseProcess = context.Process(
        target=entry, args=(channel, endpoint, network), daemon=True, name="device-worker"
    )
    with _starting, _without_main_module():
        process.start()
    return process


@contextlib.contextmanager
def _without_main_module() -> Iterator[None]:
    """Keep multiprocessing from importing the caller's main program into every child, with its side effects."""
    main = sys.modules["__main__"]
    sys.modules["__main__"] = types.ModuleType("__main__")
    try:
        yield
    finally:
        sys.modules["__main__"] = main


@dataclass
class _Worker:
    process: Process
    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter
    preloaded: bool

    async def send(self, request: protocol.Request) -> None:
        self.writer.write(protocol.encode(request))
        await self.writer.drain()

    async def receive(self) -> protocol.Message:
        header = await self.reader.readexactly(protocol.HEADER_SIZE)
        return protocol.decode(await self.reader.readexactly(protocol.body_size(header)))

    def usable(self) -> bool:
        return self.process.is_alive() and not self.reader.at_eof()

    def end(self) -> None:
        """The worker closes its device and leaves by itself when the channel closes."""
        self.writer.close()

    def kill(self) -> None:
        self.process.kill()
        self.writer.close()


# What breaks when the other end of the channel is gone, or is no worker of ours.
_CRASHES: Final = (asyncio.IncompleteReadError, ConnectionError, protocol.ProtocolError)


class Lane:
    """Operations on one device, one after the other. Whoever makes several calls that belong together holds `lock`."""

    def __init__(
        self, endpoint: Endpoint, network: Network, *, deadlines: Deadlines, spawner: Spawner = spawn
    ) -> None:
        self.lock = asyncio.Lock()
        self._endpoint = endpoint
        self._network = network
        self._deadlines = deadlines
        self._spawner = spawner
        self._worker: _Worker | None = None
        self._sent = 0
        self._calling: asyncio.Event | None = None
        self._stopped_by: BridgeError | None = None
        self._probing = False
        self._left_open = False
        self._silent = False
        self._idle: asyncio.TimerHandle | None = None

    @property
    def worker_pid(self) -> int | None:
        """The process that has the device open, if any."""
        return None if self._worker is None else self._worker.process.pid

    @property
    def preloaded(self) -> bool | None:
        """Whether the worker found HWI in the fork server's memory. None without a worker."""
        return None if self._worker is None else self._worker.preloaded

    async def call(
        self,
        op: str,
        args: Mapping[str, Any] | None = None,
        *,
        deadline: float,
        on_note: OnNote | None = None,
        probing: bool = False,
    ) -> Any:
        """The worker's answer, within `deadline` seconds (and the grace). Starting a worker does not count.

        What an operation of ours left open on the device is cleared up first. A silent device that was only `probing` may be
        answering somebody else: that is ended by an operation a person wants, and by no other probe.

        :raises BridgeError: the outcome, if it is not an answer.
        """
        if self._calling is not None:
            raise Busy("Another operation of this program is running on the device.")
        self._calling, self._stopped_by = asyncio.Event(), None
        self._probing = probing
        self._cancel_idle_timer()
        try:
            reused = self._worker
            try:
                return await self._attempt(op, args or {}, deadline, on_note or _ignore)
            except WorkerCrashed:
                # It may have died long ago, unused, without a sign of it until now.
                if reused is None or op not in worker.REPEATABLE or self._stopped_by is not None:
                    raise
                return await self._attempt(op, args or {}, deadline, on_note or _ignore)
        finally:
            self._calling.set()
            self._calling = None
            self._start_idle_timer()

    async def cancel(self) -> None:
        """Give up what runs now; its caller gets `Cancelled`, or the answer if that was quicker. Nothing running: nothing done."""
        await self._stop(Cancelled())

    def abort(self, outcome: BridgeError) -> None:
        """The device is known to be gone: end what runs on it, at once, with this outcome."""
        if self._calling is not None:
            self._stopped_by = outcome
        self._discard()

    def release(self) -> None:
        """Let the device go. A running call ends as if its worker had crashed."""
        self._cancel_idle_timer()
        if self._calling is not None:
            self._discard()
        elif self._worker is not None:
            driver, self._worker = self._worker, None
            driver.end()

    async def _attempt(self, op: str, args: Mapping[str, Any], deadline: float, on_note: OnNote) -> Any:
        driver = await self._ensure_worker()
        if self._stopped_by is not None:
            raise self._stopped_by
        return await self._exchange(driver, self._next_request(op, args), deadline, on_note)

    def _next_request(self, op: str, args: Mapping[str, Any]) -> protocol.Request:
        self._sent += 1
        recover = self._left_open or (self._silent and not self._probing)
        if recover:
            self._left_open = self._silent = False
        return protocol.Request(self._sent, op, args, recover=recover)

    async def _exchange(
        self, driver: _Worker, request: protocol.Request, deadline: float, on_note: OnNote
    ) -> Any:
        try:
            async with asyncio.timeout(deadline):
                await driver.send(request)
                return await self._answer(driver, request.id, on_note)
        except TimeoutError:
            return await self._give_up(driver, request.id, on_note)
        except _CRASHES as crash:
            self._discard()
            raise self._stopped_by or WorkerCrashed(detail=type(crash).__name__) from crash
        except asyncio.CancelledError:
            # The caller is no longer there to take an answer.
            self._discard()
            raise

    async def _answer(self, driver: _Worker, request_id: int, on_note: OnNote) -> Any:
        while True:
            message = await driver.receive()
            match message:
                case protocol.Note(id=number, step=step, text=text) if number == request_id:
                    on_note(step, text)
                case protocol.Done(id=number, value=value) if number == request_id:
                    return value
                case protocol.Failed(id=number, code=code, detail=detail) if number == request_id:
                    raise self._stopped_by or from_worker(code, detail)
                case _:
                    raise protocol.ProtocolError(f"an answer to another request: {type(message).__name__}")

    async def _give_up(self, driver: _Worker, request_id: int, on_note: OnNote) -> Any:
        """After the deadline: ask to stop, wait for the grace, kill. An answer that comes after all is an answer."""
        self._stopped_by = self._stopped_by or TimedOut()
        try:
            async with asyncio.timeout(self._deadlines.grace):
                await driver.send(protocol.Request(request_id, protocol.CANCEL))
                return await self._answer(driver, request_id, on_note)
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
        if driver is not None:
            with contextlib.suppress(ConnectionError):
                await driver.send(protocol.Request(self._sent, protocol.CANCEL))
        try:
            async with asyncio.timeout(self._deadlines.grace):
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

    async def _ensure_worker(self) -> _Worker:
        if self._worker is not None and not self._worker.usable():
            self._discard()
        if self._worker is None:
            self._worker = await self._start()
        return self._worker

    async def _start(self) -> _Worker:
        ours, theirs = socket.socketpair()
        with ours, theirs:
            process = await asyncio.to_thread(self._spawner, theirs, str(self._endpoint), self._network.value)
            reader, writer = await asyncio.open_connection(sock=ours.dup(), limit=protocol.MAX_FRAME)
        driver = _Worker(process, reader, writer, preloaded=False)
        try:
            async with asyncio.timeout(self._deadlines.start):
                hello = await driver.receive()
        except (TimeoutError, *_CRASHES) as error:
            driver.kill()
            raise WorkerCrashed("The helper process that talks to devices does not start.") from error
        except asyncio.CancelledError:
            driver.kill()
            raise
        if not isinstance(hello, protocol.Hello):
            driver.kill()
            raise DeviceFault("the helper process did not say hello")
        driver.preloaded = hello.preloaded
        if START_METHOD == "forkserver" and not hello.preloaded:
            _log.warning("HWI was not preloaded by the fork server: every worker imports it for itself")
        return driver

    def _start_idle_timer(self) -> None:
        if self._worker is not None:
            self._idle = asyncio.get_running_loop().call_later(self._deadlines.idle, self.release)

    def _cancel_idle_timer(self) -> None:
        if self._idle is not None:
            self._idle.cancel()
            self._idle = None


def _ignore(_step: str, _text: str) -> None:
    """Nobody wants to know."""
