"""Statements that PostgreSQL is sent together: what is asked ahead is what would be answered, and what is put off is done.

On SQLite nothing goes together, and everything here holds all the same.
"""

import importlib
import pkgutil
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime

import pytest
from sqlalchemy import bindparam, delete, event, insert, select, text, update
from sqlalchemy.dialects import postgresql
from sqlalchemy.exc import DBAPIError, IntegrityError, InvalidRequestError, PendingRollbackError
from sqlalchemy.orm import Session

import custody.server
from custody.server.domain.errors import Outdated
from custody.server.store import Store
from custody.server.store.models import Base, Job, Organisation, User, table_of
from custody.server.store.statements import AnyQuestion, Change, Query, ask_ahead, nothing
from custody.server.store.unit import after_commit, before_commit, execute_plain
from custody.server.store.wire import WIRE

NOW = datetime(2026, 1, 2, 3, 4, 5, 678000, tzinfo=UTC)
USERS = table_of(User)
ADD = Change(insert(USERS))
MOVE = Change(update(USERS).where(USERS.c.email == bindparam("whose")))
REMOVE = Change(delete(USERS).where(USERS.c.email == bindparam("whose")))
RENAME = Query(
    update(USERS)
    .where(USERS.c.email == bindparam("whose"))
    .values(surname=bindparam("said"))
    .returning(USERS.c.id)
)
NAMES = Query(select(USERS.c.email, USERS.c.surname).order_by(USERS.c.id))
OF_ONE = Query(select(USERS.c.surname).where(USERS.c.email == bindparam("whose")))
JOBS = Query(select(Job.id))
A, B = "a@example.org", "b@example.org"


def user(email: str, surname: str | None = None) -> dict[str, object]:
    return {"email": email, "surname": surname, "is_operator": False, "created_at": NOW}


@pytest.fixture
def two(store: Store) -> Store:
    with store.write() as db:
        ADD.run(db, user(A, "one"), user(B))
    return store


@contextmanager
def heard(store: Store) -> Iterator[list[str]]:
    """The statements that follow, each by its first word and its table."""
    said: list[str] = []

    def hear(_connection: object, _cursor: object, statement: str, *_rest: object) -> None:
        said.append(statement.replace("\n", " "))

    engines = store._database.writing, store._database.reading
    for engine in engines:
        event.listen(engine, "before_cursor_execute", hear)
    try:
        yield said
    finally:
        for engine in engines:
            event.remove(engine, "before_cursor_execute", hear)


def of_users(said: list[str]) -> list[str]:
    return [each.split()[0] for each in said if "users" in each]


def surname_of(db: Session, whose: str) -> object:
    return OF_ONE.value(db, {"whose": whose})


QUESTIONS = (NAMES.of({}), OF_ONE.of({"whose": A}), OF_ONE.of({"whose": B}), OF_ONE.of({"whose": "c"}))


def test_what_is_asked_ahead_is_asked_once_and_answered_the_same(two: Store) -> None:
    with two.read() as db:
        alone = [question.all(db) for question in QUESTIONS]
    for unit in (two.read, two.write):
        with heard(two) as said, unit(lambda: QUESTIONS) as db:
            assert [question.all(db) for question in QUESTIONS] == alone
            assert NAMES.all(db) == alone[0]
            # Whatever it is called with: these have their own values.
            assert OF_ONE.all(db, {"whose": "d"}) == []
        asked_twice = 0 if two._database.together else 1
        assert len(of_users(said)) == len(QUESTIONS) + 1 + asked_twice


