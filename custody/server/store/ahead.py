"""What goes together: writes that nobody waits for with whatever is sent next, and questions before they are asked.

To PostgreSQL every question is a way there and back, which takes both sides longer than most answers do. SQLite is no way off:
there each statement goes by itself, at once.
"""

from collections.abc import Mapping, Sequence
from typing import Protocol

from custody.server.store.wire import Rows, Statement


class Asker(Protocol):
    """Whose answers are kept: a statement without its values."""

    @property
    def tables(self) -> frozenset[str]: ...

    def __hash__(self) -> int: ...


class Ahead:
    """One transaction's: writes that nobody waits for, and answers that are there before anybody asks."""

    def __init__(self, opening: Sequence[str]) -> None:
        self._kept = [Statement(sql) for sql in opening]
        # By who asks: for each of the values, the answer.
        self._answers: dict[Asker, list[tuple[Mapping[str, object], Rows]]] = {}

    def keep(self, statement: Statement) -> None:
        self._kept.append(statement)
        self.forget(statement.tables)

    @property
    def kept(self) -> Sequence[Statement]:
        """What has to be sent before anything else is."""
        return tuple(self._kept)

    def sent(self) -> None:
        """Whatever became of it, it is not sent again."""
        self._kept.clear()

    def learn(self, asker: Asker, values: Mapping[str, object], rows: Rows) -> None:
        self._answers.setdefault(asker, []).append((values, rows))

    def answer(self, asker: Asker, values: Mapping[str, object]) -> Rows | None:
        for known, rows in self._answers.get(asker, ()):
            if known == values:
                return rows
        return None

    def forget(self, tables: frozenset[str]) -> None:
        """What somebody has changed. An empty set: whatever it was."""
        for asker in list(self._answers):
            if not tables or not tables.isdisjoint(asker.tables):
                del self._answers[asker]
