"""The unit of work: one transaction to write, one snapshot to read."""

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from types import TracebackType
from typing import Self, TypeVar

import structlog
from sqlalchemy import Engine, String, Transaction, column, select, table
from sqlalchemy.exc import DBAPIError
from sqlalchemy.exc import TimeoutError as NoConnectionFree
from sqlalchemy.orm import Session

from custody.server.domain.errors import DatabaseUnavailable, OutcomeUnknown, Outdated
from custody.server.meters import Meters
from custody.server.store.database import (
    BUSY_TIMEOUT_MS,
    CannotOpen,
    Database,
    Trouble,
)
from custody.server.store.line import Line
from custody.server.store.migrate import Newer, newest, upgrade
from custody.server.store.opening import open_database
from custody.server.store.sending import send_kept
from custody.server.store.statements import Asked, Columns, Query, Question, ask_ahead, nothing
from custody.server.store.unit import Opened, committed, settle

log = structlog.get_logger()


class Store:
    """The database of one platform.

    Writers queue at a lock of this process and then take the database's own, which is one for all processes: SQLite's
    busy handler lets threads starve (p99 of 233 ms against 19 ms, measured), and one connection to PostgreSQL waits
    instead of forty. What is committed is on the disk.
    """

    def __init__(self, database: Database, meters: Meters | None = None) -> None:
        self._database = database
        # Of the whole platform: whoever works on the store counts what it does in them.
        self.meters = meters or Meters()
        self._named = _Named(database, self.meters)
        self._turn = threading.Lock()
        # Of those who first work out what they write: to be stood in outside of any transaction.
        self.line = Line(database.abreast)

    @classmethod
    def open(cls, url: str, meters: Meters | None = None) -> Self:
        """Opens the database (a missing SQLite file is created) and brings its tables up to date, one process at a time.

        Raises CannotOpen, and DatabaseUnavailable where another process takes longer over it than we wait.
        """
        store = cls(open_database(url), meters)
        try:
            store._upgrade()
        except BaseException:
            store.close()
            raise
        return store

    @contextmanager
    def write(self, asked: Asked = nothing) -> Iterator[Session]:
        """One transaction that holds the write lock from its start; commits at the end, rolls back on an exception.
        ``asked``: what it will ask first (`ask_ahead`).

        Keep it short, and never call it inside itself or await in it. Raises DatabaseUnavailable, with nothing changed,
        Outdated where a newer version of the platform has migrated the database meanwhile, and OutcomeUnknown.
        """
        asked_at = time.perf_counter()
        if not self._turn.acquire(timeout=BUSY_TIMEOUT_MS / 1_000):
            self._named.count(Trouble.BUSY)
            raise DatabaseUnavailable(Trouble.BUSY.value)
        try:
            opened = self._turn_begun(asked)
            try:
                began_at = time.perf_counter()
                self.meters.write_wait_seconds.observe(began_at - asked_at)
                try:
                    with self._named:
                        yield opened.session
                        settle(opened.session)
                    self._commit(opened.transaction)
                finally:
                    self.meters.write_hold_seconds.observe(time.perf_counter() - began_at)
            finally:
                self._end(opened)
            # In the turn still: what is told of commits is told in their order.
            committed(opened.session)
        finally:
            self._turn.release()

    @contextmanager
    def read(self, asked: Asked = nothing) -> Iterator[Session]:
        """One consistent snapshot. The database refuses writes in it. ``asked``: as for `write`. Raises DatabaseUnavailable."""
        with self._named:
            opened = self._begun(self._database.reading, self._database.to_read, asked)
            try:
                yield opened.session
                # Whatever was put off is refused as it would have been at once.
                send_kept(opened.session)
                # Nothing was changed: it is ended in one way as well as in the other.
                if opened.transaction.is_active:
                    opened.transaction.commit()
            finally:
                opened.end()

    def is_outdated(self) -> bool:
        """Whether a newer version of the platform has migrated the database since this one opened it."""
        with self.read() as session:
            return not _has_own_tables(session)

    def close(self) -> None:
        self._database.reading.dispose()
        self._database.writing.dispose()

    def _upgrade(self) -> None:
        try:
            with self._database.writing.begin() as connection:
                self._database.prepare(connection)
                upgrade(connection)
        except Newer as newer:
            raise CannotOpen(
                f"A newer version of the platform has migrated the database (to {newer}).",
                "Start that version, or restore the database as it was before.",
            ) from None
        except DBAPIError as error:
            if self._database.trouble_of(error.orig) is Trouble.BUSY:
                raise DatabaseUnavailable(Trouble.BUSY.value) from error
            raise CannotOpen(
                f"The database cannot be opened: {str(error.orig).strip()}",
                "Check that it runs, and that CUSTODY_DATABASE_URL names it.",
            ) from error

    def _turn_begun(self, asked: Asked) -> Opened:
        """Under the write lock, which a migration holds too: an old process writes nothing that the new tables forbid."""
        opened = self._begun_in_own_tables(asked)
        if opened is None:
            raise Outdated("A newer version of the platform has migrated the database.")
        return opened

    def _begun_in_own_tables(self, asked: Asked) -> Opened | None:
        """None where they are a newer version's."""
        database = self._database
        try:
            opened = self._begun(database.writing, database.to_write, lambda: (_REVISION, *asked()))
            try:
                with self._named:
                    is_own = _has_own_tables(opened.session)
            except BaseException:
                self._end(opened)
                raise
        except DBAPIError as error:
            # What else was asked may be gone from the new tables, or of another type there.
            if database.trouble_of(error.orig) is not None or not self.is_outdated():
                raise
            return None
        if is_own:
            return opened
        self._end(opened)
        return None

    def ask(self, question: Question[*Columns]) -> list[tuple[*Columns]]:
        """What one statement answers, which is a snapshot by itself. Raises DatabaseUnavailable."""
        with self._named:
            return _on_whole_connection(lambda: _ask_once(self._database.reading, question))

    def _begun(self, engine: Engine, opening: Sequence[str] | None, asked: Asked) -> Opened:
        with self._named:
            return _on_whole_connection(lambda: _begin(engine, opening, asked))

    def _end(self, opened: Opened) -> None:
        """Its end is a word to the database, too."""
        with self._named:
            opened.end()

    def _commit(self, transaction: Transaction) -> None:
        try:
            with self._named:
                transaction.commit()
        except DatabaseUnavailable as unavailable:
            error = unavailable.__cause__
            if isinstance(error, DBAPIError) and self._database.is_undecided(error.orig):
                raise OutcomeUnknown("The database did not say whether the change was made.") from error
            raise


