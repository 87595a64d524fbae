"""What a session that is one transaction lets be done past its bookkeeping."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final

from sqlalchemy import Connection
from sqlalchemy.exc import InvalidRequestError
from sqlalchemy.orm import Session

_CONNECTION: Final = "connection"
_CURSOR: Final = "cursor"
_AFTERWARDS: Final = "once it is committed"


def plain(db: Session) -> Connection:
    """The session's own connection, in its transaction, once the database has been told what the session holds."""
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


def after_commit(db: Session, call: Callable[[], object]) -> None:
    """Has it called once the transaction is on the disk; never, where it is rolled back."""
    db.info.setdefault(_AFTERWARDS, []).append(call)


def committed(db: Session) -> None:
    """Does what was asked for, in the order in which it was."""
    for call in db.info.pop(_AFTERWARDS, ()):
        call()
