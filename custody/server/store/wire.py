"""Statements on their way to a database, and what comes back. How they get there is each kind of database's own affair."""

from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple, Protocol

Rows = Sequence[tuple[Any, ...]]
Refusal = Callable[[], Exception]
# Where a connection keeps its own: in its ``info``.
WIRE: Final = "wire"


class Statement(NamedTuple):
    """``sql`` with the database's own placeholders, ``given`` in their order. ``tables`` are those that it changes.

    ``around``: what the database is told before and after it. ``refused``: what it means that there is such a row already.
    """

    sql: str
    given: tuple[Any, ...] = ()
    tables: frozenset[str] = frozenset()
    around: tuple[str, str] | None = None
    refused: Refusal | None = None


class Outcome(NamedTuple):
    """What came of statements: the answers of those that were done, each without rows where it is of no question.

    ``is_over``: with the error the database has ended the transaction by itself. ``error``: of the one after those. Whatever stands behind it was not done, unless it was the answer that could not be read.
    ``was_sent``: whether anything was, at all.
    """

    answers: Sequence[Rows]
    error: Exception | None = None
    was_sent: bool = True
    is_over: bool = False


class Wire(Protocol):
    """To a database, by one connection of its driver's."""

    @property
    def is_broken(self) -> bool:
        """Nothing can be exchanged any more."""

    def exchange(self, statements: Sequence[Statement]) -> Outcome:
        """Has them done one after the other, to the first that fails by an error of the driver's."""