Result = TypeVar("Result")
# A server on another continent has answered by then, or its host has said that nobody is there.
AT_ONCE_SECONDS = 1.0


def _on_whole_connection(act: Callable[[], Result]) -> Result:
    """A connection that broke while it was idle fails at its first word, and is replaced: nobody's request fails by it.

    At once, that is. One that breaks while it waits for its turn has had its time.
    """
    began_at = time.monotonic()
    try:
        return act()
    except DBAPIError as error:
        if not error.connection_invalidated or time.monotonic() - began_at > AT_ONCE_SECONDS:
            raise
    # With it went all that are as old as it.
    return act()


def _ask_once(engine: Engine, question: Question[*Columns]) -> list[tuple[*Columns]]:
    with engine.connect() as connection:
        return question.alone(connection)


def _begin(engine: Engine, opening: Sequence[str] | None, asked: Asked) -> Opened:
    opened = Opened(engine, opening)
    try:
        ask_ahead(opened.session, asked)
        # Whatever was asked, or nothing: from here on the transaction is open.
        send_kept(opened.session)
    except BaseException:
        opened.end()
        raise
    return opened


class _Named:
    """Before COMMIT was sent: whatever happens to the database, the transaction is gone. One for all who enter it, at whatever time."""

    def __init__(self, database: Database, meters: Meters) -> None:
        self._database = database
        self._meters = meters

    def count(self, trouble: Trouble) -> None:
        self._meters.database_troubles.labels(trouble.name.lower()).inc()

    def __enter__(self) -> None:
        pass

    def __exit__(
        self, _kind: type[BaseException] | None, error: BaseException | None, _where: TracebackType | None
    ) -> None:
        match error:
            case NoConnectionFree():
                self.count(Trouble.BUSY)
                raise DatabaseUnavailable(Trouble.BUSY.value) from error
            case DBAPIError() if trouble := self._database.trouble_of(error.orig):
                self.count(trouble)
                log.warning("database in trouble", trouble=trouble.name, reason=str(error.orig).strip())
                raise DatabaseUnavailable(trouble.value) from error


_REVISION = Query(select(column("version_num", String)).select_from(table("alembic_version"))).of({})


def _has_own_tables(session: Session) -> bool:
    return _REVISION.first(session) == (newest(),)
