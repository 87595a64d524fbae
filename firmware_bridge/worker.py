"""The process that drives one device, and how it is started. It may hang, crash or be killed: to the caller
that is one more outcome.

In the process, the main thread talks to the device, one request after the other. A second thread reads the
pipe, so that a cancel reaches the device while the main thread waits, and so that the process ends when the
bridge has gone, whatever HWI is doing.
"""

import asyncio
import contextlib
import functools
import multiprocessing
import os
import queue
import signal
import socket
import sys
import threading
import types
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from multiprocessing.process import BaseProcess
from typing import Any, Final, Protocol

from firmware_bridge import protocol
from firmware_bridge.errors import BridgeError, Cancelled, DeviceFault
from firmware_bridge.faults import clean_detail
from firmware_bridge.model import Endpoint
from firmware_bridge.protocol import DeviceClient, DriverHost, Opener, Question
from multisig import Network

# What the fork server imports in advance; `Hello.preloaded` says whether it did.
PRELOAD: Final = "firmware_bridge.hwi_client"
# After HWI: it notes which descriptors HWI's libraries opened.
_PRELOAD_LAST: Final = "firmware_bridge.confinement"
# The time to close the device after the bridge has gone, before the process exits.
_CLOSE_SECONDS: Final = 1.0

# Operations that may be repeated: they ask the person nothing.
REPEATABLE: Final = frozenset({"probe", "fingerprint", "xpubs"})


def main(channel: socket.socket, endpoint: str, network: str, *, confined: bool = True) -> None:
    """The child's entry: serve requests about one device until the other end closes.

    `confined`: give up what the device does not need first (`firmware_bridge.confinement`).
    """
    preloaded = PRELOAD in sys.modules
    silence()
    # Ctrl-C reaches every process of the terminal; only the bridge decides when a device is closed.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    where, chain = Endpoint.parse(endpoint), Network(network)
    held = _confine(where, channel) if confined else {}

    def open_device(caller: DriverHost, request: protocol.WorkerCall) -> DeviceClient:
        from firmware_bridge import hwi_client

        return hwi_client.open_device(where, chain, caller, request)

    Server(channel, open_device).serve(preloaded=preloaded, **held)


def _confine(endpoint: Endpoint, channel: socket.socket) -> dict[str, Any]:
    # Importing HWI opens libusb, which may need what is given up. If it fails, opening the device says so.
    with contextlib.suppress(ImportError):
        from firmware_bridge import hwi_client  # noqa: F401 - see above
    from firmware_bridge.confinement import confine

    return asdict(confine(endpoint, channel.fileno()))


def silence() -> None:
    """Detach from the caller's terminal: HWI prints to both streams and reads from stdin."""
    null = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(null, stream)
    os.close(null)


class Server:
    """Answers the requests of one channel."""

    def __init__(
        self, channel: socket.socket, opener: Opener, *, end_process: Callable[[int], object] = os._exit
    ) -> None:
        self._end_process = end_process
        self._channel = channel
        self._open = opener
        self._client: DeviceClient | None = None
        self._requests: queue.SimpleQueue[protocol.WorkerCall | None] = queue.SimpleQueue()
        self._replies: queue.SimpleQueue[protocol.AskReply | None] = queue.SimpleQueue()
        self._writing = threading.Lock()
        self._ended = threading.Event()
        self._current = 0
        self._asked = 0

    def serve(self, *, preloaded: bool, landlock: int = 0, seccomp: bool = False) -> None:
        """See `protocol.Hello`."""
        self._send(protocol.Hello(os.getpid(), preloaded, landlock, seccomp))
        threading.Thread(target=self._read, name="pipe", daemon=True).start()
        while (request := self._requests.get()) is not None and not self._ended.is_set():
            self._send(self._answer(request))
        self._drop_client()

    def _answer(self, request: protocol.WorkerCall) -> protocol.Message:
        self._current = request.id
        # Late replies and cancels of the request before.
        while not self._replies.empty():
            self._replies.get_nowait()
        try:
            return protocol.OperationDone(request.id, self._perform(request))
        except BridgeError as failure:
            return protocol.OperationFailed(request.id, failure.code, failure.detail)
        except Exception as error:  # noqa: BLE001 - the edge of the process: a bug is an outcome too
            self._drop_client()
            return protocol.OperationFailed(
                request.id, DeviceFault.code, clean_detail(f"{type(error).__name__}: {error}")
            )

    def _perform(self, request: protocol.WorkerCall) -> Any:
        reused = self._client is not None
        try:
            return self._attempt(request)
        except BridgeError as failure:
            # Another program may have opened the device since our last request. That ends our session only.
            if reused and failure.code == DeviceFault.code and request.op in REPEATABLE:
                return self._attempt(request)
            raise

    def _attempt(self, request: protocol.WorkerCall) -> Any:
        try:
            if self._client is None:
                self._client = self._open(self, request)
            return self._client.call(request.op, request.args)
        except BridgeError:
            # A device's answers carry no numbers: after a failure, a late one would be taken for the next
            # one's.
            self._drop_client()
            raise

    def _drop_client(self) -> None:
        client, self._client = self._client, None
        if client is not None:
            # A maker's library may raise anything when the device has gone. The outcome stays what it was.
            with contextlib.suppress(Exception):
                client.close()

    def tell(self, step: str, text: str, done: int | None = None, total: int | None = None) -> None:
        """See `firmware_bridge.protocol.Caller`."""
        self._send(protocol.ProgressNote(self._current, step, text, done, total))
        if self._ended.is_set():
            # The device began to ask only now.
            self._cancel()

    def ask(self, question: Question) -> str | None:
        """See `firmware_bridge.protocol.Caller`."""
        self._asked += 1
        self._send(protocol.Ask(self._current, self._asked, question.value))
        # A reply to an earlier, cancelled question may still arrive.
        while (reply := self._replies.get()) is not None:
            if reply.number == self._asked:
                return reply.answer
        raise Cancelled

    def _send(self, message: protocol.Message) -> None:
        # Where the bridge has gone, the thread that reads notices it.
        with self._writing, contextlib.suppress(OSError):
            self._channel.sendall(protocol.encode(message))

    def _read(self) -> None:
        try:
            while True:
                self._take(self._receive())
        except (OSError, protocol.ProtocolError):
            pass
        self._ended.set()
        self._requests.put(None)
        end = threading.Timer(_CLOSE_SECONDS, self._end_process, (0,))
        end.daemon = True
        end.start()
        # Nobody takes the answer any more, and the next program could not ask before the question is over.
        self._cancel()

    def _take(self, message: protocol.WorkerCall | protocol.AskReply) -> None:
        if isinstance(message, protocol.AskReply):
            self._replies.put(message)
        elif message.op != protocol.CANCEL:
            self._requests.put(message)
        else:
            self._cancel()

    def _cancel(self) -> None:
        self._replies.put(None)
        if (client := self._client) is not None:
            # As above. This thread must survive: it alone notices that the bridge has gone.
            with contextlib.suppress(Exception):
                client.cancel()

    def _receive(self) -> protocol.WorkerCall | protocol.AskReply:
        header = protocol.receive_exactly(self._channel, protocol.HEADER_SIZE)
        message = protocol.decode(protocol.receive_exactly(self._channel, protocol.body_size(header)))
        if not isinstance(message, protocol.WorkerCall | protocol.AskReply):
            raise protocol.ProtocolError("a worker takes requests and replies only")
        return message


