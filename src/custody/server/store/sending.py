"""What is sent together: writes that nobody waits for with whatever is sent next, and questions before they are asked.

To PostgreSQL every question is a way there and back, which takes both sides longer than most answers do. SQLite is no way off:
there each statement goes by itself, at once.
"""

from collections.abc import Mapping, Sequence
from typing import Final, Protocol

from sqlalchemy import Connection
from sqlalchemy.exc import InvalidRequestError
from sqlalchemy.orm import Session

from custody.server.store.connection import own_connection
from custody.server.store.wire import Rows, Statement, answers_of, exchange

_AHEAD: Final = "what goes together"


class Asker(Protocol):
    """Whose answers are kept: a statement without its values."""

    @property
    def tables(self) -> frozenset[str]: ...

    def __hash__(self) -> int: ...


class Ahead:
    """One transaction's: writes that nobody waits for, and answers that are there before anybody asks."""

    def __init__(self, opening: Sequence[str]) -> None:
        self._kept = [Statement(sql) for sql in opening]
        # By who asks: for each of the values, the answer.
        self._answers: dict[Asker, list[tuple[Mapping[str, object], Rows]]] = {}

    def keep(self, statement: Statement) -> None:
        self._kept.append(statement)
        self.forget(statement.tables)

    @property
    def kept(self) -> Sequence[Statement]:
        """What has to be sent before anything else is."""
        return tuple(self._kept)

    def sent(self) -> None:
        """Whatever became of it, it is not sent again."""
        self._kept.clear()

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


def sends_together(db: Session, opening: Sequence[str]) -> None:
    """To the end of the session's transaction, which ``opening`` begins: it goes with what is sent first."""
    db.info[_AHEAD] = Ahead(opening)


def send(db: Session, *statements: Statement) -> Sequence[Rows]:
    """What each of them answers, once what was kept back is done. Raises what SQLAlchemy raises, from that too: the first error
    that there is. What stands after it was not done.

    Raises InvalidRequestError where the transaction is over, by an error that somebody let pass: what came after it would stand by itself.
    """
    connection, ahead = own_connection(db), ahead_of(db)
    if not connection.in_transaction():
        raise InvalidRequestError("The transaction is over: nothing more belongs to it.")
    every = list(ahead.kept) if ahead is not None else []
    places = _told_around(statements, every)
    if not every:
        return ()
    outcome = exchange(connection, every)
    if ahead is not None and outcome.was_sent:
        ahead.sent()
    answers = answers_of(connection, every, outcome)
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
    every.extend(_told(around, 1))
    return places


def _told(around: tuple[str, str] | None, place: int) -> list[Statement]:
    return [] if around is None else [Statement(around[place])]


def send_kept(db: Session) -> None:
    """Whatever was kept back, if anything was."""
    ahead = ahead_of(db)
    if ahead is not None and ahead.kept:
        send(db)


def ask_alone(connection: Connection, statement: Statement) -> Rows:
    """In no transaction but its own. Raises what SQLAlchemy raises."""
    return answers_of(connection, [statement], exchange(connection, [statement]))[0]
