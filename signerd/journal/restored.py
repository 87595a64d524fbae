"""Whether this journal was restored from a backup, and for which vaults the platform's list was read since.

What was signed between backup and restore is only in the platform's list. Until that is read, nothing is
approved (ADR 26).
"""

import json
import sqlite3
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from signerd.core.audit import Note

RESTORED, CAUGHT_UP = "restored", "caught-up"
SUBJECT = "journal"

_LAST = "SELECT sequence, facts FROM audit WHERE kind = ? ORDER BY sequence DESC LIMIT 1"
_SINCE = "SELECT subject, facts FROM audit WHERE kind = ? AND sequence > ?"


def restored_note(made_at: datetime, entries: int, head: bytes) -> Note:
    """``made_at``: the backup's time. ``entries``, ``head``: its chain's length and last hash."""
    facts = {"entries": entries, "head": head.hex(), "made_at": made_at.isoformat()}
    return Note(RESTORED, SUBJECT, facts)


def caught_up_note(workspace_id: int, codes: Iterable[str]) -> Note:
    """The workspace's whole list was compared with the vaults of these codes."""
    return Note(CAUGHT_UP, str(workspace_id), {"codes": sorted(codes)})


@dataclass(frozen=True)
class Restored:
    """The last restore: its position in the chain, and the backup's time."""

    sequence: int
    made_at: datetime


class RestoredBook:
    """Over the one connection that writes the journal. A journal is restored before it is opened here."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._db = connection
        self.last = _last(connection)

    def behind(self, pins: Iterable[tuple[int, str]]) -> frozenset[int]:
        """``pins``: workspaces with the codes of their vaults. Those workspaces whose whole list was not read
        for each of their vaults since the restore; empty without a restore.
        """
        if self.last is None:
            return frozenset()
        found = self._db.execute(_SINCE, (CAUGHT_UP, self.last.sequence))
        covered = {
            (int(row["subject"]), code) for row in found for code in json.loads(row["facts"]).get("codes", ())
        }
        return frozenset(workspace for workspace, code in set(pins) - covered)


def _last(connection: sqlite3.Connection) -> Restored | None:
    row = connection.execute(_LAST, (RESTORED,)).fetchone()
    if row is None:
        return None
    return Restored(row["sequence"], datetime.fromisoformat(json.loads(row["facts"])["made_at"]))
