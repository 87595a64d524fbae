"""The programs that the demo starts: each in a process of its own, its output in a log, stopped
at the end.
"""

import asyncio
import contextlib
import os
import re
import signal
from collections.abc import AsyncIterator, Coroutine, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from signerd import runtime

# For programs of ours that hang: on a busy machine each takes many times its second. One that ends is noticed
# at once.
START_SECONDS = 300.0
STOP_SECONDS = 60.0
COMMAND_SECONDS = 900.0
STEP_SECONDS = 900.0
# The last lines of a log are what a person needs to see why a program ended.
TAIL_LINES = 15

Made = TypeVar("Made")


class DemoFailed(Exception):
    """A step did not do what it must: the sentence says which and why."""


async def side_by_side(*steps: Coroutine[Any, Any, Made]) -> list[Made]:
    """What each gives, in their order. Where one fails the others are ended first: what they started then
    would outlive the demo.
    """
    tasks = [asyncio.ensure_future(step) for step in steps]
    try:
        return list(await asyncio.gather(*tasks))
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


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
        """Where a line of its standard output first has ``wanted``; from then on the lines go to its log.

        Raises:
            DemoFailed: it ends without, or says nothing of the kind in time.
        """
        try:
            async with asyncio.timeout(START_SECONDS):
                async for line in self.lines():
                    if found := wanted.search(line):
                        self._copying = asyncio.create_task(self._copy())
                        return found
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
            # A child of its may hold the output open.
            self._copying.cancel()
            await asyncio.gather(self._copying, return_exceptions=True)


def tail(log: Path) -> str:
    text = log.read_text(errors="replace") if log.exists() else ""
    return "\n".join("    " + line for line in text.splitlines()[-TAIL_LINES:]) or "    (it said nothing)"


class Programs:
    """Starts programs and commands with this interpreter; stops every program when the demo ends."""

    def __init__(self, logs: Path) -> None:
        self._logs = logs
        self._running: list[Program] = []

    async def start(
        self, name: str, module: str, args: Sequence[str], *, env: Mapping[str, str] | None = None
    ) -> Program:
        """Start a module. Its standard input and output are ours, and have to be read; its errors go to the
        log.
        """
        log = self._logs / f"{name.replace(' ', '-')}.log"
        with log.open("ab") as sink:
            process = await asyncio.create_subprocess_exec(
                *runtime.command(module, *args),
                pass_fds=runtime.passed(),
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=sink,
                env={**os.environ, **(env or {})},
                # A Ctrl-C at the terminal is the demo's to handle: it stops its programs in order.
                start_new_session=True,
            )  # fmt: skip
        program = Program(name, process, log)
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
        """Run a command to its end with ``given`` as what a person would type; its standard output.

        Raises:
            DemoFailed: where it exits with another status than 0, or does not end in time.
        """
        process = await asyncio.create_subprocess_exec(
            *runtime.command(module, *args), pass_fds=runtime.passed(),
            stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
            env={**os.environ, **(env or {})},
        )  # fmt: skip
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
