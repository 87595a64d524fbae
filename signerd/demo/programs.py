"""The demo's child processes: the output of each goes to a log, and all are stopped at the end."""

import asyncio
import contextlib
import os
import re
import signal
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any, TypeVar

from custody.client import ApiError
from custody.common import children

# Deadlines for programs that hang, generous for a busy machine. A program that exits is noticed at once.
START_SECONDS = 300.0
STOP_SECONDS = 60.0
COMMAND_SECONDS = 900.0
STEP_SECONDS = 900.0
PAUSE_SECONDS = 0.1
# The last lines of a log are what a person needs to see why a program ended.
TAIL_LINES = 15

Made = TypeVar("Made")
Found = TypeVar("Found")


class DemoFailed(Exception):
    """A step failed: the message says which and why."""


@contextlib.asynccontextmanager
async def tasks_of(*steps: Coroutine[Any, Any, Any]) -> AsyncIterator[list[asyncio.Task[Any]]]:
    """Those that the body leaves unfinished are cancelled and awaited, so that no process they start outlives
    the demo.
    """
    tasks = [asyncio.create_task(step) for step in steps]
    try:
        yield tasks
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def side_by_side(*steps: Coroutine[Any, Any, Made]) -> list[Made]:
    """The steps' results, in order. If one fails the others end before it is raised."""
    async with tasks_of(*steps) as tasks:
        return list(await asyncio.gather(*tasks))


async def until_made(failing: str, make: Callable[[], Awaitable[Found]]) -> Found:
    """The first answer of ``make`` that is true. The platform indexes coins and tokens a moment after a
    block, and refuses until then: it is asked again. Raises DemoFailed.
    """
    deadline, why = time.monotonic() + STEP_SECONDS, ""
    while time.monotonic() < deadline:
        try:
            if made := await make():
                return made
        except ApiError as error:
            why = f": {error}"
        await asyncio.sleep(PAUSE_SECONDS)
    raise DemoFailed(f"{failing}{why}")


@dataclass
class Program:
    """A long-running child. ``lines`` yields its standard output; standard error goes to the log."""

    name: str
    process: asyncio.subprocess.Process
    log: Path
    _copying: asyncio.Task[None] | None = field(default=None, repr=False)

    async def say(self, text: str) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(text.encode() + b"\n")
        with contextlib.suppress(ConnectionError):
            await self.process.stdin.drain()

    async def lines(self) -> AsyncIterator[str]:
        assert self.process.stdout is not None
        while line := await self.process.stdout.readline():
            yield line.decode(errors="replace").rstrip("\n")

    async def until_said(self, wanted: re.Pattern[str]) -> re.Match[str]:
        """The match in the first line of standard output that has ``wanted``; the lines after it go to the
        log.

        Raises:
            DemoFailed: the program ends or the deadline passes before such a line.
        """
        try:
            async with asyncio.timeout(START_SECONDS):
                async for line in self.lines():
                    if match := wanted.search(line):
                        self._copying = asyncio.create_task(self._copy())
                        return match
        except TimeoutError:
            raise DemoFailed(
                f"{self.name} was not ready within {START_SECONDS:.0f} s:\n{tail(self.log)}"
            ) from None
        status = await self.process.wait()
        raise DemoFailed(f"{self.name} ended with status {status}:\n{tail(self.log)}")

    async def _copy(self) -> None:
        with self.log.open("a") as log:
            async for line in self.lines():
                log.write(line + "\n")
                log.flush()

    async def stop(self) -> None:
        if self.process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                self.process.send_signal(signal.SIGTERM)
            try:
                await asyncio.wait_for(self.process.wait(), STOP_SECONDS)
            except TimeoutError:
                self.process.kill()
                await self.process.wait()
        if self._copying is not None:
            # A grandchild may hold the output open.
            self._copying.cancel()
            await asyncio.gather(self._copying, return_exceptions=True)


def tail(log: Path) -> str:
    text = log.read_text(errors="replace") if log.exists() else ""
    return "\n".join("    " + line for line in text.splitlines()[-TAIL_LINES:]) or "    (the log is empty)"


async def _spawned(
    module: str, args: Sequence[str], env: Mapping[str, str] | None, errors: IO[bytes] | int
) -> asyncio.subprocess.Process:
    return await asyncio.create_subprocess_exec(
        *children.command(module, *args),
        pass_fds=children.passed(),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=errors,
        env={**os.environ, **(env or {})},
        # Keeps a Ctrl-C at the terminal from the children: the demo stops them in order.
        start_new_session=True,
    )


class Programs:
    """Starts programs and commands with this interpreter; stops every program when the demo ends."""

    def __init__(self, logs: Path) -> None:
        self._logs = logs
        self._running: list[Program] = []

    async def start(
        self, name: str, module: str, args: Sequence[str], *, env: Mapping[str, str] | None = None
    ) -> Program:
        """Start a module. The caller must read its standard output; standard error goes to the log."""
        log = self._logs / f"{name.replace(' ', '-')}.log"
        with log.open("ab") as sink:
            program = Program(name, await _spawned(module, args, env, sink), log)
        self._running.append(program)
        return program

    async def command(
        self,
        what: str,
        module: str,
        args: Sequence[str],
        *,
        given: str = "",
        env: Mapping[str, str] | None = None,
    ) -> str:
        """Run a command with ``given`` as standard input and return its standard output.

        Raises:
            DemoFailed: a non-zero exit status, or it takes too long.
        """
        process = await _spawned(module, args, env, asyncio.subprocess.PIPE)
        try:
            async with asyncio.timeout(COMMAND_SECONDS):
                out, err = await process.communicate(given.encode())
        except TimeoutError:
            raise DemoFailed(f"{what}: no end after {COMMAND_SECONDS:.0f} s") from None
        finally:
            if process.returncode is None:
                process.kill()
                await process.wait()
        if process.returncode:
            raise DemoFailed(f"{what}: {(err or out).decode(errors='replace').strip()}")
        return out.decode()

    async def stop(self) -> None:
        await side_by_side(*(program.stop() for program in self._running))
        self._running.clear()
