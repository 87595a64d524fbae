"""The audit chain and the journal's transactions: a change is stored with its notes or not at all.

Used by one thread. Every public method that changes something is one transaction, durable when it returns.
"""

import json
import sqlite3
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Self

from custody.schemas.common import format_time
from multisig import Network
from signerd.core.audit import Entry, Note, link
from signerd.core.rules.values import NO_RULES
from signerd.core.values import Record, SigningLimits
from signerd.errors import JournalUnwritable
from signerd.journal import rows
from signerd.journal.apps import AppBook, ImportedBook
from signerd.journal.quota import QuotaBook
from signerd.journal.storage import open_journal
from signerd.runtime import FaultPoint, no_fault


@dataclass(frozen=True)
class JournalFigures:
    """``proposals``: by state. ``entries``: of the audit chain, by kind. Both sets of labels are bounded."""

    proposals: dict[str, int]
    entries: dict[str, int]
    signatures: int


def figures_of(connection: sqlite3.Connection) -> JournalFigures:
    return JournalFigures(
        _counted(connection, "SELECT state, count(*) FROM proposals GROUP BY state"),
        _counted(connection, "SELECT kind, count(*) FROM audit GROUP BY kind"),
        connection.execute("SELECT count(*) FROM signatures").fetchone()[0],
    )


def _counted(connection: sqlite3.Connection, query: str) -> dict[str, int]:
    return {str(name): int(count) for name, count in connection.execute(query)}


Now = Callable[[], datetime]
# The entry that a restored journal goes on with.
RESTORED = "restored"


@dataclass(frozen=True)
class Restored:
    """The last restore: its position in the chain, and the backup's time."""

    sequence: int
    made_at: datetime


def utc_now() -> datetime:
    return datetime.now(UTC)


class ChainedJournal:
    """An open journal. Use as a context manager; the folder must be held."""

    def __init__(
        self, folder: Path, *, network: Network, now: Now = utc_now, fault: FaultPoint = no_fault
    ) -> None:
        """Open it.

        Raises:
            JournalCorrupted, JournalTooNew, JournalUnwritable: the daemon must not start.
        """
        self.network, self._now, self._fault = network, now, fault
        # What proposals are judged by, of the files of the person's (``Config.configure``): limits and rules,
        # names of checks, addresses with names.
        self.limits, self.rules = SigningLimits(), NO_RULES
        self.lowered: frozenset[str] = frozenset()
        self.book: Collection[str] = ()
        # Called for each stored record, with its earlier version, after the commit.
        self.stored: Callable[[Record | None, Record], None] = lambda _before, _after: None
        self._moves: list[tuple[Record | None, Record]] = []
        # Inputs and outputs of what the platform newly showed, since the start (S34).
        self.parts_judged = 0
        self._db, self.is_checked = open_journal(folder, now())
        self.apps = AppBook(self._db, self.noted)
        self.imported = ImportedBook(self._db)
        self._quota = QuotaBook(self._db)
        # The last restore, once the journal was opened after it.
        self.restored = self._read_restored()

    def close(self) -> None:
        self._db.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exc: object) -> None:
        self.close()

    # --- the audit chain ------------------------------------------------------------------------------------

    def note(self, note: Note) -> None:
        """Record a note that changes no proposal."""
        with self.noted("note", note):
            pass

    @contextmanager
    def noted(self, name: str, note: Note) -> Iterator[None]:
        """One transaction around the body, with its note: for the books that write by themselves."""
        with self._transaction(name):
            yield
            self._append(note)

    def audit(self, after: int = 0) -> Iterator[Entry]:
        return rows.audit_entries(self._db, after)

    def audit_page(
        self, search: str, limit: int, *, after: int | None, before: int | None
    ) -> tuple[Entry, ...]:
        """Entries that contain ``search``: in order after ``after`` where given, else the newest first, below
        ``before``.
        """
        query = rows.AUDIT_PAGE.format(order="DESC" if after is None else "ASC")
        named = {"after": after or 0, "before": before or 2**63 - 1, "search": search, "limit": limit}
        return tuple(rows.entries_of(self._db.execute(query, named)))

    def figures(self) -> JournalFigures:
        return figures_of(self._db)

    def head(self) -> tuple[int, bytes]:
        """The chain's length and last hash. A copy kept elsewhere reveals removed entries."""
        return rows.audit_head(self._db)

    # --- inside ---------------------------------------------------------------------------------------------

    def _read_restored(self) -> Restored | None:
        row = self._row(
            "SELECT sequence, facts FROM audit WHERE kind = ? ORDER BY sequence DESC LIMIT 1", RESTORED
        )
        if row is None:
            return None
        return Restored(row["sequence"], datetime.fromisoformat(json.loads(row["facts"])["made_at"]))

    def _row(self, query: str, *given: object) -> sqlite3.Row | None:
        row: sqlite3.Row | None = self._db.execute(query, given).fetchone()
        return row

    @contextmanager
    def _transaction(self, name: str) -> Iterator[None]:
        self._moves = []
        try:
            self._db.execute("BEGIN IMMEDIATE")
            try:
                yield
                self._fault(f"journal:before:{name}")
                self._db.execute("COMMIT")
            except BaseException:
                if self._db.in_transaction:
                    self._db.execute("ROLLBACK")
                raise
        except sqlite3.DatabaseError as error:
            raise JournalUnwritable(f"the journal cannot be written: {error}") from error
        self._fault(f"journal:after:{name}")
        for before, after in self._moves:
            self.stored(before, after)

    def _append(self, note: Note) -> None:
        sequence, digest = self.head()
        rows.write_entry(self._db, link(sequence + 1, self._stamp(), note, digest))

    def now(self) -> datetime:
        """The clock that dates the chain, in UTC."""
        return self._now().astimezone(UTC)

    def _stamp(self) -> str:
        return format_time(self.now())