CHANGES: dict[str, Callable[[Session], object]] = {
    "a change": lambda db: MOVE.run(db, {"whose": A, "surname": "two"}),
    "one that is put off": lambda db: MOVE.later(db, {"whose": A, "surname": "two"}),
    "one that answers": lambda db: RENAME.all(db, {"whose": A, "said": "two"}),
    "the session's": lambda db: setattr(db.query(User).filter_by(email=A).one(), "surname", "two"),
    "the session's own statement": lambda db: db.execute(
        update(User).where(User.email == A).values(surname="two")
    ),
    "a text": lambda db: db.execute(text("UPDATE users SET surname = 'two' WHERE email = 'a@example.org'")),
    "past the session": lambda db: execute_plain(
        db, update(USERS).where(USERS.c.email == A).values(surname="two")
    ),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_an_answer_is_forgotten_with_whatever_changes_its_table(
    two: Store, change: Callable[[Session], object]
) -> None:
    with two.write(lambda: [*QUESTIONS, JOBS.of({})]) as db:
        assert surname_of(db, A) == "one"
        change(db)
        assert surname_of(db, A) == "two"
        assert dict(NAMES.all(db)) == {A: "two", B: None}
    with two.read() as db:
        assert surname_of(db, A) == "two"


def test_a_row_that_goes_may_take_others_with_it(two: Store) -> None:
    with heard(two) as said, two.write(lambda: [JOBS.of({}), NAMES.of({})]) as db:
        REMOVE.run(db, {"whose": A})
        assert JOBS.all(db) == []
        assert NAMES.all(db) == [(B, None)]
    assert sum("jobs" in each for each in said) == (2 if two._database.together else 1)


def test_a_change_of_another_table_leaves_the_answer(two: Store) -> None:
    with heard(two) as said, two.write(lambda: [NAMES.of({})]) as db:
        db.add(Organisation(name="o", created_at=NOW))
        db.flush()
        Change(insert(table_of(Organisation))).run(db, {"name": "p", "created_at": NOW})
        assert len(NAMES.all(db)) == 2
    assert of_users(said) == ["SELECT"]


FOLLOWING: dict[str, Callable[[Session], object]] = {
    "nothing": lambda _db: None,
    "a question": NAMES.all,
    "one that is asked ahead": lambda db: ask_ahead(db, lambda: [JOBS.of({})]),
    "a change": lambda db: ADD.run(db, user("d@example.org")),
    "several": lambda db: ADD.run(db, user("d@example.org"), user("e@example.org")),
    "one that answers": lambda db: RENAME.all(db, {"whose": "c@example.org", "said": "x"}),
    "the session's question": lambda db: db.query(User).all(),
    "the session's row": lambda db: db.add(User(email="d@example.org", created_at=NOW)),
    "a row of the session's own": lambda db: (
        db.add(User(email="d@example.org", created_at=NOW)),
        db.flush(),
    ),
    "past the session": lambda db: execute_plain(db, select(USERS.c.id)).all(),
}


@pytest.mark.parametrize("follows", FOLLOWING.values(), ids=FOLLOWING)
def test_what_is_put_off_is_done_before_whatever_follows(
    two: Store, follows: Callable[[Session], object]
) -> None:
    with heard(two) as said, two.write() as db:
        ADD.later(db, user("c@example.org", "first"))
        MOVE.later(db, {"whose": "c@example.org", "surname": "second"})
        follows(db)
    assert of_users(said)[:2] == ["INSERT", "UPDATE"]
    with two.read() as db:
        assert [email for email, _ in NAMES.all(db)][:3] == [A, B, "c@example.org"]
        assert surname_of(db, "c@example.org") in {"second", "x"}


@pytest.mark.parametrize("follows", FOLLOWING.values(), ids=FOLLOWING)
def test_what_is_put_off_and_fails_lets_nothing_stand(
    two: Store, follows: Callable[[Session], object]
) -> None:
    """P49: and says nothing of what was stored."""
    told: list[str] = []

    def write() -> None:
        with two.write() as db:
            after_commit(db, lambda: told.append("committed"))
            ADD.later(db, user("c@example.org"))
            ADD.later(db, user(A, "secret"))
            follows(db)

    with pytest.raises(IntegrityError) as caught:
        write()
    assert told == []
    assert A not in str(caught.value)
    assert "secret" not in str(caught.value)
    with two.write() as db:
        # As good as new: the connection goes on.
        assert NAMES.all(db) == [(A, "one"), (B, None)]


def test_the_statement_that_failed_is_named(two: Store) -> None:
    nowhere = Query(select(text("nothing")).select_from(text("nowhere")))  # type: ignore[call-overload]

    def write() -> None:
        with two.write() as db:
            ask_ahead(db, lambda: [NAMES.of({}), nowhere.of({}), JOBS.of({})])
            nowhere.all(db)

    with pytest.raises(DBAPIError, match="nowhere") as caught:
        write()
    assert "nowhere" in str(caught.value.statement)


def test_a_failure_that_somebody_lets_pass_is_none_the_less_one(two: Store) -> None:
    def write() -> None:
        with two.write() as db:
            with suppress(IntegrityError):
                ADD.later(db, user(A))
                NAMES.all(db)
            ADD.later(db, user("c@example.org"))

    if two._database.together:
        with pytest.raises((DBAPIError, InvalidRequestError)):
            write()
    else:
        write()
    with two.read() as db:
        assert len(NAMES.all(db)) == (2 if two._database.together else 3)


def test_a_value_that_the_driver_refuses_leaves_what_was_put_off_to_be_done_once(two: Store) -> None:
    """It refuses it before anything is sent, and the transaction goes on."""
    longer = Change(
        update(USERS).where(USERS.c.email == bindparam("whose")).values(surname=USERS.c.surname + "+")
    )
    with two.write() as db:
        longer.later(db, {"whose": A})
        # SQLite stores it.
        with suppress(DBAPIError):
            assert OF_ONE.all(db, {"whose": "nul\0here"}) == []
    with two.read() as db:
        assert surname_of(db, A) == "one+"


def test_what_went_with_an_answer_that_cannot_be_read_is_done_once(two: Store) -> None:
    if not two._database.together:
        pytest.skip("SQLite has no such times")
    late: Query[object] = Query(select(text("'10000-01-01'::timestamptz")))  # type: ignore[call-overload]
    longer = Change(
        update(USERS).where(USERS.c.email == bindparam("whose")).values(surname=USERS.c.surname + "+")
    )
    with two.write() as db:
        longer.later(db, {"whose": A})
        with suppress(DBAPIError):
            late.all(db)
    with two.read() as db:
        assert surname_of(db, A) == "one+"


def rolled_back(db: Session) -> None:
    db.add(User(email=A, created_at=NOW))
    with suppress(IntegrityError):
        db.flush()
    db.rollback()


def flushed_in_vain(db: Session) -> None:
    db.add(User(email=A, created_at=NOW))
    with suppress(IntegrityError):
        db.flush()


AFTERWARDS: dict[str, Callable[[Session], object]] = {
    "a row of the session's": lambda db: (db.add(User(email="new", created_at=NOW)), db.flush()),
    "the session's statement": lambda db: db.execute(update(User).values(surname="taken")),
    "past the session": lambda db: execute_plain(
        db, update(USERS).values(surname="taken").returning(USERS.c.id)
    ),
    "a change": lambda db: ADD.run(db, user("new")),
    "one that is put off": lambda db: ADD.later(db, user("new")),
    "nothing": lambda _db: None,
}


@pytest.mark.parametrize("ends", [rolled_back, flushed_in_vain])
@pytest.mark.parametrize("follows", AFTERWARDS.values(), ids=AFTERWARDS)
def test_after_the_end_of_the_transaction_nothing_stands_by_itself(
    two: Store, ends: Callable[[Session], None], follows: Callable[[Session], object]
) -> None:
    """Whoever lets an error pass goes on in no turn."""

    def write() -> None:
        with two.write() as db:
            ADD.run(db, user("before"))
            ends(db)
            follows(db)

    with pytest.raises((InvalidRequestError, DBAPIError, PendingRollbackError)):
        write()
    with two.write() as db:
        assert NAMES.all(db) == [(A, "one"), (B, None)]


class Refused(Exception):
    pass


def test_what_a_refusal_means_is_said_of_a_row_that_is_there_and_of_nothing_else(two: Store) -> None:
    def write(row: dict[str, object], *, later: bool) -> None:
        with two.write() as db:
            (ADD.later if later else ADD.run)(db, row, refused=Refused)

    for later in (True, False):
        with pytest.raises(Refused):
            write(user(A), later=later)
        with pytest.raises(IntegrityError):
            write({**user("new"), "created_at": None}, later=later)


def test_what_to_ask_ahead_is_worked_out_only_where_that_gains_anything(two: Store) -> None:
    asked: list[str] = []

    def foreseen() -> list[AnyQuestion]:
        asked.append("once")
        return [NAMES.of({})]

    for unit in (two.read, two.write):
        with unit(foreseen) as db:
            ask_ahead(db, foreseen)
    assert len(asked) == (4 if two._database.together else 0)


def test_where_there_is_nothing_to_ask_nothing_is_sent(two: Store) -> None:
    for unit in (two.read, two.write):
        with heard(two) as said, unit() as db:
            said.clear()
            ask_ahead(db, nothing)
            ADD.run(db)
            assert said == []
            assert surname_of(db, A) == "one"
            assert said


def test_no_change_is_asked_ahead(two: Store) -> None:
    with two.write() as db:
        if two._database.together:
            with pytest.raises(AssertionError, match="no change"):
                ask_ahead(db, lambda: [RENAME.of({"whose": A, "said": "two"})])
        assert surname_of(db, A) == "one"


def test_a_question_shows_nothing_of_what_it_is_about() -> None:
    """P49: a token's hash, say, in a traceback."""
    assert "secret" not in repr(OF_ONE.of({"whose": "secret"}))


def test_what_never_left_is_not_forgotten(two: Store) -> None:
    """Whoever listens may refuse: what was put off by then goes with the next one."""

    def refuse(_connection: object, _cursor: object, statement: str, *_rest: object) -> None:
        if "jobs" in statement:
            raise ZeroDivisionError

    engine = two._database.writing
    event.listen(engine, "before_cursor_execute", refuse)
    try:
        with two.write() as db:
            ADD.later(db, user("c@example.org"))
            with suppress(ZeroDivisionError):
                JOBS.all(db)
    finally:
        event.remove(engine, "before_cursor_execute", refuse)
    with two.read() as db:
        assert len(NAMES.all(db)) == 3


@pytest.mark.parametrize("follows", [NAMES.all, lambda _db: None], ids=["a question", "nothing"])
def test_a_write_that_a_reader_puts_off_is_refused(two: Store, follows: Callable[[Session], object]) -> None:
    def write() -> None:
        with two.read() as db:
            ADD.later(db, user("c@example.org"))
            follows(db)

    with pytest.raises(DBAPIError):
        write()
    with pytest.raises(DBAPIError):
        two.ask(RENAME.of({"whose": A, "said": "two"}))
    with two.read() as db:
        assert NAMES.all(db) == [(A, "one"), (B, None)]


def test_one_question_needs_no_transaction(two: Store) -> None:
    with heard(two) as said:
        assert two.ask(NAMES.of({})) == [(A, "one"), (B, None)]
        assert two.ask(OF_ONE.of({"whose": "c"})) == []
    assert [each.split()[0] for each in said] == ["SELECT", "SELECT"]


def test_what_is_done_last_is_done_in_the_transaction(two: Store) -> None:
    told: list[str] = []
    with two.write() as db:
        after_commit(db, lambda: told.append("committed"))
        before_commit(db, lambda: told.append(str(RENAME.all(db, {"whose": A, "said": "last"}))))
        MOVE.later(db, {"whose": A, "surname": "before"})
        assert told == []
    assert told == ["[(1,)]", "committed"]
    with two.read() as db:
        assert surname_of(db, A) == "last"


def test_what_is_asked_of_tables_that_a_newer_version_has_changed_is_outdated(two: Store) -> None:
    """Not the statement's own failure: the process has to be told that it is the old one."""
    with two.write() as db:
        db.execute(text("UPDATE alembic_version SET version_num = 'newer'"))
        db.execute(text("ALTER TABLE users RENAME COLUMN surname TO family_name"))
    with pytest.raises(Outdated), two.write(lambda: [NAMES.of({})]):
        pass


def test_a_newer_versions_types_are_outdated_too(two: Store, database: str) -> None:
    """Of a statement that was prepared, PostgreSQL says that its plan does not fit."""
    for _ in range(2):
        with two.write(lambda: [NAMES.of({})]) as db:
            assert len(NAMES.all(db)) == 2
    newer = Store.open(database)
    with newer.write() as db:
        db.execute(text("UPDATE alembic_version SET version_num = 'newer'"))
        if newer._database.together:
            db.execute(text("ALTER TABLE users ALTER COLUMN surname TYPE varchar(300)"))
    newer.close()
    with pytest.raises(Outdated), two.write(lambda: [NAMES.of({})]):
        pass


def test_a_type_that_is_another_now_is_found_out_once(two: Store) -> None:
    """Whatever the process has prepared before."""

    def ask() -> int:
        with two.read() as db:
            return len(NAMES.all(db))

    assert ask() == 2
    if not two._database.together:
        return
    with two.write() as db:
        db.execute(text("ALTER TABLE users ALTER COLUMN surname TYPE varchar(300)"))
    with pytest.raises(DBAPIError, match="cached plan"):
        ask()
    assert ask() == 2


@pytest.mark.parametrize("interrupt", [KeyboardInterrupt, MemoryError])
def test_whoever_is_interrupted_hears_of_that_and_of_nothing_else(
    two: Store, monkeypatch: pytest.MonkeyPatch, interrupt: type[BaseException]
) -> None:
    def interrupted(*_given: object) -> None:
        raise interrupt

    def write() -> None:
        with two.write() as db:
            ADD.run(db, user("new"))
            wire = db.connection().info[WIRE]
            if two._database.together:
                monkeypatch.setattr(wire, "_receive", interrupted)
                NAMES.all(db)
            raise interrupt

    with pytest.raises(interrupt):
        write()
    with two.write() as db:
        assert NAMES.all(db) == [(A, "one"), (B, None)]


def test_a_question_of_ours_that_is_wrong_is_no_newer_version(two: Store) -> None:
    with two.write() as db:
        db.execute(text("ALTER TABLE users RENAME COLUMN surname TO family_name"))
    with pytest.raises(DBAPIError), two.write(lambda: [NAMES.of({})]) as db:
        NAMES.all(db)


def all_of(kind: type) -> list[object]:
    """Every one that the platform's modules have put together."""
    names = (module.name for module in pkgutil.walk_packages(custody.server.__path__, "custody.server."))
    modules = [importlib.import_module(name) for name in names if "migrations" not in name]
    return [each for module in modules for each in vars(module).values() if isinstance(each, kind)]


@pytest.mark.parametrize("kind", [Query, Change])
def test_it_is_known_of_every_statement_which_tables_it_speaks_of(kind: type) -> None:
    """An answer is forgotten by the tables that it was read from: none may be overlooked, however deep inside."""
    tables = set(Base.metadata.tables)
    found = all_of(kind)
    assert len(found) > 10
    for each in found:
        sql = str(each._clause.compile(dialect=postgresql.dialect()))  # type: ignore[attr-defined]
        named = set(
            re.findall(r"\w+", " ".join(re.findall(r"(?:FROM|JOIN|INTO|UPDATE)\s+(\w+(?:, \w+)*)", sql)))
        )
        named &= tables
        known = each.tables if isinstance(each, Query) else each._tables  # type: ignore[attr-defined]
        assert named <= known or sql.startswith("DELETE"), sql


def test_questions_that_differ_in_nothing_but_their_own_values_are_two() -> None:
    few, many = (Query(select(USERS.c.id).order_by(USERS.c.id).limit(count)) for count in (1, 2))
    asked: list[AnyQuestion] = [few.of({}), many.of({})]
    assert len({question.query for question in asked}) == 2
