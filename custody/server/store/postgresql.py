"""PostgreSQL: one database, for any number of processes on any number of machines."""

import logging
from collections.abc import Mapping
from typing import Any, Final

import psycopg
from sqlalchemy import URL, Connection, Engine, event
from sqlalchemy.exc import InvalidRequestError

from custody.common.exchange import is_loopback
from custody.server.store.database import (
    BUSY_TIMEOUT_MS,
    READ_POOL,
    CannotOpen,
    Database,
    DatabaseTrouble,
    open_engine,
)

# Every transaction that writes takes this advisory lock first: one writer at a time, as on SQLite (ADR 13).
WRITER_KEY: Final = int.from_bytes(b"custody")

# Generous, for a live server on a busy machine takes seconds too.
CONNECT_TIMEOUT_SECONDS = 10
# A request's statements take milliseconds; a worker's longest, over a whole reorganisation, a second or two.
STATEMENT_TIMEOUT_MS = 30_000
# A process that hangs between two statements must not keep the lock from all others.
IDLE_TIMEOUT_MS = 30_000
# A new version's migration may rewrite a table.
MIGRATION_TIMEOUT_MS = 600_000
# A lost machine sends no TCP reset: the connection fails after this long without an acknowledgement.
SILENCE_TIMEOUT_MS = 20_000
KEEPALIVE_SECONDS, KEEPALIVE_INTERVAL_SECONDS, KEEPALIVE_COUNT = 10, 5, 2

_SESSION = {
    "lock_timeout": BUSY_TIMEOUT_MS,
    "statement_timeout": STATEMENT_TIMEOUT_MS,
    "idle_in_transaction_session_timeout": IDLE_TIMEOUT_MS,
    # An acknowledged commit survives a power cut, whatever the server's configuration says.
    "synchronous_commit": "on",
    "timezone": "UTC",
    # JIT compilation takes longer than any of our statements.
    "jit": "off",
}
# The parameters that a URL may have: where the server is, and how to authenticate it. A password belongs
# before the @, where it is hidden wherever a URL is shown.
PARAMETERS = frozenset(
    {"host", "port", "sslmode", "sslrootcert", "sslcert", "sslkey", "channel_binding", "passfile"}
)

# Appendix A of PostgreSQL's manual: lock or statement timeouts; insufficient resources (class 53);
# transaction rollback (class 40).
_BUSY_STATES = frozenset({"55P03", "57014"})
_BUSY_CLASSES = frozenset({"40", "53"})
# Connection exceptions (class 08), shutdown, crash, idle timeout.
_AWAY_STATES = frozenset({"25P03", "57P01", "57P02", "57P03", "57P05"})
_AWAY_CLASSES = frozenset({"08"})
# Any other class is an answer of a living server: then COMMIT became ROLLBACK.
_UNDECIDED_CLASSES = frozenset({"08", "57"})
# Messages of this class quote values.
_QUOTING_CLASS = "22"


def open_postgresql(url: URL) -> Database:
    """Raises CannotOpen. Nothing is connected yet."""
    _check(url)
    # For a statement with many rows psycopg logs a warning with the error's text, which quotes values (P49).
    logging.getLogger("psycopg").setLevel(logging.ERROR)
    url = url.set(drivername="postgresql+psycopg")
    # With READ COMMITTED, a transaction that has taken the lock sees all earlier commits.
    writing = _engine(url, "READ COMMITTED", pool_size=1)
    event.listen(writing, "begin", _take_turn)
    readers = {"default_transaction_read_only": "on"}
    return Database(
        writing=writing,
        reading=_engine(url, "REPEATABLE READ", pool_size=READ_POOL, session=readers),
        prepare=_prepare,
        require_whole=_require_whole,
        trouble_of=trouble_of,
        is_undecided=is_undecided,
    )


def trouble_of(error: BaseException | None) -> DatabaseTrouble | None:
    if not isinstance(error, psycopg.Error):
        return None
    state = error.sqlstate
    if state is None:
        # libpq's own: no connection was made, or it broke.
        return DatabaseTrouble.AWAY if isinstance(error, psycopg.OperationalError) else None
    if state in _AWAY_STATES or state[:2] in _AWAY_CLASSES:
        return DatabaseTrouble.AWAY
    if state in _BUSY_STATES or state[:2] in _BUSY_CLASSES:
        return DatabaseTrouble.BUSY
    return None


