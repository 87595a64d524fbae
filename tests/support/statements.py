"""SQL that is compiled once for each pytest process, not for each test's database.

SQLAlchemy caches compiled statements by engine and dialect. Each test opens an engine of its own, and would
spend a fifth of its time on the same statements.
"""

from typing import Any

from sqlalchemy import Connection, Engine, event
from sqlalchemy.dialects import registry
from sqlalchemy.dialects.postgresql.psycopg import PGDialect_psycopg
from sqlalchemy.dialects.sqlite.pysqlite import SQLiteDialect_pysqlite

_COMPILED: dict[Any, Any] = {}


class _Alike:
    """A dialect that is equal in all engines of the same kind and version of database."""

    def _kind(self) -> tuple[object, ...]:
        return (type(self), self.paramstyle, getattr(self, "server_version_info", None))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Alike) and self._kind() == other._kind()

    def __hash__(self) -> int:
        return hash(type(self))


class SQLite(_Alike, SQLiteDialect_pysqlite):
    supports_statement_cache = True


class PostgreSQL(_Alike, PGDialect_psycopg):
    supports_statement_cache = True


def share() -> None:
    """Shares compiled statements between all later engines of this process."""
    registry.register("sqlite", __name__, "SQLite")
    registry.register("postgresql.psycopg", __name__, "PostgreSQL")
    event.listen(Engine, "engine_connect", _use)


def _use(connection: Connection) -> None:
    connection.execution_options(compiled_cache=_COMPILED)
