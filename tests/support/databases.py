"""A platform's database of either kind, read and changed beside the platform."""

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from sqlalchemy import event, inspect, text
from sqlalchemy.orm import Session

from custody.server.store import Store, sqlite_url
from custody.server.store.sqlite import PATIENCE_MS


def make_sqlite(file: Path) -> None:
    """A fresh database with the tables, copied from one that is made once."""
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(_with_tables())


@cache
def _with_tables() -> bytes:
    with TemporaryDirectory() as folder:
        file = Path(folder, "custody.db")
        Store.open(sqlite_url(file)).close()
        return file.read_bytes()


def make_impatient(store: Store) -> None:
    """Its writing connection waits for the writers' lock for a millisecond instead of seconds."""
    with store.write() as db:
        if kind_of(store) == "sqlite":
            db.connection().info[PATIENCE_MS] = 1
        else:
            db.execute(text("SET lock_timeout = '1ms'"))


def kind_of(store: Store) -> str:
    with store.read() as db:
        return db.get_bind().dialect.name


class Asked(list[tuple[str, Any]]):
    """Each statement with its parameters, None where it is sent for many rows; and how many transactions
    began. What opens one is no statement: SQLite's BEGIN, and PostgreSQL's lock for writers.
    """

    transactions = 0


@contextmanager
def statements_of(store: Store) -> Iterator[Asked]:
    """What the store is asked meanwhile."""
    asked = Asked()
    engines = {store._database.reading, store._database.writing}

    def note(_connection, _cursor, statement, parameters, _context, many):
        if not statement.startswith("BEGIN") and "pg_advisory" not in statement:
            asked.append((statement, None if many else parameters))

    def begin(_connection):
        asked.transactions += 1

    noted = (("before_cursor_execute", note), ("begin", begin))
    for engine in engines:
        for name, function in noted:
            event.listen(engine, name, function)
    try:
        yield asked
    finally:
        for engine in engines:
            for name, function in noted:
                event.remove(engine, name, function)


class _Undone(Exception):
    pass


@contextmanager
def undone(store: Store) -> Iterator[Session]:
    """One transaction, as an example needs it: rolled back at the end."""
    with suppress(_Undone), store.write() as db:
        yield db
        raise _Undone


def everything_stored(store: Store) -> str:
    """Every value of every table as text, bytes as databases print them."""
    with store.read() as db:
        tables = inspect(db.connection()).get_table_names()
        rows = [row for table in tables for row in db.execute(text(f'SELECT * FROM "{table}"'))]
    return "\n".join(_shown(value) for row in rows for value in row)


def _shown(value: object) -> str:
    if isinstance(value, bytes | memoryview):
        return bytes(value).decode("latin-1")
    return str(value)
