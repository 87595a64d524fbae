"""What each kind of database provides to the unit of work, and its errors."""

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum

from sqlalchemy import Connection, Engine

from custody.server.domain.errors import Misconfigured

# How long a writer waits for its turn, in this process and then at the database, before it gives up.
BUSY_TIMEOUT_MS = 10_000
# Long polls hold no connection; this many handlers read at once before others wait.
READ_POOL = 16
# A handler waits no longer for a reading connection than a writer for its turn.
POOL_TIMEOUT_SECONDS = BUSY_TIMEOUT_MS / 1_000


class CannotOpen(Misconfigured):
    """The database cannot be used. ``hint`` says what to do. Neither holds the URL, which may contain a
    password (P49).
    """

    def __init__(self, sentence: str, hint: str) -> None:
        super().__init__(sentence)
        self.hint = hint


class Trouble(Enum):
    """Why the database refused, for causes that are no bug and will pass."""

    BUSY = "The database is busy."
    AWAY = "The database cannot be reached."


@dataclass(frozen=True)
class Database:
    """``writing``: every transaction holds the one write lock of all processes from its first statement on.
    ``reading``: every transaction is one snapshot and refuses writes.

    ``prepare`` runs in the first transaction, before the migrations; raises CannotOpen. ``require_whole``
    runs before COMMIT; raises InvalidRequestError where the database would drop part of the transaction
    without an error. ``trouble_of`` classifies a driver's error; None means a bug of ours. ``is_undecided``:
    whether this error, as the answer to COMMIT, leaves open whether the transaction was committed.
    """

    writing: Engine
    reading: Engine
    prepare: Callable[[Connection], None]
    require_whole: Callable[[Connection], None]
    trouble_of: Callable[[BaseException | None], Trouble | None]
    is_undecided: Callable[[BaseException | None], bool]
