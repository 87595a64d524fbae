"""Helpers inside a unit of work: calls around its commit, many values in one statement, and duplicate
rows.
"""

from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from typing import Any, Final, TypeVar

from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session

_AT_LAST: Final = "before it is committed"
_AFTERWARDS: Final = "once it is committed"


def before_commit(db: Session, call: Callable[[], object]) -> None:
    """Calls it last in the transaction: no later code sees the state before its change."""
    db.info.setdefault(_AT_LAST, []).append(call)


def after_commit(db: Session, call: Callable[[], object]) -> None:
    """Calls it once the transaction is on disk, and never where it is rolled back."""
    db.info.setdefault(_AFTERWARDS, []).append(call)


def settle(db: Session) -> None:
    """Runs the calls that were registered with ``before_commit``."""
    for call in db.info.pop(_AT_LAST, ()):
        call()


def committed(db: Session) -> None:
    """Runs the calls that were registered with ``after_commit``, in their order."""
    for call in db.info.pop(_AFTERWARDS, ()):
        call()


Value = TypeVar("Value", bound=Any)
CHUNK: Final = 1_000


def chunks(values: Collection[Value]) -> Iterator[list[Value]]:
    """All values in order, ``CHUNK`` at a time: a statement takes 32,766 parameters on SQLite and 65,535 on
    PostgreSQL.
    """
    ordered = sorted(values)
    for start in range(0, len(ordered), CHUNK):
        yield ordered[start : start + CHUNK]


# A primary key or a unique index: PostgreSQL's manual, Appendix A; https://sqlite.org/rescode.html.
_DUPLICATES: Final = frozenset({"23505", "SQLITE_CONSTRAINT_PRIMARYKEY", "SQLITE_CONSTRAINT_UNIQUE"})


@contextmanager
def duplicates_refused(meaning: Exception) -> Iterator[None]:
    """Raises ``meaning`` where a statement of the block would store a duplicate. Its transaction cannot be
    committed then.

    For two callers who ask for the same at the same moment: the database decides which was first.
    """
    try:
        yield
    except IntegrityError as error:
        if _code(error.orig) not in _DUPLICATES:
            raise
        raise meaning from error


def _code(error: BaseException | None) -> object:
    """The code as psycopg or Python's SQLite names it."""
    return getattr(error, "sqlstate", None) or getattr(error, "sqlite_errorname", None)
