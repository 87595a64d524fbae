"""SQLite: one file, for one machine."""

import sqlite3
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, Final

from sqlalchemy import URL, Connection, Engine, ExceptionContext, event
from sqlalchemy.exc import InvalidRequestError
from sqlalchemy.pool import ConnectionPoolEntry

from custody.server.store.database import (
    BUSY_TIMEOUT_MS,
    READ_POOL,
    CannotOpen,
    Database,
    DatabaseTrouble,
    open_engine,
)

_PRAGMAS = (
    f"busy_timeout={BUSY_TIMEOUT_MS}",
    # FULL: an acknowledged commit survives a power cut.
    "synchronous=FULL",
    "foreign_keys=ON",
)
RETRY_SECONDS = 0.005
# How often a writer tries to take the lock. SQLite's own busy handler waits up to 25 ms between tries, while
# a transaction takes one: the lock would be free most of the time.
TURN_SECONDS = 0.000_2
# The key, in a connection's ``info``, of how long it tries.
PATIENCE_MS: Final = "patience_ms"
_BEGIN: Final = "BEGIN IMMEDIATE"
_SNAPSHOT: Final = "BEGIN"
# The low byte is the primary result code (https://sqlite.org/rescode.html).
_PRIMARY = 0xFF


def open_sqlite(url: URL) -> Database:
    """Creates the file where it is missing. Raises CannotOpen, and OSError where the file cannot be used."""
    if not url.database or url.database == ":memory:" or url.query:
        raise CannotOpen(
            "A SQLite URL names a file and nothing else.",
            "Write it like sqlite:////var/lib/custody/custody.db.",
        )
    # SQLite's WAL and index files inherit the mode.
    Path(url.database).touch(mode=0o600)
    # The write lock is taken at once: a transaction that reads first may find it taken when it writes.
    writing = _engine(url, begin=_take_turn, query_only=False, pool_size=1)
    return Database(
        writing=writing,
        reading=_engine(url, begin=_take_snapshot, query_only=True, pool_size=READ_POOL),
        # The pragmas prepare each connection.
        prepare=lambda _connection: None,
        require_whole=_require_open,
        trouble_of=trouble_of,
        # There is no connection that could break during COMMIT.
        is_undecided=lambda _error: False,
    )


def trouble_of(error: BaseException | None) -> DatabaseTrouble | None:
    if not isinstance(error, sqlite3.OperationalError):
        return None
    # The driver's own errors, like that over a text that is not UTF-8, have no code.
    code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR)
    return DatabaseTrouble.BUSY if code & _PRIMARY == sqlite3.SQLITE_BUSY else None


def _require_open(connection: Connection) -> None:
    """SQLite may have rolled back the transaction; the driver's commit would then do nothing, without an
    error.
    """
    driver: Any = connection.connection.dbapi_connection
    if not driver.in_transaction:
        raise InvalidRequestError("SQLite has rolled back this transaction: it cannot be committed.")


def _take_snapshot(connection: Connection) -> None:
    try:
        connection.connection.cursor().execute(_SNAPSHOT)
    except sqlite3.Error:
        # Again through SQLAlchemy, which wraps the error.
        connection.exec_driver_sql(_SNAPSHOT)


def _take_turn(connection: Connection) -> None:
    """Takes SQLite's write lock. In this process one thread at a time waits for it (`Store`)."""
    begin = partial(connection.connection.cursor().execute, _BEGIN)
    try:
        _once_free(begin, connection.info[PATIENCE_MS], TURN_SECONDS)
    except sqlite3.OperationalError:
        # Again through SQLAlchemy, which wraps the error.
        connection.exec_driver_sql(_BEGIN)


def _once_free(execute: Callable[[], object], patience_ms: float, pause: float) -> None:
    """Raises OperationalError where the database stays busy for so long, or has another trouble."""
    deadline = time.monotonic() + patience_ms / 1_000
    while True:
        try:
            execute()
        except sqlite3.OperationalError as error:
            if trouble_of(error) is not DatabaseTrouble.BUSY or time.monotonic() > deadline:
                raise
            time.sleep(pause)
        else:
            return


def _engine(url: URL, *, begin: Callable[[Connection], None], query_only: bool, pool_size: int) -> Engine:
    engine = open_engine(
        url, pool_size=pool_size, text_of=_text_of, connect_args={"check_same_thread": False}
    )

    @event.listens_for(engine, "connect")
    def configure(connection: Any, record: ConnectionPoolEntry) -> None:
        record.info[PATIENCE_MS] = BUSY_TIMEOUT_MS
        # Otherwise Python's driver begins transactions itself, and only before some statements.
        connection.isolation_level = None
        for pragma in _PRAGMAS:
            connection.execute(f"PRAGMA {pragma}")
        # SQLite's own function handles only ASCII.
        connection.create_function("lower", 1, lambda text: text and text.lower(), deterministic=True)
        _write_ahead(connection)
        # A writer waits only in `_take_turn`.
        connection.execute("PRAGMA query_only=ON" if query_only else "PRAGMA busy_timeout=0")

    event.listen(engine, "begin", begin)
    event.listen(engine, "handle_error", _invalidate_after_rollback)
    return engine


def _text_of(error: BaseException) -> str | None:
    """Without a text that the driver quotes ("Could not decode to UTF-8 column 'email' with text '…'")."""
    text, quotes, _ = str(error).partition(" with text ")
    return text if isinstance(error, sqlite3.OperationalError) and quotes else None


def _invalidate_after_rollback(context: ExceptionContext) -> None:
    """SQLite itself rolls back on some errors, such as a full disk, and would then commit each later
    statement alone. SQLAlchemy refuses statements on a connection that is marked as broken.
    """
    connection = context.connection
    if connection is None or not connection.in_transaction():
        return
    driver: Any = connection.connection.dbapi_connection
    if not driver.in_transaction:
        context.is_disconnect = True
        context.invalidate_pool_on_disconnect = False


def _write_ahead(connection: sqlite3.Connection) -> None:
    """Switches to WAL. It retries, because SQLite refuses this without waiting while another process opens
    the same new file.
    """
    _once_free(partial(connection.execute, "PRAGMA journal_mode=WAL"), BUSY_TIMEOUT_MS, RETRY_SECONDS)
