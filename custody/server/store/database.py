"""What each kind of database provides to the store, and its errors."""

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import Any

from sqlalchemy import URL, Connection, Engine, ExceptionContext, create_engine, event

from custody.server.errors import Misconfigured

# How long a writer waits for the write lock, in this process and then at the database.
BUSY_TIMEOUT_MS = 10_000
# Long polls hold no connection; this many handlers read at once before others wait.
READ_POOL = 16
# A handler waits for a reading connection as long as a writer for the lock.
POOL_TIMEOUT_SECONDS = BUSY_TIMEOUT_MS / 1_000


class CannotOpen(Misconfigured):
    """The database cannot be used. ``hint`` says what to do. Neither holds the URL, which may contain a
    password (P49).
    """


class DatabaseTrouble(Enum):
    """Why the database refused, for temporary causes that are not bugs."""

    BUSY = "The database is busy."
    AWAY = "The database cannot be reached."


@dataclass(frozen=True)
class Database:
    """``writing``: every transaction holds the one write lock of all processes from its first statement on.
    ``reading``: every transaction is one snapshot and refuses writes.

    ``prepare`` runs in the first transaction, before the migrations; raises CannotOpen. ``require_whole``
    runs before COMMIT; it raises InvalidRequestError where the database would silently drop part of the
    transaction. ``trouble_of`` classifies a driver's error; None means a bug of ours. ``is_undecided``:
    whether this error of a COMMIT leaves open whether the transaction was committed.
    """

    writing: Engine
    reading: Engine
    prepare: Callable[[Connection], None]
    require_whole: Callable[[Connection], None]
    trouble_of: Callable[[BaseException | None], DatabaseTrouble | None]
    is_undecided: Callable[[BaseException | None], bool]


def open_engine(
    url: URL, *, pool_size: int, text_of: Callable[[BaseException], str | None], **settings: Any
) -> Engine:
    """``text_of``: what an error of the driver says without the values that it quotes; None where it quotes
    none. Errors are logged: without the values (P49).
    """
    engine = create_engine(
        url,
        pool_size=pool_size,
        max_overflow=0,
        pool_timeout=POOL_TIMEOUT_SECONDS,
        hide_parameters=True,
        **settings,
    )

    @event.listens_for(engine, "handle_error")
    def remove_values(context: ExceptionContext) -> None:
        text = text_of(context.original_exception)
        if text is not None:
            context.original_exception.args = (text,)
            if context.sqlalchemy_exception is not None:
                context.sqlalchemy_exception.args = (text,)

    return engine
