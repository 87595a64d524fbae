"""Statements on their way to a database, and what comes back. How they get there is each kind of database's own affair."""

from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple, NoReturn, Protocol

from sqlalchemy import Connection
from sqlalchemy.exc import IntegrityError

Rows = Sequence[tuple[Any, ...]]
Refusal = Callable[[], Exception]
# A primary key or another index that takes each value once: PostgreSQL's manual, Appendix A; https://sqlite.org/rescode.html.
_DUPLICATES: Final = frozenset({"23505", "SQLITE_CONSTRAINT_PRIMARYKEY", "SQLITE_CONSTRAINT_UNIQUE"})
# Where a connection keeps its own: in its ``info``.
WIRE: Final = "wire"


class Statement(NamedTuple):
    """``sql`` with the database's own placeholders, ``given`` in their order. ``tables`` are those that it changes.

    ``around``: what the database is told before and after it. ``refused``: what it means that there is such a row already.
    """

    sql: str
    given: tuple[Any, ...] = ()
    tables: frozenset[str] = frozenset()
    around: tuple[str, str] | None = None
    refused: Refusal | None = None


class Outcome(NamedTuple):
    """What came of statements: the answers of those that were done, each without rows where it is of no question.

    ``error``: of the one after those. Whatever stands behind it was not done, unless it was the answer that could not be read.
    ``was_sent``: whether anything was, at all.
    """

    answers: Sequence[Rows]
    error: Exception | None = None
    was_sent: bool = True


class Wire(Protocol):
    """To a database, by one connection of its driver's."""

    @property
    def is_broken(self) -> bool:
        """Nothing can be exchanged any more."""

    def exchange(self, statements: Sequence[Statement]) -> Outcome:
        """Has them done one after the other, to the first that fails by an error of the driver's."""


def exchange(connection: Connection, statements: Sequence[Statement]) -> Outcome:
    """Whoever listens to SQLAlchemy's ``before_cursor_execute`` hears of each first, without a cursor."""
    heard = connection.dispatch.before_cursor_execute
    for statement in statements if heard else ():
        for hear in heard:
            hear(connection, None, statement.sql, statement.given, None, False)  # noqa: FBT003 - the listener's shape
    wire: Wire = connection.info[WIRE]
    try:
        return wire.exchange(statements)
    except BaseException:
        if wire.is_broken:
            # Or SQLAlchemy would roll back what is gone, and raise that instead.
            connection.invalidate()
        raise


def answers_of(connection: Connection, statements: Sequence[Statement], outcome: Outcome) -> Sequence[Rows]:
    """Raises what SQLAlchemy raises, or what the statement that failed says instead."""
    if outcome.error is not None:
        # Where the connection breaks after the last answer, it is not certain that it was the last word.
        failed = statements[min(len(outcome.answers), len(statements) - 1)]
        try:
            _raise(connection, outcome.error, failed.sql)
        except IntegrityError as error:
            if failed.refused is None or _code(error.orig) not in _DUPLICATES:
                raise
            raise failed.refused() from error
    return outcome.answers


def _code(error: BaseException | None) -> object:
    return getattr(error, "sqlstate", None) or getattr(error, "sqlite_errorname", None)


def _raise(connection: Connection, error: Exception, sql: str) -> NoReturn:
    """The driver's errors as SQLAlchemy raises them: named, without what was stored, the connection given up where it is broken."""
    driver: Any = connection.dialect.dbapi
    if not isinstance(error, driver.Error):
        raise error
    handle = connection._handle_dbapi_exception  # noqa: SLF001 - there is no public door to it
    handle(error, sql, None, None, None)
