"""Statements that are put together once and handed to the driver: what every request asks, much of it while other writers wait.

SQLAlchemy writes the SQL for both databases, and knows how each value is stored. What it does around an execution takes
several times as long as the driver does over it, so none of that happens here, but for errors, which it names, and for
whoever listens to its ``before_cursor_execute`` (ADR 24).
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Generic, NoReturn, TypeVarTuple, cast

from sqlalchemy import Connection, Insert
from sqlalchemy.engine import Dialect
from sqlalchemy.orm import Session
from sqlalchemy.sql.compiler import SQLCompiler
from sqlalchemy.sql.dml import UpdateBase
from sqlalchemy.sql.selectable import TypedReturnsRows

from custody.server.store.plain import driver_cursor, plain

Values = Mapping[str, object]
Columns = TypeVarTuple("Columns")
_Convert = Callable[[Any], Any]
_Read = Callable[[Sequence[Sequence[Any]]], list[tuple[Any, ...]]]
_NOTHING: Final[Values] = {}


class Query(Generic[*Columns]):
    """A statement that answers with rows, each a tuple of its columns. Raises what SQLAlchemy raises.

    Where it takes lists for an ``IN``, the SQL is kept for each of their lengths: for lists that are bounded.
    ``by_value``: how it is best answered depends on the values, so that the database plans it anew each time.
    """

    def __init__(self, clause: TypedReturnsRows[*Columns], *, by_value: bool = False) -> None:
        self._clause = clause
        self._by_value = by_value
        self._known: dict[str, tuple[_Compiled, _Read | None, Mapping[str, bool]]] = {}

    def all(self, db: Session, values: Values = _NOTHING) -> list[tuple[*Columns]]:
        connection = plain(db)
        known = self._known.get(connection.dialect.name) or self._compile(connection.dialect)
        compiled, read, how = known
        text = compiled.text(values)
        rows = _ask(db, connection, text.sql, text.given(values), how)
        return cast("list[tuple[*Columns]]", rows if read is None else read(rows))

    def first(self, db: Session, values: Values = _NOTHING) -> tuple[*Columns] | None:
        """Of the few that it answers with: all are fetched."""
        rows = self.all(db, values)
        return rows[0] if rows else None

    def value(self, db: Session, values: Values = _NOTHING) -> Any:
        """The first column of the first row; None where there is no row."""
        row = self.first(db, values)
        return None if row is None else cast("tuple[Any, ...]", row)[0]

    def _compile(self, dialect: Dialect) -> "tuple[_Compiled, _Read | None, Mapping[str, bool]]":
        kinds = [column.type.dialect_impl(dialect) for column in self._clause.exported_columns]
        read = _reader([kind.result_processor(dialect, None) for kind in kinds])
        how = {"prepare": not self._by_value} if dialect.name == "postgresql" else {}
        return self._known.setdefault(dialect.name, (_Compiled(self._clause, dialect), read, how))


class Change:
    """An INSERT, UPDATE or DELETE over a plain table, which answers with nothing. Raises what SQLAlchemy raises.

    No default of a model counts here: whatever has one is given.
    """

    def __init__(self, clause: UpdateBase) -> None:
        # Inline: the number that the database gives a new row is not asked for.
        self._clause = clause.inline() if isinstance(clause, Insert) else clause
        self._known: dict[tuple[str, frozenset[str]], _Text] = {}

    def run(self, db: Session, *rows: Values) -> None:
        """Once for each of them; all have the same keys."""
        if rows:
            connection = plain(db)
            text = self._text(connection.dialect, frozenset(rows[0]))
            _tell(db, connection, text.sql, [text.given(row) for row in rows])

    def _text(self, dialect: Dialect, keys: frozenset[str]) -> "_Text":
        known = self._known.get((dialect.name, keys))
        if known is not None:
            return known
        text = _Compiled(self._clause, dialect, keys).text(_NOTHING)
        return self._known.setdefault((dialect.name, keys), text)


class _Compiled:
    """A statement for one kind of database, whatever the lengths of its lists."""

    def __init__(self, clause: Any, dialect: Dialect, keys: frozenset[str] = frozenset()) -> None:
        self._sql: SQLCompiler = clause.compile(dialect=dialect, column_keys=sorted(keys) or None)
        assert keys.issuperset(column.key for column in self._sql.insert_prefetch), "defaults are given"
        self._dialect = dialect
        binds = {key: self._sql.binds[key] for key in self._sql.bind_names.values()}
        lists = [key for key, bind in binds.items() if bind.expanding]
        self._fixed = {key: bind.value for key, bind in binds.items() if not bind.required}
        self._lists = [key for key in lists if key not in self._fixed]
        self._texts: dict[tuple[int, ...], _Text] = {}

    def text(self, values: Values) -> "_Text":
        lengths = tuple([len(cast("Sequence[object]", values[key])) for key in self._lists])
        known = self._texts.get(lengths)
        if known is not None:
            return known
        given = {key: [None] * length for key, length in zip(self._lists, lengths, strict=True)}
        return self._texts.setdefault(lengths, self._expanded(given))

    def _expanded(self, lists: Mapping[str, Sequence[None]]) -> "_Text":
        binds = {key: self._sql.binds[key] for key in self._sql.bind_names.values()}
        state = self._sql.construct_expanded_state({**dict.fromkeys(binds), **self._fixed, **lists})
        members = state.parameter_expansion
        kinds = {name: bind.type for key, bind in binds.items() for name in members.get(key, [key])}
        binders = {
            name: kind.dialect_impl(self._dialect).bind_processor(self._dialect)
            for name, kind in kinds.items()
        }
        fixed = _spread(self._fixed, {key: names for key, names in members.items() if key in self._fixed})
        return _Text(
            state.statement,
            [(name, binders[name]) for name in state.positiontup or kinds],
            fixed,
            {key: members[key] for key in self._lists},
            is_positional=self._sql.positional,
        )


@dataclass(frozen=True)
class _Text:
    """The SQL as the driver takes it, and how its values are given: by their order in it, or by name.

    ``fixed`` are the statement's own values, ``members`` the names that stand for each list.
    """

    sql: str
    places: Sequence[tuple[str, _Convert | None]]
    fixed: Values
    members: Mapping[str, Sequence[str]]
    is_positional: bool

    def given(self, values: Values) -> Any:
        """A value that is missing is a KeyError."""
        if self.fixed:
            values = {**self.fixed, **values}
        if self.members:
            values = _spread(values, self.members)
        if self.is_positional:
            return tuple([values[name] if bind is None else bind(values[name]) for name, bind in self.places])
        return {name: values[name] if bind is None else bind(values[name]) for name, bind in self.places}


def _spread(values: Values, members: Mapping[str, Sequence[str]]) -> Values:
    """With each element of a list by its own name."""
    spread = dict(values)
    for key, names in members.items():
        spread |= zip(names, cast("Sequence[object]", values[key]), strict=True)
    return spread


def _reader(converts: Sequence[_Convert | None]) -> _Read | None:
    """None where every column is as the driver gives it."""
    if not any(converts):
        return None
    return lambda rows: [
        tuple(
            [
                value if convert is None else convert(value)
                for convert, value in zip(converts, row, strict=True)
            ]
        )
        for row in rows
    ]


def _ask(
    db: Session, connection: Connection, sql: str, given: Any, how: Mapping[str, bool]
) -> list[tuple[Any, ...]]:
    cursor = _cursor(db, connection, sql, given)
    try:
        cursor.execute(sql, given, **how)
        rows: list[tuple[Any, ...]] = cursor.fetchall()
    except BaseException as error:  # noqa: BLE001 - SQLAlchemy raises it again, by its own name
        _raise(connection, error, sql)
    return rows


def _tell(db: Session, connection: Connection, sql: str, rows: Sequence[Any]) -> None:
    is_one = len(rows) == 1
    cursor = _cursor(db, connection, sql, rows[0] if is_one else rows)
    try:
        if is_one:
            cursor.execute(sql, rows[0])
        else:
            cursor.executemany(sql, rows)
    except BaseException as error:  # noqa: BLE001 - SQLAlchemy raises it again, by its own name
        _raise(connection, error, sql)


def _cursor(db: Session, connection: Connection, sql: str, given: Any) -> Any:
    cursor = driver_cursor(db, connection)
    for hear in connection.dispatch.before_cursor_execute:
        hear(connection, cursor, sql, given, None, False)  # noqa: FBT003 - the listener's shape
    return cursor


def _raise(connection: Connection, error: BaseException, sql: str) -> NoReturn:
    """The driver's errors as SQLAlchemy raises them: named, without what was stored, the connection given up where it is broken."""
    driver: Any = connection.dialect.dbapi
    if isinstance(error, Exception) and not isinstance(error, driver.Error):
        raise error
    handle = connection._handle_dbapi_exception  # noqa: SLF001 - there is no public door to it
    # Without the cursor, which it would close: a session goes on with it.
    handle(error, sql, None, None, None)
