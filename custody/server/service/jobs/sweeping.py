"""Ending what waited too long, however much of it there is: a batch for each transaction."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeVar

from sqlalchemy import Select
from sqlalchemy.orm import Session

from custody.server.domain.errors import DatabaseUnavailable, OutcomeUnknown
from custody.server.store import Store

Row = TypeVar("Row")
# One transaction stays short however many are due.
BATCH = 100


class Sweep(Protocol):
    """Ends what waited too long."""

    def run_due(self) -> int:
        """Ends what is due, and returns how many."""
        ...


@dataclass(frozen=True)
class Sweeps:
    """Several, one after the other. One that fails keeps none of the others: it is raised when all are through."""

    parts: Sequence[Sweep]

    def run_due(self) -> int:
        count, trouble = 0, []
        for part in self.parts:
            try:
                count += part.run_due()
            except (DatabaseUnavailable, OutcomeUnknown):
                # The others need it as well.
                raise
            except Exception as error:  # noqa: BLE001 - the others' border, and raised below
                trouble.append(error)
        if trouble:
            raise trouble[0]
        return count


def sweep(store: Store, due: Select[Row], end: Callable[[Session, Row], None]) -> int:
    """Ends every row that ``due`` finds, which it must not find any more afterwards; how many those were."""
    count = 0
    while done := _sweep_batch(store, due.limit(BATCH), end):
        count += done
    return count


def _sweep_batch(store: Store, due: Select[Row], end: Callable[[Session, Row], None]) -> int:
    """Looks before it takes the writers' one lock: most often nothing is due."""
    with store.read() as db:
        if db.scalars(due).first() is None:
            return 0
    with store.write() as db:
        rows = list(db.scalars(due.with_for_update(skip_locked=True)))
        for row in rows:
            end(db, row)
        return len(rows)
