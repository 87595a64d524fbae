"""The one connection of a session that is one transaction, found without SQLAlchemy's bookkeeping."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from sqlalchemy import Connection
from sqlalchemy.orm import Session

_CONNECTION: Final = "connection"


def connection_of(db: Session) -> Connection:
    """In its transaction, once the database has been told what the session holds."""
    db.flush()
    return own_connection(db)


def own_connection(db: Session) -> Connection:
    """In its transaction, whatever the session holds."""
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
