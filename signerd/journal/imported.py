"""What the journal holds of PSBTs that were brought: whose they are, and what is known of the same transaction already."""

import json
import sqlite3
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Self

from signerd.core.states import State
from signerd.core.values import Imported, Record
from signerd.journal import rows

# What the column says where the person brought it: an app's id is never empty.
PERSON = ""
# Ended, and not by a signature: the same transaction may be asked about again.
_OVER = (State.DECLINED, State.EXPIRED, State.SUPERSEDED, State.WITHDRAWN)

_ENTRY_COLUMNS = "SELECT p.psbt_id, p.state, p.reason, p.vault_id, p.quorum, p.snapshot, length(p.psbt) AS size FROM proposals p"
_OPEN = "p.brought_by IS NOT NULL AND p.settled = 0"
_NEWEST_OF_ALL = (
    "p.rowid IN (SELECT rowid FROM proposals WHERE brought_by IS NOT NULL ORDER BY rowid DESC LIMIT ?)"
)
_NEWEST_OF_ONE = "p.rowid IN (SELECT rowid FROM proposals WHERE brought_by = ? ORDER BY rowid DESC LIMIT ?)"


def bringer(app_id: str | None) -> str:
    return PERSON if app_id is None else app_id


@dataclass(frozen=True)
class ImportedEntry:
    """What a list tells of one. ``size``: bytes of its PSBT, which is not read: those of a list are megabytes together.

    ``quorum``: the verification code of the vault that it was judged by.
    """

    psbt_id: str
    state: State
    reason: str
    vault_id: str
    brought: Imported
    size: int
    quorum: str | None = None

    @classmethod
    def of(cls, record: Record) -> Self:
        snapshot = record.snapshot
        assert snapshot.brought is not None, "only what was brought comes here"
        size = len(snapshot.psbt)
        return cls(record.psbt_id, record.state, record.reason, snapshot.vault_id, snapshot.brought, size)


@dataclass(frozen=True)
class ImportedBook:
    """Reads at any time; what is written of a record is written by ``rows``."""

    connection: sqlite3.Connection

    def find(self, psbt_id: str) -> Record | None:
        return next(self._records("p.brought_by IS NOT NULL AND p.psbt_id = ?", psbt_id), None)

    def newest(self, most: int, app_id: str | None = None, *, everyone: bool) -> tuple[ImportedEntry, ...]:
        """In the order in which they came: of ``everyone``, else of one app (None: of the person)."""
        if everyone:
            return self._entries(_NEWEST_OF_ALL, most)
        return self._entries(_NEWEST_OF_ONE, bringer(app_id), most)

    def waiting(self) -> tuple[ImportedEntry, ...]:
        """As ``open``."""
        return self._entries(_OPEN)

    def open(self) -> tuple[Record, ...]:
        """Those about which something may still be decided."""
        return tuple(self._records(_OPEN))

    def same(self, identity: str, app_id: str | None) -> Record | None:
        """The same transaction, brought by the same one before: asked about now, or signed."""
        found = self._records("p.brought_by = ? AND p.identity = ?", bringer(app_id), identity)
        return next((record for record in found if record.state not in _OVER), None)

    def proposed(self, identity: str) -> Record | None:
        """A proposal of the platform's that is this transaction, unless it is over without a signature of ours."""
        found = self._records("p.brought_by IS NULL AND p.identity = ?", identity)
        return next((r for r in found if r.signature is not None or r.state not in _OVER), None)

    def expiry_of(self, app_id: str, newest: int) -> int | None:
        """Until when the app's ``newest``-th last, of whatever state, could be decided about, in Unix seconds; None: it brought fewer."""
        query = "SELECT snapshot FROM proposals WHERE brought_by = ? ORDER BY rowid DESC LIMIT 1 OFFSET ?"
        row = self.connection.execute(query, (app_id, newest - 1)).fetchone()
        return None if row is None else int(json.loads(row["snapshot"])["brought"]["expires_at"])

    def _entries(self, where: str, *given: str | int) -> tuple[ImportedEntry, ...]:
        found = self.connection.execute(f"{_ENTRY_COLUMNS} WHERE {where} ORDER BY p.rowid", given)
        return tuple(_entry(row) for row in found)

    def _records(self, where: str, *given: str | int) -> Iterator[Record]:
        query = f"{rows.RECORD_COLUMNS} WHERE {where} ORDER BY p.rowid"
        return (rows.read_record(row) for row in self.connection.execute(query, given).fetchall())


def _entry(row: sqlite3.Row) -> ImportedEntry:
    brought = Imported(**json.loads(row["snapshot"])["brought"])
    return ImportedEntry(
        row["psbt_id"],
        State(row["state"]),
        row["reason"],
        row["vault_id"],
        brought,
        row["size"],
        row["quorum"],
    )
