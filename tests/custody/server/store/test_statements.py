"""Statements that are handed to the driver, on either database: what is stored, what comes back, and how it fails."""

from collections.abc import Mapping
from contextlib import nullcontext, suppress
from datetime import UTC, datetime, timedelta

import pytest
from sqlalchemy import bindparam, delete, event, insert, select, update
from sqlalchemy.exc import DBAPIError, IntegrityError, InvalidRequestError, SQLAlchemyError
from sqlalchemy.orm import Session

from custody.server.domain.errors import DatabaseUnavailable
from custody.server.store import Store
from custody.server.store.models import AuditEvent, Job, Proposal, User, table_of
from custody.server.store.statements import Change, Query
from custody.server.store.unit import after_commit
from tests.support.databases import make_impatient

NOW = datetime(2026, 1, 2, 3, 4, 5, 678000, tzinfo=UTC)
JOBS = table_of(Job)
ADD = Change(insert(JOBS))
OF_KIND = Query(
    select(Job.id, Job.subject, Job.payload, Job.run_at, Job.done_at)
    .where(Job.kind == bindparam("kind"))
    .order_by(Job.id)
)


def job(subject: str, **changes: object) -> Mapping[str, object]:
    row: dict[str, object] = {"kind": "k", "subject": subject, "payload": {}, "run_at": NOW}
    return {**row, "attempts": 0, "failures": 0, "created_at": NOW, **changes}


def test_what_is_stored_comes_back_as_the_models_type_it(store: Store) -> None:
    later = NOW.astimezone().replace(microsecond=1) + timedelta(hours=1)
    with store.write() as db:
        ADD.run(db, job("a", payload={"n": [1, None, "é"]}), job("b", run_at=later))
        # By another set of columns: a statement of its own.
        ADD.run(db, job("c", done_at=NOW))
    with store.read() as db:
        rows = OF_KIND.all(db, {"kind": "k"})
        assert rows == [
            (1, "a", {"n": [1, None, "é"]}, NOW, None),
            (2, "b", {}, later, None),
            (3, "c", {}, NOW, NOW),
        ]
        assert {moment.tzinfo for _, _, _, moment, _ in rows} == {UTC}
        assert all(type(row) is tuple for row in rows)
        assert OF_KIND.first(db, {"kind": "k"}) == rows[0]
        assert OF_KIND.value(db, {"kind": "k"}) == 1
        assert OF_KIND.first(db, {"kind": "none"}) is None
        assert OF_KIND.value(db, {"kind": "none"}) is None


def test_agrees_with_sqlalchemy_about_every_column_of_a_proposal(store: Store) -> None:
    """Whatever type a column has: read by both, after both have written one."""
    tables = (table_of(Proposal), table_of(AuditEvent))
    with store.read() as db:
        for table in tables:
            assert Query(select(table)).all(db) == [tuple(row) for row in db.execute(select(table))]
    values = {
        "chain_id": "c",
        "position": 1,
        "org_uid": "",
        "workspace_uid": "",
        "timestamp": NOW,
        "category": "X",
        "action": "a",
        "description": '100 % of "it", it\'s ?, :x and %(x)s',
        "user_uuid": 7,
        "user_name": "n",
        "role_uid": "",
        "trace_id": "t",
        "prev_hash": bytes(32),
        "event_hash": bytes(range(32)),
    }
    audit = table_of(AuditEvent)
    with store.write() as db:
        db.execute(insert(audit), values | {"event_uid": "1"})
        Change(insert(audit)).run(db, values | {"event_uid": "2", "position": 2})
    with store.read() as db:
        rows = Query(select(audit).order_by(audit.c.position)).all(db)
        assert rows == [tuple(row) for row in db.execute(select(audit).order_by(audit.c.position))]
        assert len(rows) == 2


def test_lists_of_any_length_and_values_of_its_own(store: Store) -> None:
    asked = Query(
        select(Job.subject)
        .where(
            Job.subject.in_(bindparam("subjects", expanding=True)),
            Job.kind.in_(("k", "other")),
            Job.attempts == 0,
        )
        .order_by(Job.subject)
        .limit(2)
    )
    with store.write() as db:
        ADD.run(db, *(job(subject) for subject in "abc"), job("d", attempts=1))
        assert asked.all(db, {"subjects": []}) == []
        assert asked.all(db, {"subjects": ["b"]}) == [("b",)]
        assert asked.all(db, {"subjects": ["d", "c", "b", "a"]}) == [("a",), ("b",)]
        assert asked.all(db, {"subjects": ["d", "c", "?", "%s"]}) == [("c",)]


def test_changes_and_what_they_return(store: Store) -> None:
    raised = Query(
        update(JOBS)
        .where(JOBS.c.subject == bindparam("whose"))
        .values(attempts=JOBS.c.attempts + 1)
        .returning(JOBS.c.attempts)
    )
    moved = Change(update(JOBS).where(JOBS.c.subject == bindparam("whose")))
    gone = Change(delete(JOBS).where(JOBS.c.subject == bindparam("whose")))
    with store.write() as db:
        ADD.run(db, job("a"), job("b"))
        assert raised.all(db, {"whose": "a"}) == [(1,)]
        assert raised.value(db, {"whose": "nobody's"}) is None
        moved.run(db, {"whose": "b", "attempts": 5, "done_at": NOW})
        gone.run(db, {"whose": "a"})
        ADD.run(db)
        assert [row[1:] for row in OF_KIND.all(db, {"kind": "k"})] == [("b", {}, NOW, NOW)]


