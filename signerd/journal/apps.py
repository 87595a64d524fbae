"""Paired apps, the origins whose pages may ask to be paired, and imported PSBTs."""

import json
import sqlite3
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from datetime import date, datetime
from typing import Self

from signerd.core.audit import Note
from signerd.core.states import State
from signerd.core.values import Imported, Record
from signerd.journal import rows

Noted = Callable[[str, Note], AbstractContextManager[None]]


@dataclass(frozen=True)
class App:
    """``token_hash``: SHA-256. ``origin``: of a web app only. ``used``: the last day with a request."""

    app_id: str
    name: str
    origin: str | None
    rights: frozenset[str]
    token_hash: bytes = field(repr=False)
    created: datetime
    expires: datetime
    revoked: datetime | None = None
    used: date | None = None

    def is_live(self, now: datetime) -> bool:
        return self.revoked is None and now < self.expires


@dataclass(frozen=True)
class AppBook:
    """Reads at any time. A writing method is one transaction with its note. Raises JournalUnwritable."""

    connection: sqlite3.Connection
    noted: Noted

    def all(self) -> tuple[App, ...]:
        """In the order of pairing, with expired and revoked ones."""
        return tuple(_app(row) for row in self.connection.execute("SELECT * FROM apps ORDER BY rowid"))

    def of_token(self, token_hash: bytes) -> App | None:
        """Expired and revoked ones included."""
        row = self.connection.execute("SELECT * FROM apps WHERE token_hash = ?", (token_hash,)).fetchone()
        return None if row is None else _app(row)

    def origins(self, now: datetime) -> Mapping[str, datetime]:
        """The origins whose pages may ask to be paired now, and until when."""
        rows = self.connection.execute("SELECT origin, until FROM origins ORDER BY origin")
        times = ((row["origin"], datetime.fromisoformat(row["until"])) for row in rows)
        return {origin: until for origin, until in times if now < until}

    def pair(self, app: App) -> None:
        facts = {**facts_of(app.name, app.origin, app.rights), "expires": app.expires.isoformat()}
        with self.noted("app-paired", Note("app-paired", app.app_id, facts)):
            whose = app.app_id, app.name, app.origin, " ".join(sorted(app.rights)), app.token_hash
            times = app.created.isoformat(), app.expires.isoformat()
            self.connection.execute("INSERT INTO apps VALUES (?,?,?,?,?,?,?,NULL,NULL)", (*whose, *times))

    def revoke(self, app: App, at: datetime) -> None:
        with self.noted("app-revoked", Note("app-revoked", app.app_id, {"name": app.name})):
            self._revoke("app_id", app.app_id, at)

    def use(self, app: App, day: date) -> None:
        """Record that the app was used on this day; called once a day."""
        with self.noted("app-used", Note("app-used", app.app_id, {"day": day.isoformat(), "name": app.name})):
            self.connection.execute(
                "UPDATE apps SET used = ? WHERE app_id = ?", (day.isoformat(), app.app_id)
            )

    def let_in(self, origin: str, until: datetime) -> None:
        with self.noted("origin-let-in", Note("origin-let-in", origin, {"until": until.isoformat()})):
            self.connection.execute(
                "INSERT INTO origins VALUES (?,?) ON CONFLICT (origin) DO UPDATE SET until=excluded.until",
                (origin, until.isoformat()),
            )

    def shut_out(self, origin: str, at: datetime) -> None:
        """Forget the origin and revoke its apps."""
        live = "SELECT app_id FROM apps WHERE origin = ? AND revoked IS NULL ORDER BY rowid"
        ended = [row["app_id"] for row in self.connection.execute(live, (origin,))]
        with self.noted("origin-shut-out", Note("origin-shut-out", origin, {"apps": ended})):
            self.connection.execute("DELETE FROM origins WHERE origin = ?", (origin,))
            self._revoke("origin", origin, at)

    def _revoke(self, column: str, value: str, at: datetime) -> None:
        query = f"UPDATE apps SET revoked = ? WHERE {column} = ? AND revoked IS NULL"  # noqa: S608 - a column of ours
        self.connection.execute(query, (at.isoformat(), value))


def facts_of(name: str, origin: str | None, rights: frozenset[str]) -> dict[str, object]:
    """What the chain keeps of an app, or of a request to be paired."""
    facts: dict[str, object] = {"name": name, "rights": sorted(rights)}
    return facts if origin is None else {**facts, "origin": origin}


