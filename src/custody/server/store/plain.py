"""Statements over columns, past the session's bookkeeping, which takes as long again as the statement itself."""

from sqlalchemy import Connection
from sqlalchemy.orm import Session


def plain(db: Session) -> Connection:
    """The session's own connection, in its transaction, once the database has been told what the session holds."""
    db.flush()
    return db.connection()
