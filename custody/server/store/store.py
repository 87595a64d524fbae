"""The database of one platform: opened by its URL, migrated to this version, then written in transactions and
read in snapshots. Also calls around a commit, chunks of values for one statement, duplicate-row errors, and a
page of a list.
"""

import sys
import threading
import time
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from datetime import UTC, date, datetime
from datetime import time as time_of_day
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Self, TypeVar, TypeVarTuple

import structlog
from sqlalchemy import (
    URL,
    ColumnElement,
    Connection,
    Engine,
    Select,
    String,
    column,
    inspect,
    make_url,
    select,
    table,
    tuple_,
)
from sqlalchemy import Row as FoundRow
from sqlalchemy.exc import DBAPIError, IntegrityError
from sqlalchemy.exc import TimeoutError as NoConnectionFree
from sqlalchemy.orm import InstrumentedAttribute, Session
from sqlalchemy.sql.elements import SQLCoreOperations

from custody.server.errors import DatabaseUnavailable, OutcomeUnknown, Outdated
from custody.server.rules.ports import UNCOUNTED
from custody.server.store.database import BUSY_TIMEOUT_MS, CannotOpen, Database, DatabaseTrouble
from custody.server.store.sqlite import open_sqlite

if TYPE_CHECKING:
    from custody.server.meters import Meters

_AT_LAST: Final = "before commit"
_AFTERWARDS: Final = "after commit"
_READ: Final = "read in this snapshot"
Value = TypeVar("Value", bound=Any)
Id = TypeVar("Id", str, int)
Row = TypeVarTuple("Row")


def before_commit(db: Session, call: Callable[[], object]) -> None:
    """Calls it last in the transaction: no later code sees the state before its change."""
    db.info.setdefault(_AT_LAST, []).append(call)


def gather(db: Session, key: str, value: Value, write: Callable[[list[Value]], object]) -> None:
    """Calls ``write`` last in the transaction, with all values that were gathered under the key."""
    gathered: list[Value] = db.info.setdefault(key, [])
    if not gathered:
        before_commit(db, lambda: write(gathered))
    gathered.append(value)


def after_commit(db: Session, call: Callable[[], object]) -> None:
    """Calls it once the transaction is on disk, and never where it is rolled back."""
    db.info.setdefault(_AFTERWARDS, []).append(call)


def committed(db: Session) -> None:
    """Runs the calls that were registered with ``after_commit``, in their order."""
    for call in db.info.pop(_AFTERWARDS, ()):
        call()


def read_once(db: Session, key: Hashable, read: Callable[[], Value]) -> Value:
    """What ``read`` returns. A snapshot keeps it by ``key``: a second reading would find the same. A
    transaction that writes reads each time.
    """
    kept: dict[Hashable, Any] = db.info.get(_READ, {})
    if key not in kept:
        kept[key] = read()
    return kept[key]  # type: ignore[no-any-return]  # by its key it is of this type


def read_each(
    db: Session, kind: str, ids: Iterable[Id], read: Callable[[list[Id]], Mapping[Id, Value]]
) -> dict[Id, Value]:
    """`read_once` for each of these, by its id: what was not read yet is read together."""
    wanted, kept = list(ids), db.info.get(_READ, {})
    if missing := [each for each in wanted if (kind, each) not in kept]:
        kept |= {(kind, each): row for each, row in read(missing).items()}
    return {each: kept[kind, each] for each in wanted if (kind, each) in kept}


def is_snapshot(db: Session) -> bool:
    """Whether it only reads, so that nobody waits for it."""
    return _READ in db.info


def keep(db: Session, key: Hashable, value: object) -> None:
    """What was read already, for `read_once` in the same snapshot."""
    db.info.get(_READ, {})[key] = value


def within_days(
    column: InstrumentedAttribute[datetime], first: date | None, last: date | None
) -> tuple[ColumnElement[bool], ...]:
    """Conditions that a time lies on one of the days, inclusive, in UTC."""
    conditions: list[ColumnElement[bool]] = []
    if first is not None:
        conditions.append(column >= datetime.combine(first, time_of_day.min, UTC))
    if last is not None:
        conditions.append(column <= datetime.combine(last, time_of_day.max, UTC))
    return tuple(conditions)


def going_on(
    query: Select[*Row], keys: Sequence[SQLCoreOperations[Any]], after: Sequence[Any] | None, *, newest: bool
) -> Select[*Row]:
    """A list in the order of its keys, from the first row behind ``after`` on, the last one's keys; None from
    its beginning.
    """
    if after is not None:
        query = query.where(tuple_(*keys) < tuple(after) if newest else tuple_(*keys) > tuple(after))
    return query.order_by(*(key.desc() for key in keys) if newest else keys)


CHUNK: Final = 1_000


