"""Worker processes: how one is started, spoken to, let go and killed."""

import asyncio
import contextlib
import multiprocessing
import os
import socket
import sys
import threading
import types
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from multiprocessing.process import BaseProcess
from typing import Any, Final, Protocol

from firmware_bridge import protocol, worker

# A process that starts takes HWI from the fork server's memory instead of importing it: 10 ms instead of 100. Where
# forking is not safe (macOS) or not there (Windows), each worker imports it for itself.
START_METHOD: Final = "forkserver" if sys.platform == "linux" else "spawn"
_starting = threading.Lock()
_SAFE_PATH: Final = "PYTHONSAFEPATH"

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
    with _starting, _without_main_module(), _without_this_folder():
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


@contextlib.contextmanager
def _without_this_folder() -> Iterator[None]:
    """Keep the fork server, which starts as `python -c`, from importing what lies in the working folder: it may be anybody's."""
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
    """A running worker and our end of its channel."""

    process: Process
    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter
    preloaded: bool

    async def send(self, request: protocol.Request | protocol.Reply) -> None:
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
        # Of one that has ended by itself, the number may be another process's by now.
        if self.process.is_alive():
            self.process.kill()
        self.writer.close()
