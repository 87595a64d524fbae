"""When the last backup was made here, and when the person is reminded of one."""

import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

from custody.private_files import write_private
from signerd.account.config import BackupSection

NAME = "backup.last"
_MAX_BYTES = 4096
# The reminder's interval without a schedule.
USUAL_DAYS = 30


def note_made(state: Path, made_at: datetime) -> None:
    """Raises OSError."""
    write_private(state / NAME, json.dumps({"made_at": made_at.isoformat()}).encode())


def last_made(state: Path) -> datetime | None:
    """None where none was made, or the file cannot be read."""
    try:
        with (state / NAME).open("rb") as file:
            found = datetime.fromisoformat(json.loads(file.read(_MAX_BYTES))["made_at"])
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return found if found.tzinfo is not None else None


def reminders(state: Path, section: BackupSection, now: datetime, *, pinned: bool) -> Iterator[str]:
    """Reminders for the status; none while no vault is pinned."""
    made, days = last_made(state), section.every_days if section.scheduled else USUAL_DAYS
    if not pinned:
        return
    if made is None:
        yield (
            "There is no backup of signerd's state: run `signerd backup FILE`, or set [backup] "
            "in the configuration."
        )
    elif now.astimezone(UTC) - made > timedelta(days=days + 1):
        yield f"The last backup is of {made:%Y-%m-%d}: make a new one with `signerd backup FILE`."


def is_due(state: Path, section: BackupSection, now: datetime) -> bool:
    """Whether the schedule asks for a backup; also after the clock was set back."""
    made = last_made(state)
    if made is None:
        return True
    return not timedelta(0) <= now.astimezone(UTC) - made < timedelta(days=section.every_days)
