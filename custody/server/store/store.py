"""The unit of work: one transaction to write, one snapshot to read."""

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Self

import structlog
from sqlalchemy import Connection, Engine, String, column, select, table
from sqlalchemy.exc import DBAPIError
from sqlalchemy.exc import TimeoutError as NoConnectionFree
from sqlalchemy.orm import Session

from custody.server.domain.errors import DatabaseUnavailable, OutcomeUnknown, Outdated
from custody.server.meters import Meters
from custody.server.store.database import BUSY_TIMEOUT_MS, CannotOpen, Database, Trouble
from custody.server.store.migrate import Newer, newest, upgrade
from custody.server.store.opening import open_database
from custody.server.store.unit import committed, settle

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
        self._turn = threading.Lock()

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
    def write(self) -> Iterator[Session]:
        """One transaction that holds the write lock from its start; commits at the end, rolls back on an exception.

        Keep it short, and never call it inside itself or await in it. Raises DatabaseUnavailable, with nothing changed,
        Outdated where a newer version of the platform has migrated the database meanwhile, and OutcomeUnknown.
        """
        asked_at = time.perf_counter()
        if not self._turn.acquire(timeout=BUSY_TIMEOUT_MS / 1_000):
            self._count(Trouble.BUSY)
            raise DatabaseUnavailable(Trouble.BUSY.value)
        try:
            with self._trouble_named(), self._session(self._database.writing) as db, db.begin():
                # Under the write lock, which a migration holds too: an old process writes nothing that the new tables forbid.
                _require_own_tables(db)
                began_at = time.perf_counter()
                self.meters.write_wait_seconds.observe(began_at - asked_at)
                try:
                    yield db
                    settle(db)
                    db.flush()
                    self._commit(db)
                finally:
                    self.meters.write_hold_seconds.observe(time.perf_counter() - began_at)
            # In the turn still: what is told of commits is told in their order.
            committed(db)
        finally:
            self._turn.release()

    @contextmanager
    def read(self) -> Iterator[Session]:
        """One consistent snapshot. The database refuses writes in it. Raises DatabaseUnavailable."""
        with self._trouble_named(), self._session(self._database.reading) as db, db.begin():
            yield db

    def is_outdated(self) -> bool:
        """Whether a newer version of the platform has migrated the database since this one opened it."""
        with self.read() as db:
            return not _has_own_tables(db)

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

    @staticmethod
    def _session(engine: Engine) -> Session:
        """What was read stays readable once the transaction is over, and nothing is sent after it."""
        return Session(engine, expire_on_commit=False, close_resets_only=False)

    def _commit(self, db: Session) -> None:
        connection = db.connection()
        self._database.require_whole(connection)
        try:
            with self._trouble_named(), _closed_where_it_fails(connection):
                db.commit()
        except DatabaseUnavailable as unavailable:
            error = unavailable.__cause__
            if isinstance(error, DBAPIError) and self._database.is_undecided(error.orig):
                raise OutcomeUnknown("The database did not say whether the change was made.") from error
            raise

    @contextmanager
    def _trouble_named(self) -> Iterator[None]:
        """Before COMMIT was sent: whatever happens to the database, the transaction is gone."""
        try:
            yield
        except NoConnectionFree as error:
            self._count(Trouble.BUSY)
            raise DatabaseUnavailable(Trouble.BUSY.value) from error
        except DBAPIError as error:
            trouble = self._database.trouble_of(error.orig)
            if trouble is None:
                raise
            self._count(trouble)
            log.warning("database in trouble", trouble=trouble.name, reason=str(error.orig).strip())
            raise DatabaseUnavailable(trouble.value) from error

    def _count(self, trouble: Trouble) -> None:
        self.meters.database_troubles.labels(trouble.name.lower()).inc()


@contextmanager
def _closed_where_it_fails(connection: Connection) -> Iterator[None]:
    """A COMMIT that fails may leave its transaction open, and SQLAlchemy takes it for over: the next one gets another connection."""
    try:
        yield
    except BaseException:
        connection.invalidate()
        raise


_REVISION = select(column("version_num", String)).select_from(table("alembic_version"))


def _has_own_tables(db: Session) -> bool:
    return db.scalar(_REVISION) == newest()


def _require_own_tables(db: Session) -> None:
    if not _has_own_tables(db):
        raise Outdated("A newer version of the platform has migrated the database.")
