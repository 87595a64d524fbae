"""What of the journal can be counted, each by an index or in one pass over short rows."""

import sqlite3
from dataclasses import dataclass


@dataclass(frozen=True)
class JournalFigures:
    """``proposals``: by state. ``entries``: of the chain of decisions, by kind; both name only what the code has names for."""

    proposals: dict[str, int]
    entries: dict[str, int]
    signatures: int


def figures_of(connection: sqlite3.Connection) -> JournalFigures:
    return JournalFigures(
        _counted(connection, "SELECT state, count(*) FROM proposals GROUP BY state"),
        _counted(connection, "SELECT kind, count(*) FROM audit GROUP BY kind"),
        connection.execute("SELECT count(*) FROM signatures").fetchone()[0],
    )


def _counted(connection: sqlite3.Connection, query: str) -> dict[str, int]:
    return {str(name): int(count) for name, count in connection.execute(query)}
