"""The base of every table: constraint names for migrations, and column types that both databases store
alike.
"""

import re
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any, ClassVar, cast

from sqlalchemy import JSON, BigInteger, DateTime, Integer, LargeBinary, MetaData, Table, text
from sqlalchemy.engine import Dialect
from sqlalchemy.orm import DeclarativeBase, declared_attr
from sqlalchemy.types import TypeDecorator

# Explicit names, because a migration must name what it drops: SQLite generates none, and PostgreSQL its own.
NAMING = {
    "ix": "ix_%(column_0_N_label)s",
    "uq": "uq_%(table_name)s_%(column_0_N_name)s",
    "ck": "ck_%(table_name)s_%(constraint_name)s",
    "fk": "fk_%(table_name)s_%(column_0_N_name)s_%(referred_table_name)s",
    "pk": "pk_%(table_name)s",
}
# SQLite assigns row numbers only in a column declared INTEGER; PostgreSQL needs BIGINT for 64 bits.
Int64 = BigInteger().with_variant(Integer(), "sqlite")


def only_where(condition: str, sqlite: str | None = None) -> dict[str, Any]:
    """Of a partial index, on both databases. ``sqlite``: the condition there, where it is written otherwise:
    a query must have exactly its text to use the index.
    """
    return {"sqlite_where": text(sqlite or condition), "postgresql_where": text(condition)}


class Altered:
    """In the place of a value that the column cannot hold but SQLite stored all the same: whoever uses it
    fails, for that row alone (`custody.server.shown`).
    """


def _tolerant(process: Callable[[Any], Any] | None) -> Callable[[Any], Any]:
    def read(stored: Any) -> Any:
        try:
            return stored if process is None else process(stored)
        except (ValueError, TypeError):
            return Altered()

    return read


class UtcTime(TypeDecorator[datetime]):
    """An instant. Refuses a time without a zone when written; reads come back in UTC."""

    impl = DateTime(timezone=True)
    cache_ok = True

    def result_processor(self, dialect: Dialect, coltype: object) -> Callable[[Any], Any]:
        return _tolerant(super().result_processor(dialect, coltype))

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        if value is None:
            return None
        if value.tzinfo is None:
            raise ValueError("a stored time needs its zone")
        moment = value.astimezone(UTC)
        return moment.replace(tzinfo=None) if dialect.name == "sqlite" else moment

    def process_result_value(self, value: datetime | None, dialect: Dialect) -> datetime | None:  # noqa: ARG002 - the signature is SQLAlchemy's
        if value is None:
            return None
        return value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)


class Json(TypeDecorator[Any]):
    impl = JSON
    cache_ok = True

    def result_processor(self, dialect: Dialect, coltype: object) -> Callable[[Any], Any]:
        return _tolerant(super().result_processor(dialect, coltype))


class Base(DeclarativeBase):
    """A table is called by its class: `AuditHeadRow` has ``audit_heads``."""

    metadata = MetaData(naming_convention=NAMING)
    type_annotation_map: ClassVar[dict[Any, Any]] = {
        int: Int64,
        datetime: UtcTime,
        bytes: LargeBinary,
        dict[str, Any]: Json,
        list[str]: Json,
        list[int]: Json,
        list[dict[str, Any]]: Json,
    }

    @declared_attr.directive
    def __tablename__(cls) -> str:  # noqa: N805 - SQLAlchemy asks the class
        words = re.sub("(?<!^)(?=[A-Z])", "_", cls.__name__.removesuffix("Row")).lower()
        return re.sub("([^aeiou])y$", r"\1ie", words) + "s"


def table_of(model: type[Base]) -> Table:
    """The Core table, for statements without a session's bookkeeping: inserts take a seventh of the time."""
    return cast("Table", model.__table__)
