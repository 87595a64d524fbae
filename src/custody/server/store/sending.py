"""Statements on their way to the driver: one by one, or where a database takes them so, several together.

To PostgreSQL every question is a way there and back, which takes both sides longer than most answers do. libpq's pipeline
(PostgreSQL's manual, "Pipeline Mode") makes one of many. SQLite is no way off.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple, NoReturn, Protocol

from sqlalchemy import Connection
from sqlalchemy.exc import InvalidRequestError
from sqlalchemy.orm import Session

from custody.server.store.connection import driver_cursor

Rows = Sequence[tuple[Any, ...]]
_AHEAD: Final = "what goes together"


class How(NamedTuple):
    """``driver``: what is said to the driver with a statement. ``before``: what the transaction has to be told first, once."""

    driver: Mapping[str, bool]
    before: str | None = None


# A prepared statement gets one plan for all values in the end, which PostgreSQL makes without knowing any. To the first few along an
# index there is one way that is good for all; it would guess of some vaults that all their coins are best read and sorted.
_WALK: Final = "SELECT " + ", ".join(
    f"set_config('{name}', '{value}', true)"
    for name, value in {
        "plan_cache_mode": "force_generic_plan",
        "enable_seqscan": "off",
        "enable_bitmapscan": "off",
        "enable_sort": "off",
    }.items()
)
PLAIN: Final = How({})
PREPARED: Final = How({"prepare": True})
PREPARED_WALK: Final = How({"prepare": True}, _WALK)


class Statement(NamedTuple):
    """``tables`` are those that it changes."""

    sql: str
    given: Any
    how: How
    tables: frozenset[str]


class Asker(Protocol):
    """Whose answers are kept: a statement without its values."""

    @property
    def tables(self) -> frozenset[str]: ...

    def __hash__(self) -> int: ...


class Ahead:
    """One transaction's: writes that nobody waits for, and answers that are there before anybody asks."""

    def __init__(self) -> None:
        self._kept: list[Statement] = []
        self._told: set[str | None] = set()
        self.has_failed = False
        # By who asks: for each of the values, the answer.
        self._answers: dict[Asker, list[tuple[Mapping[str, object], Rows]]] = {}

    def keep(self, statement: Statement) -> None:
        self._kept.append(statement)
        self.forget(statement.tables)

    def before(self, following: Sequence[Statement]) -> list[Statement]:
        """What has to be sent before those are: what was kept back, and what they want said."""
        wanted = {statement.how.before for statement in following} - self._told - {None}
        said = [Statement(each, None, PREPARED, frozenset()) for each in wanted if each is not None]
        return [*self._kept, *said]

    def goes_first(self, *following: Statement) -> bool:
        """Whether anything has to be sent before those, or must be refused as they must."""
        return self.has_failed or bool(self.before(following))

    def sent(self, statements: Sequence[Statement]) -> None:
        """They were done: what never left stays."""
        self._kept.clear()
        self._told.update(statement.sql for statement in statements)

    def learn(self, asker: Asker, values: Mapping[str, object], rows: Rows) -> None:
        self._answers.setdefault(asker, []).append((values, rows))

    def answer(self, asker: Asker, values: Mapping[str, object]) -> Rows | None:
        for known, rows in self._answers.get(asker, ()):
            if known == values:
                return rows
        return None

    def forget(self, tables: frozenset[str]) -> None:
        """What somebody has changed. An empty set: whatever it was."""
        for asker in list(self._answers):
            if not tables or not tables.isdisjoint(asker.tables):
                del self._answers[asker]


def ahead_of(db: Session) -> Ahead | None:
    """None where nothing is gained by sending statements together."""
    ahead: Ahead | None = db.info.get(_AHEAD)
    return ahead


def sends_together(db: Session) -> None:
    """From here on, to the end of the session's transaction."""
    db.info[_AHEAD] = Ahead()