# A worker inherits HWI from the fork server instead of importing it: 10 ms instead of 100. Where forking is
# not safe (macOS) or not available (Windows), each worker imports HWI itself.
START_METHOD: Final = "forkserver" if sys.platform == "linux" else "spawn"
_starting = threading.Lock()
_SAFE_PATH: Final = "PYTHONSAFEPATH"

Entry = Callable[[socket.socket, str, str], None]


class Process(Protocol):
    """The part of a child process that a lane uses."""

    @property
    def pid(self) -> int | None: ...

    def is_alive(self) -> bool: ...

    def kill(self) -> None: ...


# (the child's end of the channel, endpoint, network) -> the running process
Spawner = Callable[[socket.socket, str, str], Process]


def spawn(channel: socket.socket, endpoint: str, network: str, *, entry: Entry = main) -> BaseProcess:
    """Start a worker. The first call blocks until the fork server has started."""
    context: Any = multiprocessing.get_context(START_METHOD)
    if START_METHOD == "forkserver":
        context.set_forkserver_preload([PRELOAD, _PRELOAD_LAST])
    process: BaseProcess = context.Process(
        target=entry, args=(channel, endpoint, network), daemon=True, name="device-worker"
    )
    with _starting, _without_main_module(), _without_this_folder():
        process.start()
    return process


def unconfined(channel: socket.socket, endpoint: str, network: str) -> BaseProcess:
    """As `spawn`; the worker keeps everything that this user may do."""
    return spawn(channel, endpoint, network, entry=functools.partial(main, confined=False))


@contextlib.contextmanager
def _without_main_module() -> Iterator[None]:
    """Keep multiprocessing from importing the caller's main module into every child."""
    main = sys.modules["__main__"]
    sys.modules["__main__"] = types.ModuleType("__main__")
    try:
        yield
    finally:
        sys.modules["__main__"] = main


@contextlib.contextmanager
def _without_this_folder() -> Iterator[None]:
    """Keep the fork server, which starts as `python -c`, from importing modules from the working folder:
    others may write there.
    """
    before = os.environ.get(_SAFE_PATH)
    os.environ[_SAFE_PATH] = "1"
    try:
        yield
    finally:
        if before is None:
            del os.environ[_SAFE_PATH]
        else:
            os.environ[_SAFE_PATH] = before


@dataclass
class WorkerProcess:
    """A running worker and the bridge's end of its channel."""

    process: Process
    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter
    hello: protocol.Hello | None = None

    async def send(self, request: protocol.WorkerCall | protocol.AskReply) -> None:
        self.writer.write(protocol.encode(request))
        await self.writer.drain()

    async def receive(self) -> protocol.Message:
        header = await self.reader.readexactly(protocol.HEADER_SIZE)
        return protocol.decode(await self.reader.readexactly(protocol.body_size(header)))

    def usable(self) -> bool:
        return self.process.is_alive() and not self.reader.at_eof()

    def end(self) -> None:
        """The worker closes its device and exits when the channel closes."""
        self.writer.close()

    def kill(self) -> None:
        # The process id of a worker that has exited may belong to another process.
        if self.process.is_alive():
            self.process.kill()
        self.writer.close()
