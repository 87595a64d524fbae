"""The programs that the demo starts: each in a process of its own, its output in a log, stopped
at the end.
"""

import asyncio
import contextlib
import json
import os
import signal
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from signerd import runtime

# For programs of ours that hang: on a busy machine each takes many times its second. One that ends is noticed
# at once.
STOP_SECONDS = 60.0
COMMAND_SECONDS = 900.0
# The last lines of a log are what a person needs to see why a program ended.
TAIL_LINES = 15


Answer = Callable[[], Awaitable[str]]


class DemoFailed(Exception):
    """A step did not do what it must: the sentence says which and why."""


@dataclass
class Program:
    """A long-running child. ``lines`` yields its standard output; standard error goes to the log."""

    name: str
    process: asyncio.subprocess.Process
    log: Path

    async def say(self, text: str) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(text.encode() + b"\n")
        with contextlib.suppress(ConnectionError):
            await self.process.stdin.drain()

    async def lines(self) -> AsyncIterator[str]:
        assert self.process.stdout is not None
        while line := await self.process.stdout.readline():
            yield line.decode(errors="replace").rstrip("\n")

    def check_alive(self) -> None:
        if self.process.returncode is not None:
            raise DemoFailed(f"{self.name} ended with status {self.process.returncode}:\n{tail(self.log)}")

    async def stop(self) -> None:
        if self.process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                self.process.send_signal(signal.SIGTERM)
            try:
                await asyncio.wait_for(self.process.wait(), STOP_SECONDS)
            except TimeoutError:
                self.process.kill()
                await self.process.wait()


def tail(log: Path) -> str:
    text = log.read_text(errors="replace") if log.exists() else ""
    return "\n".join("    " + line for line in text.splitlines()[-TAIL_LINES:]) or "    (it said nothing)"


class Programs:
    """Starts programs and commands with this interpreter; stops every program when the demo ends."""

    def __init__(self, logs: Path) -> None:
        self._logs = logs
        self._running: list[Program] = []

    async def start(
        self,
        name: str,
        module: str,
        args: Sequence[str],
        *,
        talk: bool = False,
        env: Mapping[str, str] | None = None,
    ) -> Program:
        """Start a module. With ``talk`` its standard input and output are ours, else its output goes to the
        log.
        """
        log = self._logs / f"{name.replace(' ', '-')}.log"
        with log.open("ab") as sink:
            process = await asyncio.create_subprocess_exec(
                *runtime.command(module, *args),
                pass_fds=(runtime.line(),),
                stdin=asyncio.subprocess.PIPE if talk else asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.PIPE if talk else sink,
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
        answers: Sequence[str | Answer] = (),
        env: Mapping[str, str] | None = None,
    ) -> str:
        """Run a command to its end with ``answers`` as the lines that a person would type; its standard
        output.

        An answer that has to be fetched first (a mailed code) is a function that gives it when its turn
        comes.

        Raises:
            DemoFailed: where it exits with another status than 0, or does not end in time.
        """
        process = await asyncio.create_subprocess_exec(
            *runtime.command(module, *args), pass_fds=(runtime.line(),),
            stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
            env={**os.environ, **(env or {})},
        )  # fmt: skip
        try:
            async with asyncio.timeout(COMMAND_SECONDS):
                typing = asyncio.create_task(_type(process, answers))
                ending = asyncio.create_task(_both(process))
                await asyncio.wait({typing, ending}, return_when=asyncio.FIRST_COMPLETED)
                if typing.done():
                    typing.result()
                typing.cancel()
                out, err = await ending
        except TimeoutError:
            raise DemoFailed(f"{what}: no end after {COMMAND_SECONDS:.0f} s") from None
        finally:
            if process.returncode is None:
                process.kill()
                await process.wait()
        if process.returncode:
            raise DemoFailed(f"{what}: {_reason(out.decode(errors='replace'), err.decode(errors='replace'))}")
        return out.decode()

    def check_alive(self) -> None:
        for program in self._running:
            program.check_alive()

    async def stop(self) -> None:
        for program in reversed(self._running):
            await program.stop()
        self._running.clear()


def _reason(out: str, err: str) -> str:
    """What a command that failed says to a person: its error's sentence and hint, else why a proposal went no
    further.
    """
    for text in (err.strip().rpartition("\n")[2], out):
        with contextlib.suppress(ValueError, TypeError, KeyError):
            said = json.loads(text)
            return (
                f"{said['error']['sentence']} {said['error']['hint']}"
                if "error" in said
                else str(said["reason"])
            )
    return (err or out).strip()


async def _type(process: asyncio.subprocess.Process, answers: Sequence[str | Answer]) -> None:
    assert process.stdin is not None
    with contextlib.suppress(ConnectionError):
        for answer in answers:
            line = answer if isinstance(answer, str) else await answer()
            process.stdin.write(line.encode() + b"\n")
            await process.stdin.drain()
        process.stdin.close()


async def _both(process: asyncio.subprocess.Process) -> tuple[bytes, bytes]:
    """Standard output and error, read side by side so that neither pipe fills, until the program ends."""
    assert process.stdout is not None
    assert process.stderr is not None
    out, err, _ = await asyncio.gather(process.stdout.read(), process.stderr.read(), process.wait())
    return out, err