def ask(db: Session, connection: Connection, statement: Statement) -> Rows:
    """What it answers. Raises what SQLAlchemy raises, from whatever was kept back too."""
    ahead = ahead_of(db)
    if ahead is not None and ahead.goes_first(statement):
        return ask_together(db, connection, ahead, [statement])[0]
    return ask_at(connection, driver_cursor(db, connection), statement)


def say(connection: Connection, sql: str) -> None:
    """Of whose answers nothing is wanted: it begins a transaction."""
    cursor: Any = connection.connection.cursor()
    _tell_listeners(connection, cursor, sql, None)
    try:
        cursor.execute(sql)
    except BaseException as error:  # noqa: BLE001 - SQLAlchemy raises it again, by its own name
        _raise(connection, error, sql)


def ask_at(connection: Connection, cursor: Any, statement: Statement) -> Rows:
    """By a cursor of the driver's."""
    sql, given, how, _ = statement
    _tell_listeners(connection, cursor, sql, given)
    try:
        cursor.execute(sql, given, **how.driver)
        rows: Rows = cursor.fetchall()
    except BaseException as error:  # noqa: BLE001 - SQLAlchemy raises it again, by its own name
        _raise(connection, error, sql)
    return rows


def tell(db: Session, connection: Connection, sql: str, rows: Sequence[Any]) -> None:
    """Has it done for each of the rows."""
    is_one = len(rows) == 1
    cursor = driver_cursor(db, connection)
    _tell_listeners(connection, cursor, sql, rows[0] if is_one else rows)
    try:
        if is_one:
            cursor.execute(sql, rows[0])
        else:
            cursor.executemany(sql, rows)
    except BaseException as error:  # noqa: BLE001 - SQLAlchemy raises it again, by its own name
        _raise(connection, error, sql)


def send_kept(db: Session) -> None:
    """Whatever was kept back, if anything was."""
    ahead = ahead_of(db)
    if ahead is not None and ahead.goes_first():
        ask_together(db, db.connection(), ahead, [])


def ask_together(db: Session, connection: Connection, ahead: Ahead, asked: Sequence[Statement]) -> list[Rows]:
    """What each of them answers, once what was kept back is done: nothing, where it changes something.

    Raises the error of the first that fails; those after it were not done.
    """
    if ahead.has_failed:
        raise InvalidRequestError(
            "What went together has failed: nothing of this transaction can be committed."
        )
    before = ahead.before(asked)
    statements = [*before, *asked]
    own = driver_cursor(db, connection)
    for sql, given, _, _ in statements:
        _tell_listeners(connection, own, sql, given)
    driver: Any = connection.connection.dbapi_connection
    cursors: list[Any] = []
    try:
        with driver.pipeline():
            for sql, given, how, _ in statements:
                cursors.append(driver.cursor())
                cursors[-1].execute(sql, given, **how.driver)
        ahead.sent(before)
        return [() if each.description is None else each.fetchall() for each in cursors[len(before) :]]
    except BaseException as error:  # noqa: BLE001 - SQLAlchemy raises it again, by its own name
        # How far it came is not certain: the driver may have refused a value of one when others were done.
        ahead.has_failed = True
        done = sum(cursor.pgresult is not None for cursor in cursors)
        _raise(connection, error, statements[min(done, len(statements) - 1)].sql)


def _tell_listeners(connection: Connection, cursor: Any, sql: str, given: Any) -> None:
    for hear in connection.dispatch.before_cursor_execute:
        hear(connection, cursor, sql, given, None, False)  # noqa: FBT003 - the listener's shape


def _raise(connection: Connection, error: BaseException, sql: str) -> NoReturn:
    """The driver's errors as SQLAlchemy raises them: named, without what was stored, the connection given up where it is broken."""
    driver: Any = connection.dialect.dbapi
    if isinstance(error, Exception) and not isinstance(error, driver.Error):
        raise error
    handle = connection._handle_dbapi_exception  # noqa: SLF001 - there is no public door to it
    # Without the cursor, which it would close: a session goes on with it.
    handle(error, sql, None, None, None)
