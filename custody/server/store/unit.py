"""The session of a unit of work: one transaction and no more, with what may be done beside SQLAlchemy's own way."""

from collections.abc import Callable, Mapping, Sequence
from typing import Final, TypeVarTuple

from sqlalchemy import CursorResult, Engine, event
from sqlalchemy.orm import ORMExecuteState, Session
from sqlalchemy.sql.selectable import TypedReturnsRows

from custody.server.store.database import BEGINS_ITSELF
from custody.server.store.sending import send_kept
from custody.server.store.way import flushed_way, set_way, way_of

Columns = TypeVarTuple("Columns")
_AT_LAST: Final = "before it is committed"
_AFTERWARDS: Final = "once it is committed"
_ANYTHING: Final[frozenset[str]] = frozenset()


class Unit(Session):
    """Whatever goes through SQLAlchemy finds done what was to be done by then, and makes nobody believe an old answer."""


class Opened:
    """A transaction that is open, and the session that joins it.

    ``opening``: where statements wait for one another to be sent, what the database has to be told first.
    """

    __slots__ = ("_connection", "session", "transaction")

    def __init__(self, engine: Engine, opening: Sequence[str] | None) -> None:
        self._connection = connection = engine.connect()
        try:
            connection.info[BEGINS_ITSELF] = True
            self.transaction = connection.begin()
            self.session = Unit(connection)
            set_way(self.session, connection, opening)
        except BaseException:
            connection.close()
            raise

    def end(self) -> None:
        """A rollback, where it was not committed. Whoever goes on with the session has no transaction."""
        try:
            self.session.close()
        finally:
            self._connection.close()


def settle(db: Session) -> None:
    """The database has been told whatever it was to be told."""
    for call in db.info.pop(_AT_LAST, ()):
        call()
    db.flush()
    send_kept(db)


def before_commit(db: Session, call: Callable[[], object]) -> None:
    """Has it called as the last that is done in the transaction: what it changes, nobody looks at before."""
    db.info.setdefault(_AT_LAST, []).append(call)


def execute_plain(
    db: Session, statement: TypedReturnsRows[*Columns], values: Mapping[str, object] | None = None
) -> CursorResult[*Columns]:
    """By the session's own connection, past the session."""
    connection = flushed_way(db).connection
    _before_change(db, _ANYTHING)
    return connection.execute(statement, values)


def after_commit(db: Session, call: Callable[[], object]) -> None:
    """Has it called once the transaction is on the disk; never, where it is rolled back."""
    db.info.setdefault(_AFTERWARDS, []).append(call)


def committed(db: Session) -> None:
    """Does what was asked for, in the order in which it was."""
    for call in db.info.pop(_AFTERWARDS, ()):
        call()


@event.listens_for(Unit, "before_flush")
def _before_flush(db: Session, *_rest: object) -> None:
    _before_change(db, frozenset(each.__table__.name for each in (*db.new, *db.dirty, *db.deleted)))


@event.listens_for(Unit, "do_orm_execute")
def _before_statement(state: ORMExecuteState) -> None:
    if state.is_select:
        send_kept(state.session)
    else:
        _before_change(state.session, _ANYTHING)


def _before_change(db: Session, tables: frozenset[str]) -> None:
    send_kept(db)
    ahead = way_of(db).ahead
    if ahead is not None:
        ahead.forget(tables)