def is_undecided(error: BaseException | None) -> bool:
    """The connection or the server was lost after COMMIT was sent and before its answer came."""
    if not isinstance(error, psycopg.OperationalError):
        return False
    return error.sqlstate is None or error.sqlstate[:2] in _UNDECIDED_CLASSES


def _check(url: URL) -> None:
    unknown = sorted(url.query.keys() - PARAMETERS)
    if unknown:
        raise CannotOpen(
            f"A PostgreSQL URL does not take {', '.join(unknown)}.",
            f"After the question mark it takes {', '.join(sorted(PARAMETERS))}; "
            "the password stands before the @.",
        )
    if not url.database:
        raise CannotOpen(
            "The PostgreSQL URL names no database.", "Write it like postgresql://user@host/custody."
        )
    if _is_elsewhere(url) and "sslmode" not in url.query:
        raise CannotOpen(
            "The PostgreSQL URL names another machine and does not say how to authenticate it.",
            "Add sslmode=verify-full and sslrootcert=FILE; "
            "on a network that is yours alone, sslmode=disable.",
        )


def _is_elsewhere(url: URL) -> bool:
    """By default libpq continues in plain text where a server, or a middleman, offers nothing else."""
    named = url.query.get("host", url.host or "")
    hosts = (named,) if isinstance(named, str) else named
    return not all(not host or host.startswith("/") or is_loopback(host) for host in hosts)


def _engine(
    url: URL, isolation_level: str, *, pool_size: int, session: Mapping[str, object] | None = None
) -> Engine:
    settings = {**_SESSION, **(session or {})}
    return open_engine(
        url,
        pool_size=pool_size,
        text_of=_text_of,
        isolation_level=isolation_level,
        # Replaces connections that broke while idle.
        pool_pre_ping=True,
        connect_args={
            "application_name": "custody",
            "options": " ".join(f"-c {name}={value}" for name, value in settings.items()),
            "connect_timeout": CONNECT_TIMEOUT_SECONDS,
            "tcp_user_timeout": SILENCE_TIMEOUT_MS,
            "keepalives_idle": KEEPALIVE_SECONDS,
            "keepalives_interval": KEEPALIVE_INTERVAL_SECONDS,
            "keepalives_count": KEEPALIVE_COUNT,
            # A prepared statement may get a generic plan, which reads and sorts all coins of a large vault.
            "prepare_threshold": None,
        },
    )


def _take_turn(connection: Connection) -> None:
    """Takes the write lock, which the server holds to the end of the transaction."""
    connection.exec_driver_sql(f"SELECT pg_advisory_xact_lock({WRITER_KEY})")


def _require_whole(connection: Connection) -> None:
    """After a failed statement the server answers COMMIT with a silent rollback, and the driver reports no
    error where there is no transaction.
    """
    driver: Any = connection.connection.dbapi_connection
    if driver.info.transaction_status != psycopg.pq.TransactionStatus.INTRANS:
        raise InvalidRequestError(
            "A statement of this transaction has failed, or it is over: it cannot be committed."
        )


def _prepare(connection: Connection) -> None:
    encoding = connection.exec_driver_sql("SHOW server_encoding").scalar_one()
    if encoding != "UTF8":
        raise CannotOpen(
            f"The database's encoding is {encoding}, which cannot store every character.",
            "Create it again: CREATE DATABASE custody ENCODING 'UTF8' LOCALE 'C.UTF-8' TEMPLATE template0;",
        )
    connection.exec_driver_sql(f"SET LOCAL statement_timeout = {MIGRATION_TIMEOUT_MS}")


def _text_of(error: BaseException) -> str | None:
    """Without values that PostgreSQL quotes ("Key (email)=(…) already exists")."""
    if not isinstance(error, psycopg.Error) or error.sqlstate is None:
        return None
    quotes = error.sqlstate.startswith(_QUOTING_CLASS)
    text = type(error).__name__ if quotes else error.diag.message_primary or type(error).__name__
    return f"{text} [{error.sqlstate}]"
