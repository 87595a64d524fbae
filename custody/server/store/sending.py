"""Sends statements by a session's way to the database, with what was kept back until then."""

from collections.abc import Sequence
from typing import Any, Final, NoReturn

from sqlalchemy import Connection
from sqlalchemy.exc import IntegrityError, InvalidRequestError
from sqlalchemy.orm import Session

from custody.server.store.way import Way, way_of
from custody.server.store.wire import WIRE, Outcome, Rows, Statement, Wire

# A primary key or another index that takes each value once: PostgreSQL's manual, Appendix A; https://sqlite.org/rescode.html.
_DUPLICATES: Final = frozenset({"23505", "SQLITE_CONSTRAINT_PRIMARYKEY", "SQLITE_CONSTRAINT_UNIQUE"})


def send(way: Way, *statements: Statement) -> Sequence[Rows]:
    """What each of them answers, once what was kept back is done. Raises what SQLAlchemy raises, from that too: the first error
    that there is. What stands after it was not done.

    Raises InvalidRequestError where the transaction is over, by an error that somebody let pass: what came after it would stand by itself.
    """
    ahead = way.ahead
    if not way.connection.in_transaction():
        raise InvalidRequestError("The transaction is over: nothing more belongs to it.")
    if ahead is None and len(statements) == 1 and statements[0].around is None:
        # Nothing goes with it, as nearly always on SQLite.
        return _answers_of(way, statements, _exchange(way, statements))
    every = list(ahead.kept) if ahead is not None else []
    places = _told_around(statements, every)
    if not every:
        return ()
    outcome = _exchange(way, every)
    if ahead is not None and outcome.was_sent:
        ahead.sent()
    answers = _answers_of(way, every, outcome)
    return [answers[place] for place in places]


def _told_around(statements: Sequence[Statement], every: list[Statement]) -> list[int]:
    """Adds them to ``every``, with what is told before and after each: their places there."""
    places, around = list[int](), None
    for statement in statements:
        if statement.around != around:
            every.extend(_told(around, 1))
            every.extend(_told(statement.around, 0))
            around = statement.around
        places.append(len(every))
        every.append(statement)
    if around is not None:
        every.extend(_told(around, 1))
    return places


def _told(around: tuple[str, str] | None, place: int) -> list[Statement]:
    return [] if around is None else [Statement(around[place])]


def send_kept(db: Session) -> None:
    """Whatever was kept back, if anything was."""
    way = way_of(db)
    if way.ahead is not None and way.ahead.kept:
        send(way)


def ask_alone(connection: Connection, statement: Statement) -> Rows:
    """In no transaction but its own. Raises what SQLAlchemy raises."""
    way = Way(connection)
    return _answers_of(way, [statement], _exchange(way, [statement]))[0]


def _exchange(way: Way, statements: Sequence[Statement]) -> Outcome:
    """Whoever listens to SQLAlchemy's ``before_cursor_execute`` hears of each first, without a cursor."""
    connection = way.connection
    for hear in way.heard:
        for statement in statements:
            hear(connection, None, statement.sql, statement.given, None, False)  # noqa: FBT003 - the listener's shape
    wire: Wire = connection.info[WIRE]
    try:
        return wire.exchange(statements)
    except BaseException:
        if wire.is_broken:
            # Or SQLAlchemy would roll back what is gone, and raise that instead.
            connection.invalidate()
        raise


def _answers_of(way: Way, statements: Sequence[Statement], outcome: Outcome) -> Sequence[Rows]:
    """Raises what SQLAlchemy raises, or what the statement that failed says instead."""
    if outcome.error is not None:
        if outcome.is_over and (transaction := way.connection.get_transaction()) is not None:
            # What comes next is refused.
            transaction.rollback()
        # Where the connection breaks after the last answer, it is not certain that it was the last word.
        failed = statements[min(len(outcome.answers), len(statements) - 1)]
        try:
            _raise(way.connection, outcome.error, failed.sql)
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
