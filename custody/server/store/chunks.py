"""Many values for one ``IN``: a statement takes 32,766 parameters on SQLite and 65,535 on PostgreSQL."""

from collections.abc import Collection, Iterator
from typing import Any, Final, TypeVar

Value = TypeVar("Value", bound=Any)
CHUNK: Final = 1_000


def chunks(values: Collection[Value]) -> Iterator[list[Value]]:
    """All of them in order, so many at a time."""
    ordered = sorted(values)
    for start in range(0, len(ordered), CHUNK):
        yield ordered[start : start + CHUNK]
