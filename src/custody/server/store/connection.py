"""The one connection of a session that is one transaction, found without SQLAlchemy's bookkeeping."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

from sqlalchemy import Connection
from sqlalchemy.exc import InvalidRequestError
from sqlalchemy.orm import Session

_CONNECTION: Final = "connection"
_CURSOR: Final = "cursor"


def connection_of(db: Session) -> Connection:
    """In its transaction, once the database has been told what the session holds."""
    db.flush()
    known: Connection | None = db.info.get(_CONNECTION)
    return db.connection() if known is None else known


@contextmanager
def kept_connection(db: Session, connection: Connection) -> Iterator[None]:
    """For a session that is one transaction and no more: the connection is not looked for at every statement."""
    db.info[_CONNECTION] = connection
    try:
        yield
    finally:
        del db.info[_CONNECTION]
        db.info.pop(_CURSOR, None)


def driver_cursor(db: Session, connection: Connection) -> Any:
    """The driver's own. What it answers is fetched before it is used again: such a session has one for all its statements.

    Raises InvalidRequestError where the transaction is over, by an error that somebody let pass: what came after it would stand by itself.
    """
    if not connection.in_transaction():
        raise InvalidRequestError("The transaction is over: nothing more belongs to it.")
    cursor = db.info.get(_CURSOR)
    if cursor is None:
        cursor = connection.connection.cursor()
        if db.info.get(_CONNECTION) is connection:
            db.info[_CURSOR] = cursor
    return cursor