def test_sees_what_the_session_holds(store: Store) -> None:
    names = Query(select(User.email))
    with store.write() as db:
        db.add(User(email="a@example.org", created_at=NOW))
        assert names.all(db) == [("a@example.org",)]


@pytest.mark.parametrize("row", [{"kind": "k"}, job("a", attempts=None)])
def test_a_row_that_lacks_something_is_refused(store: Store, row: Mapping[str, object]) -> None:
    with pytest.raises(IntegrityError), store.write() as db:
        ADD.run(db, row)
    with store.read() as db:
        assert OF_KIND.all(db, {"kind": "k"}) == []


def test_all_rows_of_a_change_have_the_same_columns(store: Store) -> None:
    with pytest.raises(KeyError, match="payload"), store.write() as db:
        ADD.run(db, job("a"), {name: value for name, value in job("b").items() if name != "payload"})
    with pytest.raises(KeyError, match="kind"), store.read() as db:
        OF_KIND.all(db)


def test_a_default_of_the_models_is_not_left_out(store: Store) -> None:
    with pytest.raises(AssertionError, match="defaults are given"), store.write() as db:
        Change(insert(table_of(Proposal))).run(db, {"id": "p"})


def test_errors_are_sqlalchemys_and_say_nothing_of_what_was_stored(store: Store) -> None:
    """P49."""
    row = job("nobody's business")
    with pytest.raises(IntegrityError) as caught, store.write() as db:
        ADD.run(db, row, row)
    assert "nobody's" not in str(caught.value)
    with store.write() as db:
        # As good as new: the connection goes on.
        ADD.run(db, row)


def let_a_flush_fail(db: Session) -> None:
    db.add(User(email=None, created_at=NOW))
    with suppress(IntegrityError):
        db.flush()


def let_a_statement_fail(db: Session) -> None:
    with suppress(IntegrityError):
        ADD.run(db, {"kind": "k"})


def test_nothing_is_written_behind_a_flush_that_failed(store: Store) -> None:
    """It would stand by itself: the transaction is over, and the turn with it."""

    def write() -> None:
        with store.write() as db:
            let_a_flush_fail(db)
            ADD.run(db, job("a"))

    with pytest.raises(InvalidRequestError, match="transaction is over"):
        write()
    with store.read() as db:
        assert OF_KIND.all(db, {"kind": "k"}) == []


def test_what_was_not_committed_is_not_said_to_be(store: Store) -> None:
    """A failed statement that somebody lets pass leaves SQLite's transaction whole; PostgreSQL would roll it back in silence."""
    told: list[str] = []
    refused = (
        pytest.raises(InvalidRequestError, match="has failed")
        if store_is(store, "postgresql")
        else nullcontext()
    )
    with refused, store.write() as db:
        ADD.run(db, job("a"))
        after_commit(db, lambda: told.append("committed"))
        let_a_statement_fail(db)
    with store.read() as db:
        assert [row[1] for row in OF_KIND.all(db, {"kind": "k"})] == (["a"] if told else [])
    assert bool(told) is store_is(store, "sqlite")


def store_is(store: Store, kind: str) -> bool:
    return store._database.writing.dialect.name == kind


def test_a_session_ends_with_its_transaction(store: Store) -> None:
    """Its connection may be somebody else's by then."""
    with store.write() as db:
        ADD.run(db, job("a"))
    with pytest.raises(SQLAlchemyError):
        ADD.run(db, job("b"))
    with store.write() as other:
        with pytest.raises(SQLAlchemyError):
            OF_KIND.all(db, {"kind": "k"})
        assert [row[1] for row in OF_KIND.all(other, {"kind": "k"})] == ["a"]


def test_what_is_no_error_of_the_drivers_keeps_its_name(store: Store) -> None:
    by_number = Query(select(Job.id).where(Job.attempts == bindparam("attempts")))
    with pytest.raises((OverflowError, DBAPIError)) as caught, store.read() as db:
        by_number.all(db, {"attempts": 1 << 70})
    assert store_is(store, "postgresql") or caught.type is OverflowError


def test_a_reader_writes_nothing(store: Store) -> None:
    with pytest.raises(DBAPIError), store.read() as db:
        ADD.run(db, job("a"))


def test_a_busy_database_is_named(database: str) -> None:
    """P30: what waits too long gives up, and says what it waited for."""
    with_lock, without = Store.open(database), Store.open(database)
    make_impatient(without)
    with with_lock.write(), pytest.raises(DatabaseUnavailable), without.write() as db:
        OF_KIND.all(db, {"kind": "k"})
    with_lock.close()
    without.close()


def test_whoever_listens_hears_of_it_before_the_database_does(store: Store) -> None:
    heard: list[str] = []

    def hear(_connection: object, _cursor: object, statement: str, *_rest: object) -> None:
        heard.append(statement)
        if "INSERT" in statement:
            raise ZeroDivisionError

    engine = store._database.writing
    event.listen(engine, "before_cursor_execute", hear)
    with pytest.raises(ZeroDivisionError), store.write() as db:
        ADD.run(db, job(str(OF_KIND.value(db, {"kind": "k"}))))
    event.remove(engine, "before_cursor_execute", hear)
    assert [each.split()[0] for each in heard if "jobs" in each] == ["SELECT", "INSERT"]
    with store.read() as db:
        assert OF_KIND.all(db, {"kind": "k"}) == []
