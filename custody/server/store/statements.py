"""Statements that are put together once and handed to the driver: what every request asks, much of it while other writers wait.

SQLAlchemy writes the SQL for both databases, and knows how each value is stored. What it does around an execution takes
several times as long as the driver does over it, so none of that happens here, but for errors, which it names, and for
whoever listens to its ``before_cursor_execute`` (ADR 24).
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Generic, TypeVarTuple, cast

from sqlalchemy import Connection, Delete, Insert
from sqlalchemy.engine import Dialect
from sqlalchemy.orm import Session
from sqlalchemy.sql.dml import UpdateBase
from sqlalchemy.sql.selectable import TypedReturnsRows

from custody.server.store.compiled import Compiled, Read, Text, Values, reader, tables_of
from custody.server.store.sending import ask_alone, send
from custody.server.store.way import Way, flushed_way, way_of
from custody.server.store.wire import Refusal, Statement

Columns = TypeVarTuple("Columns")
_NOTHING: Final[Values] = {}
# What is prepared may be planned anew each time, which takes longer than most answers do, or once for all values, without knowing any.
# Along an index there is one way that is good for all; it would guess of some vaults that all their coins are best read and sorted.
_SETTINGS: Final = {
    "plan_cache_mode": ("force_generic_plan", "auto"),
    "enable_seqscan": ("off", "on"),
    "enable_bitmapscan": ("off", "on"),
    "enable_sort": ("off", "on"),
}


def _set(place: int) -> str:
    """To the end of the transaction, or until it is set again."""
    told = (f"set_config('{name}', '{values[place]}', true)" for name, values in _SETTINGS.items())
    return "SELECT " + ", ".join(told)


# For what else is planned meanwhile those settings would be bad ones.
_WALK: Final = _set(0), _set(1)
# What each session of PostgreSQL's has from its beginning, so that it is known what they were.
SETTINGS: Final = {name: usual for name, (_, usual) in _SETTINGS.items()}


class Query(Generic[*Columns]):
    """A statement that answers with rows, each a tuple of its columns. Raises what SQLAlchemy raises.

    Where it takes lists for an ``IN``, the SQL is kept for each of their lengths: for lists that are bounded.
    ``walks``: it reads along an index, whatever the values are: the first few in its order, or a stretch of it.
    """

    def __init__(self, clause: TypedReturnsRows[*Columns], *, walks: bool = False) -> None:
        self._clause = clause
        self._around = _WALK if walks else None
        self.tables = tables_of(clause)
        self.changes = isinstance(clause, UpdateBase)
        self._known: dict[str, tuple[Compiled, Read | None, tuple[str, str] | None]] = {}

    def of(self, values: Values) -> "Question[*Columns]":
        """With its values, for whoever asks it and whoever has it asked ahead."""
        return Question(self, values)

    def all(self, db: Session, values: Values = _NOTHING) -> list[tuple[*Columns]]:
        way = flushed_way(db)
        ahead = way.ahead
        known = None if ahead is None else ahead.answer(self, values)
        if known is not None:
            return cast("list[tuple[*Columns]]", known)
        statement, read = self.ready(way.connection.dialect, values)
        (rows,) = send(way, statement)
        if ahead is not None and self.changes:
            ahead.forget(self.tables)
        return cast("list[tuple[*Columns]]", rows if read is None else read(rows))

    def first(self, db: Session, values: Values = _NOTHING) -> tuple[*Columns] | None:
        """Of the few that it answers with: all are fetched."""
        rows = self.all(db, values)
        return rows[0] if rows else None

    def value(self, db: Session, values: Values = _NOTHING) -> Any:
        """The first column of the first row; None where there is no row."""
        row = self.first(db, values)
        return None if row is None else cast("tuple[Any, ...]", row)[0]

    def ready(self, dialect: Dialect, values: Values) -> tuple[Statement, Read | None]:
        """To be sent, and how its rows are read."""
        compiled, read, around = self._known.get(dialect.name) or self._compile(dialect)
        text = compiled.text(values)
        return Statement(text.sql, text.given(values), self.tables, around), read

    def _compile(self, dialect: Dialect) -> tuple[Compiled, Read | None, tuple[str, str] | None]:
        kinds = [column.type.dialect_impl(dialect) for column in self._clause.exported_columns]
        read = reader([kind.result_processor(dialect, None) for kind in kinds])
        around = self._around if dialect.name == "postgresql" else None
        return self._known.setdefault(dialect.name, (Compiled(self._clause, dialect), read, around))


@dataclass(frozen=True)
class Question(Generic[*Columns]):
    """A query with its values."""

    query: Query[*Columns]
    values: Values = field(repr=False)

    def all(self, db: Session) -> list[tuple[*Columns]]:
        return self.query.all(db, self.values)

    def first(self, db: Session) -> tuple[*Columns] | None:
        return self.query.first(db, self.values)

    def value(self, db: Session) -> Any:
        return self.query.value(db, self.values)

    def alone(self, connection: Connection) -> list[tuple[*Columns]]:
        """In no transaction but its own."""
        statement, read = self.query.ready(connection.dialect, self.values)
        assert statement.around is None, "what is told around it is told to a transaction"
        rows = ask_alone(connection, statement)
        return cast("list[tuple[*Columns]]", rows if read is None else read(rows))


AnyQuestion = Question[*tuple[Any, ...]]
# Cheap, and the same each time: it is worked out in the turn that it is for, and again where a connection broke while it was idle.
Asked = Callable[[], Iterable[AnyQuestion]]


def nothing() -> Iterable[AnyQuestion]:
    return ()


def asks_ahead(db: Session) -> bool:
    """Whether anything is gained by `ask_ahead`, and by working out what to ask."""
    return way_of(db).ahead is not None


def ask_ahead(db: Session, asked: Asked) -> None:
    """Has them answered together. Whoever asks one of them later in the transaction has the answer there, unless something was
    changed since in a table that it reads.

    For what is asked in any case, and on the way there again and again. Where nothing is gained, nobody works out what to ask.
    """
    way = way_of(db)
    ahead = way.ahead
    if ahead is None:
        return
    questions = tuple(asked())
    assert not any(question.query.changes for question in questions), (
        "an answer is asked ahead, and no change"
    )
    db.flush()
    dialect = way.connection.dialect
    ready = [question.query.ready(dialect, question.values) for question in questions]
    answers = send(way, *[statement for statement, _ in ready])
    for question, (_, read), rows in zip(questions, ready, answers, strict=True):
        ahead.learn(question.query, question.values, rows if read is None else read(rows))


class Change:
    """An INSERT, UPDATE or DELETE over a plain table, which answers with nothing. Raises what SQLAlchemy raises.

    No default of a model counts here: whatever has one is given.
    """

    def __init__(self, clause: UpdateBase) -> None:
        # Inline: the number that the database gives a new row is not asked for.
        self._clause = clause.inline() if isinstance(clause, Insert) else clause
        # What goes with a row that is deleted, the database decides.
        self._tables: frozenset[str] = frozenset() if isinstance(clause, Delete) else tables_of(clause)
        self._known: dict[tuple[str, frozenset[str]], Text] = {}

    def run(self, db: Session, *rows: Values, refused: Refusal | None = None) -> None:
        """Once for each of them; all have the same keys. ``refused``: what is raised where there is such a row already."""
        if rows:
            way = flushed_way(db)
            send(way, *self._ready(way, rows, refused))
            if way.ahead is not None:
                way.ahead.forget(self._tables)

    def later(self, db: Session, *rows: Values, refused: Refusal | None = None) -> None:
        """The same, of which nobody waits for the end: where it fails, whatever is done next does, the commit at the latest."""
        way = way_of(db)
        if way.ahead is None or not rows:
            self.run(db, *rows, refused=refused)
            return
        db.flush()
        for statement in self._ready(way, rows, refused):
            way.ahead.keep(statement)

    def _ready(self, way: Way, rows: Sequence[Values], refused: Refusal | None) -> list[Statement]:
        text = self._text(way.connection.dialect, frozenset(rows[0]))
        return [Statement(text.sql, text.given(row), self._tables, refused=refused) for row in rows]

    def _text(self, dialect: Dialect, keys: frozenset[str]) -> Text:
        known = self._known.get((dialect.name, keys))
        if known is not None:
            return known
        text = Compiled(self._clause, dialect, keys).text(_NOTHING)
        return self._known.setdefault((dialect.name, keys), text)
