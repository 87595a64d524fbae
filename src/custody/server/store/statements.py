"""Statements that are put together once and handed to the driver: what every request asks, much of it while other writers wait.

SQLAlchemy writes the SQL for both databases, and knows how each value is stored. What it does around an execution takes
several times as long as the driver does over it, so none of that happens here, but for errors, which it names, and for
whoever listens to its ``before_cursor_execute`` (ADR 24).
"""

from dataclasses import dataclass, field
from typing import Any, Final, Generic, TypeVarTuple, cast

from sqlalchemy import Connection, Delete, Insert
from sqlalchemy.engine import Dialect
from sqlalchemy.orm import Session
from sqlalchemy.sql.dml import UpdateBase
from sqlalchemy.sql.selectable import TypedReturnsRows

from custody.server.store.compiled import Compiled, Read, Text, Values, reader, tables_of
from custody.server.store.connection import connection_of
from custody.server.store.sending import (
    PLAIN,
    PREPARED,
    PREPARED_WALK,
    How,
    Statement,
    ahead_of,
    ask,
    ask_at,
    ask_together,
    tell,
)

Columns = TypeVarTuple("Columns")
_NOTHING: Final[Values] = {}


class Query(Generic[*Columns]):
    """A statement that answers with rows, each a tuple of its columns. Raises what SQLAlchemy raises.

    Where it takes lists for an ``IN``, the SQL is kept for each of their lengths: for lists that are bounded.
    ``walks``: it takes the first few of an index, in the order of that, whatever the values are.
    """

    def __init__(self, clause: TypedReturnsRows[*Columns], *, walks: bool = False) -> None:
        self._clause = clause
        self._walks = walks
        self.tables = tables_of(clause)
        self.changes = isinstance(clause, UpdateBase)
        self._known: dict[str, tuple[Compiled, Read | None, How]] = {}

    def of(self, values: Values) -> "Question[*Columns]":
        """With its values, for whoever asks it and whoever has it asked ahead."""
        return Question(self, values)

    def all(self, db: Session, values: Values = _NOTHING) -> list[tuple[*Columns]]:
        connection, ahead = connection_of(db), ahead_of(db)
        known = None if ahead is None else ahead.answer(self, values)
        if known is not None:
            return cast("list[tuple[*Columns]]", known)
        statement, read = self.ready(connection.dialect, values)
        rows = ask(db, connection, statement)
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
        compiled, read, how = self._known.get(dialect.name) or self._compile(dialect)
        text = compiled.text(values)
        return Statement(text.sql, text.given(values), how, self.tables), read

    def _compile(self, dialect: Dialect) -> tuple[Compiled, Read | None, How]:
        kinds = [column.type.dialect_impl(dialect) for column in self._clause.exported_columns]
        read = reader([kind.result_processor(dialect, None) for kind in kinds])
        how = PREPARED_WALK if self._walks else PREPARED
        if dialect.name != "postgresql":
            how = PLAIN
        return self._known.setdefault(dialect.name, (Compiled(self._clause, dialect), read, how))


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
        assert statement.how.before is None, "what it wants said is said to a transaction"
        rows = ask_at(connection, connection.connection.cursor(), statement)
        return cast("list[tuple[*Columns]]", rows if read is None else read(rows))


AnyQuestion = Question[*tuple[Any, ...]]


def ask_ahead(db: Session, *questions: AnyQuestion) -> None:
    """Has them answered together. Whoever asks one of them later in the transaction has the answer there, unless something was
    changed since in a table that it reads.

    For what is asked in any case, and on the way there again and again.
    """
    ahead = ahead_of(db)
    if ahead is None:
        return
    assert not any(question.query.changes for question in questions), (
        "an answer is asked ahead, and no change"
    )
    connection = connection_of(db)
    ready = [question.query.ready(connection.dialect, question.values) for question in questions]
    answers = ask_together(db, connection, ahead, [statement for statement, _ in ready])
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

    def run(self, db: Session, *rows: Values) -> None:
        """Once for each of them; all have the same keys."""
        if rows:
            connection, ahead = connection_of(db), ahead_of(db)
            text = self._text(connection.dialect, frozenset(rows[0]))
            given = [text.given(row) for row in rows]
            if ahead is not None and ahead.goes_first():
                own = [Statement(text.sql, each, PLAIN, self._tables) for each in given]
                ask_together(db, connection, ahead, own)
            else:
                tell(db, connection, text.sql, given)
            if ahead is not None:
                ahead.forget(self._tables)

    def later(self, db: Session, *rows: Values) -> None:
        """The same, of which nobody waits for the end: where it fails, whatever is done next does, the commit at the latest."""
        ahead = ahead_of(db)
        if ahead is None or not rows:
            self.run(db, *rows)
            return
        text = self._text(connection_of(db).dialect, frozenset(rows[0]))
        for row in rows:
            ahead.keep(Statement(text.sql, text.given(row), PLAIN, self._tables))

    def _text(self, dialect: Dialect, keys: frozenset[str]) -> Text:
        known = self._known.get((dialect.name, keys))
        if known is not None:
            return known
        text = Compiled(self._clause, dialect, keys).text(_NOTHING)
        return self._known.setdefault((dialect.name, keys), text)
