"""From a URL to the database it names."""

from pathlib import Path

from sqlalchemy import URL, make_url

from custody.server.store.database import CannotOpen, Database
from custody.server.store.sqlite import open_sqlite

POSTGRESQL = frozenset({"postgresql", "postgresql+psycopg"})


def sqlite_url(path: Path) -> str:
    """The URL of a SQLite file, whatever letters its name has."""
    return URL.create("sqlite", database=str(path)).render_as_string(hide_password=False)


def open_database(url: str) -> Database:
    """``sqlite:///…``, ``postgresql://…`` or ``postgresql+psycopg://…``. Raises CannotOpen."""
    parsed = _parse(url)
    if parsed.drivername == "sqlite":
        return open_sqlite(parsed)
    if parsed.drivername in POSTGRESQL:
        # Imported where it is used: SQLite goes without libpq.
        from custody.server.store.postgresql import open_postgresql

        return open_postgresql(parsed)
    raise _not_a_url()


def _parse(url: str) -> URL:
    try:
        return make_url(url)
    except Exception:  # noqa: BLE001 - whatever it is, its text may repeat part of a password (P49)
        raise _not_a_url() from None


def _not_a_url() -> CannotOpen:
    return CannotOpen(
        "CUSTODY_DATABASE_URL is not the URL of a database that the platform can use.",
        "Write it like sqlite:////var/lib/custody/custody.db or postgresql://user:password@host/custody; an @ of "
        "the password is written %40.",
    )