def _app(row: sqlite3.Row) -> App:
    app_id, name, origin, rights, token_hash, created, expires, revoked, used = row
    return App(
        app_id,
        name,
        origin,
        frozenset(rights.split()),
        token_hash,
        datetime.fromisoformat(created),
        datetime.fromisoformat(expires),
        None if revoked is None else datetime.fromisoformat(revoked),
        None if used is None else date.fromisoformat(used),
    )


# The column's value for the person; an app's id is never empty.
PERSON = ""
# Ended without a signature: the same transaction may be imported again.
_OVER = (State.DECLINED, State.EXPIRED, State.SUPERSEDED, State.WITHDRAWN)

_ENTRY_COLUMNS = """
SELECT p.psbt_id, p.state, p.reason, p.vault_id, p.quorum, p.snapshot, length(p.psbt) AS size FROM proposals p
"""
_OPEN = "p.imported_by IS NOT NULL AND p.settled = 0"
_NEWEST_OF_ALL = (
    "p.rowid IN (SELECT rowid FROM proposals WHERE imported_by IS NOT NULL ORDER BY rowid DESC LIMIT ?)"
)
_NEWEST_OF_ONE = "p.rowid IN (SELECT rowid FROM proposals WHERE imported_by = ? ORDER BY rowid DESC LIMIT ?)"


@dataclass(frozen=True)
class ImportedEntry:
    """An entry of a list. ``size``: bytes of its PSBT, which is not loaded: a list's may be megabytes.

    ``quorum``: the verification code of the vault that it was judged by.
    """

    psbt_id: str
    state: State
    reason: str
    vault_id: str
    imported: Imported
    size: int
    quorum: str | None = None

    @classmethod
    def of(cls, record: Record) -> Self:
        snapshot = record.snapshot
        assert snapshot.imported is not None, "only imported PSBTs come here"
        size = len(snapshot.psbt)
        return cls(record.psbt_id, record.state, record.reason, snapshot.vault_id, snapshot.imported, size)


@dataclass(frozen=True)
class ImportedBook:
    """Reads only; ``rows`` writes the records."""

    connection: sqlite3.Connection

    def find(self, psbt_id: str) -> Record | None:
        return next(self._records("p.imported_by IS NOT NULL AND p.psbt_id = ?", psbt_id), None)

    def newest(self, most: int, app_id: str | None = None, *, everyone: bool) -> tuple[ImportedEntry, ...]:
        """In the order of import: of ``everyone``, else of one app (None: the person)."""
        if everyone:
            return self._entries(_NEWEST_OF_ALL, most)
        return self._entries(_NEWEST_OF_ONE, app_id or PERSON, most)

    def waiting(self) -> tuple[ImportedEntry, ...]:
        """Those that are not settled."""
        return self._entries(_OPEN)

    def same(self, identity: str, app_id: str | None) -> Record | None:
        """The same transaction imported before by the same caller, where it is open or signed."""
        records = self._records("p.imported_by = ? AND p.identity = ?", app_id or PERSON, identity)
        return next((record for record in records if record.state not in _OVER), None)

    def proposed(self, identity: str) -> Record | None:
        """The platform's proposal of this transaction, unless it ended without our signature and was not
        exported.
        """
        records = self._records("p.imported_by IS NULL AND p.identity = ?", identity)
        signed = (r for r in records if r.signature or r.exported or r.state not in _OVER)
        return next(signed, None)

    def expiry_of(self, app_id: str, newest: int) -> int | None:
        """The expiry in Unix seconds of the app's ``newest``-th newest import, in any state; None where it
        imported fewer.
        """
        query = "SELECT snapshot FROM proposals WHERE imported_by = ? ORDER BY rowid DESC LIMIT 1 OFFSET ?"
        row = self.connection.execute(query, (app_id, newest - 1)).fetchone()
        return None if row is None else int(json.loads(row["snapshot"])["imported"]["expires_at"])

    def _entries(self, where: str, *given: str | int) -> tuple[ImportedEntry, ...]:
        rows = self.connection.execute(f"{_ENTRY_COLUMNS} WHERE {where} ORDER BY p.rowid", given)
        return tuple(_entry(row) for row in rows)

    def _records(self, where: str, *given: str | int) -> Iterator[Record]:
        query = f"{rows.RECORD_COLUMNS} WHERE {where} ORDER BY p.rowid"
        return (rows.read_record(row) for row in self.connection.execute(query, given).fetchall())


def _entry(row: sqlite3.Row) -> ImportedEntry:
    imported = Imported(**json.loads(row["snapshot"])["imported"])
    psbt_id, state, reason, vault_id, quorum, _snapshot, size = row
    return ImportedEntry(psbt_id, State(state), reason, vault_id, imported, size, quorum)