def chunks(values: Collection[Value]) -> Iterator[list[Value]]:
    """All values in order, ``CHUNK`` at a time: a statement takes 32,766 parameters on SQLite and 65,535 on
    PostgreSQL.
    """
    ordered = sorted(values)
    for start in range(0, len(ordered), CHUNK):
        yield ordered[start : start + CHUNK]


def rows_in(
    db: Session, query: Select[*Row], column: SQLCoreOperations[Any], values: Collection[Any]
) -> Iterator[FoundRow[*Row]]:
    """What the query finds where the column has one of the values, in the order of their ``chunks``."""
    for some in chunks(values):
        yield from db.execute(query.where(column.in_(some)))


# A primary key or a unique index: PostgreSQL's manual, Appendix A; https://sqlite.org/rescode.html.
_DUPLICATES: Final = frozenset({"23505", "SQLITE_CONSTRAINT_PRIMARYKEY", "SQLITE_CONSTRAINT_UNIQUE"})


@contextmanager
def duplicates_refused(meaning: Exception) -> Iterator[None]:
    """Raises ``meaning`` where a statement of the block would store a duplicate; the transaction cannot be
    committed then. So the database decides between two simultaneous callers.
    """
    try:
        yield
    except IntegrityError as error:
        # As psycopg or Python's SQLite names it.
        code = getattr(error.orig, "sqlstate", None) or getattr(error.orig, "sqlite_errorname", None)
        if code not in _DUPLICATES:
            raise
        raise meaning from error


log = structlog.get_logger()
POSTGRESQL = frozenset({"postgresql", "postgresql+psycopg"})
MIGRATIONS = Path(__file__).with_name("migrations")
_REVISION = select(column("version_num", String)).select_from(table("alembic_version"))


class Store:
    """The database of one platform.

    Writers queue at a lock of this process and then take the database's own, which all processes share: with
    SQLite's busy handler alone threads starve (p99 of 233 ms against 19 ms, measured), and on PostgreSQL one
    connection waits instead of forty.
    """

    def __init__(self, database: Database, meters: "Meters" = UNCOUNTED) -> None:
        self._database = database
        # The meters of the whole platform: the use cases count in them too.
        self.meters = meters
        self._turn = threading.Lock()

    @classmethod
    def open(cls, url: str, meters: "Meters" = UNCOUNTED) -> Self:
        """Opens the database (a missing SQLite file is created) and runs the migrations, one process at a
        time.

        Raises CannotOpen, and DatabaseUnavailable where another process migrates for longer than we wait.
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
        """One transaction that holds the write lock from its start; commits at the end, rolls back on an
        exception.

        Keep it short; never nest it, and never await in it. Raises DatabaseUnavailable with nothing changed,
        Outdated where a newer version of the platform has migrated the database, and OutcomeUnknown.
        """
        asked_at = time.perf_counter()
        if not self._turn.acquire(timeout=BUSY_TIMEOUT_MS / 1_000):
            raise self._unavailable(DatabaseTrouble.BUSY, "another write of this process went on too long")
        try:
            with self._trouble_named(), self._session(self._database.writing) as db, db.begin():
                # Under the write lock, which a migration holds too: an old process never writes to a newer
                # schema.
                if db.scalar(_REVISION) != newest():
                    raise Outdated("A newer version of the platform has migrated the database.")
                began_at = time.perf_counter()
                self.meters.write_wait_seconds.observe(began_at - asked_at)
                try:
                    yield db
                    for call in db.info.pop(_AT_LAST, ()):
                        call()
                    db.flush()
                    self._commit(db)
                finally:
                    self.meters.write_hold_seconds.observe(time.perf_counter() - began_at)
            # Still under the lock, so that commits are announced in their order.
            committed(db)
        finally:
            self._turn.release()

    @contextmanager
    def read(self) -> Iterator[Session]:
        """One consistent snapshot. The database refuses writes in it. Raises DatabaseUnavailable."""
        with self._trouble_named(), self._session(self._database.reading) as db, db.begin():
            db.info[_READ] = {}
            yield db

    def is_outdated(self) -> bool:
        """Whether a newer version of the platform has migrated the database since this one opened it."""
        with self.read() as db:
            return db.scalar(_REVISION) != newest()

    def close(self) -> None:
        self._database.reading.dispose()
        self._database.writing.dispose()

    def _upgrade(self) -> None:
        try:
            with self._database.writing.begin() as connection:
                self._database.prepare(connection)
                upgrade(connection)
        except DBAPIError as error:
            if self._database.trouble_of(error.orig) is DatabaseTrouble.BUSY:
                raise DatabaseUnavailable(DatabaseTrouble.BUSY.value) from error
            raise CannotOpen(
                f"The database cannot be opened: {str(error.orig).strip()}",
                "Check that it runs, and that CUSTODY_DATABASE_URL names it.",
            ) from error

    @staticmethod
    def _session(engine: Engine) -> Session:
        """Loaded objects stay readable after the transaction, without another query."""
        return Session(engine, expire_on_commit=False, close_resets_only=False)

    def _commit(self, db: Session) -> None:
        connection = db.connection()
        self._database.require_whole(connection)
        try:
            with self._trouble_named():
                try:
                    db.commit()
                except BaseException:
                    # The transaction may still be open, although SQLAlchemy treats it as ended.
                    connection.invalidate()
                    raise
        except DatabaseUnavailable as unavailable:
            error = unavailable.__cause__
            if isinstance(error, DBAPIError) and self._database.is_undecided(error.orig):
                raise OutcomeUnknown("The database did not say whether the change was made.") from error
            raise

    @contextmanager
    def _trouble_named(self) -> Iterator[None]:
        """Maps errors before COMMIT, where the transaction is rolled back in any case."""
        try:
            yield
        except NoConnectionFree as error:
            raise self._unavailable(DatabaseTrouble.BUSY, "no connection was free") from error
        except DBAPIError as error:
            trouble = self._database.trouble_of(error.orig)
            if trouble is None:
                raise
            raise self._unavailable(trouble, str(error.orig).strip()) from error

    def _unavailable(self, trouble: DatabaseTrouble, reason: str) -> DatabaseUnavailable:
        self.meters.database_troubles.labels(trouble.name.lower()).inc()
        log.warning("database in trouble", trouble=trouble.name, reason=reason)
        return DatabaseUnavailable(trouble.value)


class PageSnapshot:
    """A page's one view of the database, from when it is first read until the page is made, or until
    something opens a transaction of its own: a request holds one connection at a time.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self._opened = ExitStack()
        self._db: Session | None = None
        self._is_made = False

    @contextmanager
    def reading(self) -> Iterator[Session]:
        if self._db is None:
            self._db = self._opened.enter_context(self._store.read())
        try:
            yield self._db
        except BaseException:
            self._db = None
            # Through the store, which names a database in trouble.
            self._opened.__exit__(*sys.exc_info())
            raise
        if self._is_made:
            self.end()

    @contextmanager
    def last_reading(self) -> Iterator[Session]:
        """`reading`, and its end."""
        try:
            with self.reading() as db:
                yield db
        finally:
            self.end()

    def close(self) -> None:
        """The page is made. Where it is sent in parts, each is read by itself."""
        self._is_made = True
        self.end()

    def end(self) -> None:
        self._db = None
        self._opened.close()


