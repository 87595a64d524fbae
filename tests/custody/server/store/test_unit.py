"""The end of a unit of work, on either database: last steps, refusals, and errors that change nothing."""

from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime

import pytest
from sqlalchemy import event, insert, select, update
from sqlalchemy.exc import DBAPIError, IntegrityError, InvalidRequestError
from sqlalchemy.orm import Session

from custody.server.store import Store
from custody.server.store.models import UserRow, table_of
from custody.server.store.store import after_commit, before_commit, duplicates_refused

NOW = datetime(2026, 1, 2, 3, 4, 5, 678000, tzinfo=UTC)
A, B = "a@example.org", "b@example.org"
USERS = table_of(UserRow)
NAMES = select(UserRow.email, UserRow.surname).order_by(UserRow.id)


def user(email: str | None, surname: str | None = None) -> dict[str, object]:
    return {"email": email, "surname": surname, "is_operator": False, "created_at": NOW}


def people(db: Session) -> list[tuple[str, str | None]]:
    return [(email, surname) for email, surname in db.execute(NAMES)]


@pytest.fixture
def two(store: Store) -> Store:
    with store.write() as db:
        db.execute(insert(UserRow), [user(A, "one"), user(B)])
    return store


def test_what_is_done_last_is_done_in_the_transaction_and_what_follows_it_in_its_turn(two: Store) -> None:
    """Else of two commits the later may be told of first."""
    told: list[object] = []

    def last(db: Session) -> None:
        told.extend(email for email, _ in people(db))
        db.add(UserRow(**user("last@example.org")))

    def follow() -> None:
        with two.read() as db:
            told.append([email for email, _ in people(db)][2:])
        told.append(two._turn.locked())

    with two.write() as db:
        after_commit(db, follow)
        before_commit(db, lambda: last(db))
        db.add(UserRow(**user("first@example.org")))
        assert told == []
    assert told == [A, B, "first@example.org", ["first@example.org", "last@example.org"], True]
    told.clear()

    def twice() -> None:
        with two.write() as db:
            after_commit(db, lambda: told.append("committed"))
            db.add(UserRow(**user(A)))

    with pytest.raises(IntegrityError):
        twice()
    assert told == []


def rolled_back(db: Session) -> None:
    flushed_in_vain(db)
    db.rollback()


def flushed_in_vain(db: Session) -> None:
    db.add(UserRow(**user(A)))
    with suppress(IntegrityError):
        db.flush()


AFTERWARDS: dict[str, Callable[[Session], object]] = {
    "a row": lambda db: (db.add(UserRow(**user("new"))), db.flush()),
    "a row that the commit is to store": lambda db: db.add(UserRow(**user("new"))),
    "a statement over a model": lambda db: db.execute(update(UserRow).values(surname="taken")),
    "a statement over a table": lambda db: db.execute(update(USERS).values(surname="taken")),
    "several rows": lambda db: db.execute(insert(USERS), [user("new"), user("newer")]),
    "nothing": lambda _db: None,
}


@pytest.mark.parametrize("ends", [rolled_back, flushed_in_vain])
@pytest.mark.parametrize("follows", AFTERWARDS.values(), ids=AFTERWARDS)
def test_after_the_end_of_the_transaction_nothing_stands_by_itself(
    two: Store, ends: Callable[[Session], None], follows: Callable[[Session], object]
) -> None:
    """A use case that lets an error pass goes on in no turn."""
    told: list[str] = []

    def write() -> None:
        with two.write() as db:
            after_commit(db, lambda: told.append("committed"))
            db.execute(insert(UserRow), [user("before")])
            ends(db)
            follows(db)

    with pytest.raises((InvalidRequestError, DBAPIError)):
        write()
    assert told == []
    with two.write() as db:
        assert people(db) == [(A, "one"), (B, None)]


def test_what_was_not_committed_is_not_said_to_be(two: Store) -> None:
    """A statement that fails leaves SQLite's transaction whole; PostgreSQL would answer COMMIT by rolling
    back, and call it no error.
    """
    told: list[str] = []
    with suppress(InvalidRequestError), two.write() as db:
        db.execute(insert(UserRow), [user("before")])
        after_commit(db, lambda: told.append("committed"))
        with suppress(IntegrityError):
            db.execute(insert(USERS), [user(A)])
    is_sqlite = two._database.writing.dialect.name == "sqlite"
    assert told == (["committed"] if is_sqlite else [])
    with two.write() as db:
        assert ("before", None) in people(db) if is_sqlite else len(people(db)) == 2


class Refused(Exception):
    pass


ROWS: dict[str, Callable[[Session, dict[str, object]], object]] = {
    "a statement": lambda db, row: db.execute(insert(USERS), [row]),
    "several rows": lambda db, row: db.execute(insert(UserRow), [user("new@example.org"), row]),
    "a flush": lambda db, row: (db.add(UserRow(**row)), db.flush()),
}


@pytest.mark.parametrize("store_row", ROWS.values(), ids=ROWS)
def test_what_a_duplicate_means_is_said_of_a_row_that_is_there_and_of_nothing_else(
    two: Store, store_row: Callable[[Session, dict[str, object]], object]
) -> None:
    """P49: and nothing is said of what was stored."""

    def write(row: dict[str, object]) -> None:
        with two.write() as db, duplicates_refused(Refused()):
            store_row(db, row)

    with pytest.raises(Refused) as refused:
        write(user(A))
    assert A not in f"{refused.value.__cause__}"
    with pytest.raises(IntegrityError):
        write(user(None))
    with two.read() as db:
        assert people(db) == [(A, "one"), (B, None)]


@pytest.mark.parametrize("interrupt", [KeyboardInterrupt, MemoryError])
def test_an_interrupt_ends_the_transaction_and_is_raised_itself(
    two: Store, interrupt: type[BaseException]
) -> None:
    def interrupted(*_given: object) -> None:
        raise interrupt

    def write() -> None:
        with two.write() as db:
            db.execute(insert(UserRow), [user("new")])
            event.listen(two._database.writing, "before_cursor_execute", interrupted)
            try:
                people(db)
            finally:
                event.remove(two._database.writing, "before_cursor_execute", interrupted)

    with pytest.raises(interrupt):
        write()
    with two.write() as db:
        assert people(db) == [(A, "one"), (B, None)]
