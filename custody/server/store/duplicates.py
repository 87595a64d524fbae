"""A row that is there already, told from every other mistake: two callers may ask for the same at the same moment, and the
database decides who was first.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from sqlalchemy.exc import IntegrityError

# A primary key or another index that takes each value once: PostgreSQL's manual, Appendix A; https://sqlite.org/rescode.html.
_DUPLICATES: Final = frozenset({"23505", "SQLITE_CONSTRAINT_PRIMARYKEY", "SQLITE_CONSTRAINT_UNIQUE"})


@contextmanager
def duplicates_refused(meaning: Exception) -> Iterator[None]:
    """Raises ``meaning`` where a statement of the block would store a second row of a kind. Nothing of its transaction can be
    committed then.
    """
    try:
        yield
    except IntegrityError as error:
        if _code(error.orig) not in _DUPLICATES:
            raise
        raise meaning from error


def _code(error: BaseException | None) -> object:
    """As psycopg calls it, or as Python's SQLite does."""
    return getattr(error, "sqlstate", None) or getattr(error, "sqlite_errorname", None)
