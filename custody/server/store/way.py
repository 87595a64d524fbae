"""A session's way to the database: the one connection of its one transaction, found without SQLAlchemy's bookkeeping."""

from collections.abc import Callable, Sequence
from typing import Any, Final

from sqlalchemy import Connection
from sqlalchemy.orm import Session

from custody.server.store.ahead import Ahead

_WAY: Final = "way"
# As SQLAlchemy calls them: connection, cursor, statement, values, context, whether there are many.
Hears = Callable[[Connection, Any, str, Any, Any, bool], object]


class Way:
    """``ahead``: what goes together; None where nothing is gained by that. ``heard``: who wants to hear of each statement."""

    __slots__ = ("ahead", "connection", "heard")

    def __init__(self, connection: Connection, ahead: Ahead | None = None) -> None:
        self.connection = connection
        self.ahead = ahead
        # Looked for once: whoever listens does so before the transaction begins.
        self.heard: Sequence[Hears] = tuple(connection.dispatch.before_cursor_execute)


def flushed_way(db: Session) -> Way:
    """Once the database has been told what the session holds."""
    db.flush()
    return way_of(db)


def way_of(db: Session) -> Way:
    """Whatever the session holds."""
    known: Way | None = db.info.get(_WAY)
    return Way(db.connection()) if known is None else known


def set_way(db: Session, connection: Connection, opening: Sequence[str] | None) -> None:
    """For a session that is one transaction and no more.

    ``opening``: where statements wait for one another to be sent, what the database has to be told first.
    """
    db.info[_WAY] = Way(connection, None if opening is None else Ahead(opening))
