"""Scheduled backups while the daemon runs: checked each hour, made by a child process, failures reported."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from signerd import runtime
from signerd.account.config import BackupSection
from signerd.backup.last import is_due
from signerd.core.text import plain
from signerd.feed import Troubles

LOOK_EVERY_SECONDS = 3600.0
# Enough for a journal of a gigabyte on a slow disk.
CHILD_SECONDS = 1800.0
GROUP = "backup"
_CHILD = "signerd.backup.child"

Make = Callable[[], Awaitable[str | None]]
Sleep = Callable[[float], Awaitable[None]]


@dataclass(frozen=True)
class Schedule:
    """``make`` makes a backup; it returns why it could not, or None."""

    state: Path
    section: BackupSection
    troubles: Troubles
    now: Callable[[], datetime]
    make: Make
    sleep: Sleep = asyncio.sleep

    async def run(self) -> None:
        """Until cancelled."""
        while True:
            if is_due(self.state, self.section, self.now()):
                fault = await self.make()
                told = {} if fault is None else {GROUP: f"The scheduled backup could not be made: {fault}"}
                self.troubles.report(GROUP, told)
            await self.sleep(LOOK_EVERY_SECONDS)


async def made_by_child(state: Path, section: BackupSection, seconds: float = CHILD_SECONDS) -> str | None:
    """None where it was made; else why not."""
    try:
        child = await asyncio.create_subprocess_exec(
            *runtime.command(_CHILD, str(state), str(section.folder), str(section.recipient)),
            pass_fds=runtime.passed(),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.PIPE,
        )
    except OSError as error:
        return f"no process could be started: {error.strerror}"
    try:
        async with asyncio.timeout(seconds):
            _out, said = await child.communicate()
    except TimeoutError:
        return f"it took more than {seconds:.0f} seconds"
    finally:
        if child.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                child.kill()
            await child.wait()
    if child.returncode == 0:
        return None
    lines = said.decode(errors="replace").strip().splitlines()
    return plain(lines[-1]) if lines else "no reason given"


@contextlib.asynccontextmanager
async def backing_up(
    state: Path, section: BackupSection, troubles: Troubles, now: Callable[[], datetime]
) -> AsyncIterator[None]:
    """Run the schedule during the body, if the configuration has one."""
    if not section.scheduled:
        yield
        return
    schedule = Schedule(state, section, troubles, now, lambda: made_by_child(state, section))
    task = asyncio.create_task(schedule.run())
    try:
        yield
    finally:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task
