"""When the last backup was made here, when the person is reminded of one, and scheduled backups while the
daemon runs: checked each hour, made by a child process, failures reported.
"""

import asyncio
import contextlib
import json
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from custody.common import children
from custody.common.private_files import read_bounded, write_private
from custody.common.text import plain
from signerd.account.config import BackupSection
from signerd.feed import Troubles

NAME = "backup.last"
_MAX_BYTES = 4096
# The reminder's interval without a schedule.
USUAL_DAYS = 30


def note_made(state: Path, made_at: datetime, fingerprint: str) -> None:
    """Raises OSError."""
    record = {"made_at": made_at.isoformat(), "fingerprint": fingerprint}
    write_private(state / NAME, json.dumps(record).encode())


@dataclass(frozen=True)
class BackupMade:
    """``fingerprint``: of all that is in the backup."""

    at: datetime
    fingerprint: str


def last_backup(state: Path) -> BackupMade | None:
    """None where none was made, or the file cannot be read."""
    try:
        record = json.loads(read_bounded(state / NAME, _MAX_BYTES))
        backup = BackupMade(datetime.fromisoformat(record["made_at"]), plain(str(record["fingerprint"])))
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return backup if backup.at.tzinfo is not None else None


def reminders(state: Path, section: BackupSection, now: datetime, *, pinned: bool) -> Iterator[str]:
    """Reminders for the status; none while no vault is pinned."""
    made, days = last_backup(state), section.every_days if section.scheduled else USUAL_DAYS
    if not pinned:
        return
    if made is None:
        yield (
            "There is no backup of signerd's state: run `signerd backup FILE`, or set [backup] "
            "in the configuration."
        )
    elif now.astimezone(UTC) - made.at > timedelta(days=days + 1):
        yield f"The last backup is of {made.at:%Y-%m-%d}: make a new one with `signerd backup FILE`."


def is_due(state: Path, section: BackupSection, now: datetime) -> bool:
    """Whether the schedule asks for a backup; also after the clock was set back."""
    made = last_backup(state)
    if made is None:
        return True
    return not timedelta(0) <= now.astimezone(UTC) - made.at < timedelta(days=section.every_days)


LOOK_EVERY_SECONDS = 3600.0
# Enough for a journal of a gigabyte on a slow disk.
CHILD_SECONDS = 1800.0
GROUP = "backup"


async def made_by_child(state: Path, section: BackupSection, seconds: float = CHILD_SECONDS) -> str | None:
    """None where it was made; else why not. By the command, in a process of its own, so that the libraries
    and the copy do not stay in the daemon's memory.
    """
    file = f"{section.folder}/signerd-{datetime.now(UTC):%Y%m%dT%H%M%SZ}.age"
    words = ("--state", str(state), "backup", file, "--recipient", str(section.recipient))
    try:
        child = await asyncio.create_subprocess_exec(
            *children.command("signerd", *words),
            pass_fds=children.passed(),
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
    # Below the sentence stands its hint, further in.
    lines = [line for line in said.decode(errors="replace").splitlines() if not line.startswith(" ")]
    return plain(lines[-1].removeprefix("signerd: ")) if lines else "no reason given"


async def back_up_on_schedule(
    state: Path,
    section: BackupSection,
    troubles: Troubles,
    now: Callable[[], datetime],
    note: Callable[[str, str], None],
    *,
    make: Callable[[Path, BackupSection], Awaitable[str | None]] = made_by_child,
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
) -> None:
    """Until cancelled. ``note`` is told of each backup that was made, by whichever program."""
    while True:
        if section.scheduled and is_due(state, section, now()):
            fault = await make(state, section)
            faults = {} if fault is None else {GROUP: f"The scheduled backup could not be made: {fault}"}
            troubles.report(GROUP, faults)
        made = last_backup(state)
        if made is not None:
            note(made.at.isoformat(), made.fingerprint)
        await sleep(LOOK_EVERY_SECONDS)