def upgrade(connection: Connection) -> None:
    """Brings the tables to this version in the caller's transaction: a failure leaves nothing behind. A new
    database has them from the models; one of an older version is migrated. Raises CannotOpen.
    """
    is_new = not inspect(connection).has_table("alembic_version")
    revision = None if is_new else connection.scalar(_REVISION)
    if revision is not None and revision not in _known():
        raise CannotOpen(
            f"A newer version of the platform has migrated the database (to {revision}).",
            "Start that version, or restore the database as it was before.",
        )
    if revision != newest():
        # Loading this takes a tenth of a second, and it is seldom needed.
        from alembic import command
        from alembic.config import Config

        from custody.server.store.models import Base

        config = Config()
        config.set_main_option("script_location", str(MIGRATIONS).replace("%", "%%"))
        config.attributes["connection"] = connection
        if is_new:
            Base.metadata.create_all(connection, checkfirst=False)
            command.stamp(config, "head")
        else:
            command.upgrade(config, "head")


def newest() -> str:
    """The revision of this program's tables."""
    return max(_known())


@cache
def _known() -> frozenset[str]:
    """The revisions, from the file names, which begin with them and sort by age."""
    return frozenset(path.name.partition("_")[0] for path in (MIGRATIONS / "versions").glob("[0-9]*.py"))


def sqlite_url(path: Path) -> str:
    """The URL of a SQLite file, whatever letters its name has."""
    return URL.create("sqlite", database=str(path)).render_as_string(hide_password=False)


def open_database(url: str) -> Database:
    """``sqlite:///…``, ``postgresql://…`` or ``postgresql+psycopg://…``. Raises CannotOpen."""
    unusable = CannotOpen(
        "CUSTODY_DATABASE_URL is not the URL of a database that the platform can use.",
        "Write it like sqlite:////var/lib/custody/custody.db or postgresql://user:password@host/custody; "
        "an @ of the password is written %40.",
    )
    try:
        parsed = make_url(url)
    except Exception:  # noqa: BLE001 - any text may repeat part of a password (P49)
        raise unusable from None
    if parsed.drivername == "sqlite":
        return open_sqlite(parsed)
    if parsed.drivername not in POSTGRESQL:
        raise unusable
    # Imported here, because SQLite does not need libpq.
    from custody.server.store.postgresql import open_postgresql

    return open_postgresql(parsed)
