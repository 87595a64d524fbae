"""What the journal holds of paired apps: what each was granted, and the origins whose pages may ask to be paired."""

import sqlite3
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from datetime import date, datetime

from signerd.core.audit import Note

Noted = Callable[[str, Note], AbstractContextManager[None]]


@dataclass(frozen=True)
class App:
    """``token_hash``: SHA-256. ``origin``: of a browser's app alone. ``used``: the last day on which it asked for anything."""

    app_id: str
    name: str
    origin: str | None
    rights: frozenset[str]
    token_hash: bytes = field(repr=False)
    created: datetime
    expires: datetime
    revoked: datetime | None = None
    used: date | None = None


@dataclass(frozen=True)
class AppBook:
    """Reads at any time; each method that writes is one transaction with its note. Those raise JournalUnwritable."""

    connection: sqlite3.Connection
    noted: Noted

    def all(self) -> tuple[App, ...]:
        """In the order in which they were paired, with those that are over."""
        return tuple(_app(row) for row in self.connection.execute("SELECT * FROM apps ORDER BY rowid"))

    def origins(self) -> Mapping[str, datetime]:
        """Until when the pages of each origin may ask, also where that is over."""
        found = self.connection.execute("SELECT origin, until FROM origins ORDER BY origin")
        return {row["origin"]: datetime.fromisoformat(row["until"]) for row in found}

    def pair(self, app: App) -> None:
        facts = {**_facts(app.name, app.origin, app.rights), "expires": app.expires.isoformat()}
        with self.noted("app-paired", Note("app-paired", app.app_id, facts)):
            self.connection.execute(
                "INSERT INTO apps (app_id, name, origin, rights, token_hash, created, expires) "
                "VALUES (?,?,?,?,?,?,?)",
                (
                    app.app_id,
                    app.name,
                    app.origin,
                    " ".join(sorted(app.rights)),
                    app.token_hash,
                    app.created.isoformat(),
                    app.expires.isoformat(),
                ),
            )

    def revoke(self, app: App, at: datetime) -> None:
        with self.noted("app-revoked", Note("app-revoked", app.app_id, {"name": app.name})):
            self._revoke("app_id", app.app_id, at)

    def use(self, app: App, day: date) -> None:
        """That it asked for something on this day, once a day: the chain tells when an app was at work."""
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
        """Its pages may not ask any more, and its apps are revoked."""
        live = "SELECT app_id FROM apps WHERE origin = ? AND revoked IS NULL ORDER BY rowid"
        ended = [row["app_id"] for row in self.connection.execute(live, (origin,))]
        with self.noted("origin-shut-out", Note("origin-shut-out", origin, {"apps": ended})):
            self.connection.execute("DELETE FROM origins WHERE origin = ?", (origin,))
            self._revoke("origin", origin, at)

    def _revoke(self, column: str, value: str, at: datetime) -> None:
        query = f"UPDATE apps SET revoked = ? WHERE {column} = ? AND revoked IS NULL"  # noqa: S608 - a column of ours
        self.connection.execute(query, (at.isoformat(), value))


def answer_note(kind: str, pairing_id: str, name: str, origin: str | None, rights: frozenset[str]) -> Note:
    """The person's answer to a request: ``kind`` is "app-accepted" or "app-refused"."""
    return Note(kind, pairing_id, _facts(name, origin, rights))


def _facts(name: str, origin: str | None, rights: frozenset[str]) -> dict[str, object]:
    told: dict[str, object] = {"name": name, "rights": sorted(rights)}
    return told if origin is None else {**told, "origin": origin}


def _app(row: sqlite3.Row) -> App:
    revoked, used = row["revoked"], row["used"]
    return App(
        row["app_id"],
        row["name"],
        row["origin"],
        frozenset(row["rights"].split()),
        row["token_hash"],
        datetime.fromisoformat(row["created"]),
        datetime.fromisoformat(row["expires"]),
        None if revoked is None else datetime.fromisoformat(revoked),
        None if used is None else date.fromisoformat(used),
    )
