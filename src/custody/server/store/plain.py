"""Statements over columns, past the session's bookkeeping, which takes as long again as the statement itself."""

from typing import Final

from sqlalchemy import Connection
from sqlalchemy.orm import Session

_CONNECTION: Final = "connection"


def plain(db: Session) -> Connection:
    """The session's own connection, in its transaction, once the database has been told what the session holds."""
    db.flush()
    known: Connection | None = db.info.get(_CONNECTION)
    return db.connection() if known is None else known


def keep_connection(db: Session) -> Connection:
    """For a session that is one transaction and no more: the connection is not looked for at every statement."""
    connection = db.connection()
    db.info[_CONNECTION] = connection
    return connection
