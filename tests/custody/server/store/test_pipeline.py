"""PostgreSQL's wire: whatever is sent is answered, in its order, once; and where that is not to be had, the connection is given up."""

import threading
from collections.abc import Iterator
from contextlib import closing
from typing import Any

import psycopg
import pytest
from psycopg.pq import TransactionStatus
from sqlalchemy import make_url

from custody.server.store import pipeline
from custody.server.store.pipeline import Pipeline
from custody.server.store.wire import Statement
from tests.support.postgresql import Server

PATIENCE_SECONDS = 90.0
CREATE = Statement("CREATE TEMP TABLE things (number bigint PRIMARY KEY, said text, raw bytea)")
ADD = "INSERT INTO things VALUES ($1, $2, $3)"
ALL = Statement("SELECT number, said, raw FROM things ORDER BY number")
LEFT = "SELECT count(*)::int FROM pg_prepared_statements WHERE statement NOT LIKE '%pg_prepared%'"


@pytest.fixture
def driver(postgresql: Server) -> Iterator[psycopg.Connection[Any]]:
    with (
        postgresql.empty_database() as url,
        closing(postgresql.connect(make_url(url).database)) as connection,
    ):
        connection.autocommit = True
        connection.prepare_threshold = None
        yield connection


@pytest.fixture
def wire(driver: psycopg.Connection[Any]) -> Pipeline:
    wire = Pipeline(driver, PATIENCE_SECONDS)
    assert wire.exchange([CREATE]).error is None
    return wire


def add(number: int, said: str | None = None, raw: bytes = b"") -> Statement:
    return Statement(ADD, (number, said, raw))


def counted(wire: Pipeline, sql: str = LEFT) -> int:
    ((count,),) = wire.exchange([Statement(sql)]).answers[0]
    return int(count)


def test_each_is_answered_in_its_place(wire: Pipeline) -> None:
    outcome = wire.exchange([ALL, add(1, "é", b"\0\xff"), ALL, add(2), ALL])
    assert outcome.error is None
    assert [list(rows) for rows in outcome.answers] == [
        [],
        [],
        [(1, "é", b"\0\xff")],
        [],
        [(1, "é", b"\0\xff"), (2, None, b"")],
    ]


def test_what_comes_before_the_first_that_fails_is_answered_and_nothing_after_it_is_done(
    wire: Pipeline, driver: psycopg.Connection[Any]
) -> None:
    wire.exchange([Statement("BEGIN"), add(1)])
    outcome = wire.exchange([add(2), ALL, add(1), add(3), ALL])
    assert [len(rows) for rows in outcome.answers] == [0, 2]
    assert isinstance(outcome.error, psycopg.errors.UniqueViolation)
    assert outcome.was_sent
    assert driver.info.transaction_status is TransactionStatus.INERROR
    assert isinstance(wire.exchange([ALL]).error, psycopg.errors.InFailedSqlTransaction)
    assert wire.exchange([Statement("ROLLBACK"), ALL]).answers == [(), []]


def test_a_statement_that_is_none_fails_in_its_place(wire: Pipeline) -> None:
    outcome = wire.exchange([ALL, Statement("SELECT nothing FROM nowhere"), ALL])
    assert len(outcome.answers) == 1
    assert isinstance(outcome.error, psycopg.errors.UndefinedTable)
    # It was not prepared, and what was is still there.
    assert wire.exchange([ALL]).error is None
    assert counted(wire) == 2


def test_a_value_that_cannot_be_said_is_refused_before_anything_is_sent(wire: Pipeline) -> None:
    outcome = wire.exchange([add(1), add(2, "nul\0"), add(3)])
    assert (len(outcome.answers), outcome.was_sent) == (1, False)
    assert isinstance(outcome.error, psycopg.DataError)
    with pytest.raises(OverflowError):
        wire.exchange([add(2**63)])
    assert wire.exchange([ALL]).answers == [[]]


def test_an_answer_that_cannot_be_read_is_of_a_statement_that_was_done(wire: Pipeline) -> None:
    """Python's times end with the year 9999; a driver may be given a loader of somebody's that raises anything."""
    late = Statement("INSERT INTO things VALUES (1) RETURNING '10000-01-01'::date")
    outcome = wire.exchange([late, add(2), ALL])
    assert isinstance(outcome.error, psycopg.DataError)
    assert (outcome.answers, outcome.was_sent) == ([], True)
    assert [number for number, *_ in wire.exchange([ALL]).answers[0]] == [1, 2]
    assert counted(wire) == 4


def test_a_statement_is_prepared_once_whatever_the_size_of_its_numbers(wire: Pipeline) -> None:
    for number in (1, 40_000, 2**40, -(2**63)):
        wire.exchange([add(number), add(number + 1)])
    assert len(wire.exchange([ALL]).answers[0]) == 8
    # The one that creates, the one that adds, and the one that asks.
    assert counted(wire) == 3


def test_what_was_prepared_outlives_a_rollback(wire: Pipeline, driver: psycopg.Connection[Any]) -> None:
    wire.exchange([Statement("BEGIN"), ALL])
    prepared = counted(wire)
    driver.rollback()
    assert wire.exchange([ALL]).error is None
    assert counted(wire) == prepared


def test_the_server_is_not_left_with_ever_more_of_them(
    wire: Pipeline, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pipeline, "MAX_PREPARED", 5)
    for number in range(20):
        assert wire.exchange([Statement(f"SELECT {number}"), ALL]).answers[0] == [(number,)]
        assert counted(wire) <= 8


def test_more_than_fits_between_us_does_not_wait_for_itself(wire: Pipeline) -> None:
    """Both sides would write, and neither read."""
    large = b"x" * 200_000
    echo = Statement("SELECT $1::bytea", (large,))
    outcome = wire.exchange([echo] * 50)
    assert outcome.error is None
    assert all(rows == [(large,)] for rows in outcome.answers)


def test_a_server_that_says_nothing_is_given_up(driver: psycopg.Connection[Any]) -> None:
    outcome = Pipeline(driver, 0.01).exchange([Statement("SELECT 1"), Statement("SELECT pg_sleep(20)")])
    assert isinstance(outcome.error, psycopg.OperationalError)
    assert "in time" in str(outcome.error)
    assert driver.closed


def test_how_many_statements_there_are_makes_no_difference_to_how_long_it_may_say_nothing(
    wire: Pipeline, monkeypatch: pytest.MonkeyPatch
) -> None:
    waited: list[float] = []

    class Silent:
        def register(self, *_given: object) -> None:
            """As a poll does."""

        def poll(self, milliseconds: float) -> list[object]:
            waited.append(milliseconds)
            return []

    monkeypatch.setattr(wire, "_poll", Silent())
    outcome = wire.exchange([ALL] * 13)
    assert "in time" in str(outcome.error)
    assert waited == [PATIENCE_SECONDS * 1_000]


def test_the_end_of_the_session_is_the_servers_own_word(
    wire: Pipeline, driver: psycopg.Connection[Any]
) -> None:
    outcome = wire.exchange([ALL, Statement("SELECT pg_terminate_backend(pg_backend_pid())"), ALL])
    assert isinstance(outcome.error, psycopg.errors.AdminShutdown)
    assert driver.closed
    after = wire.exchange([ALL])
    assert isinstance(after.error, psycopg.OperationalError)
    assert after.error.sqlstate is None


def test_a_session_that_ended_while_it_was_idle_fails_by_a_name_that_says_so(
    postgresql: Server, wire: Pipeline, driver: psycopg.Connection[Any]
) -> None:
    with closing(postgresql.connect(driver.info.dbname)) as other:
        other.execute("SELECT pg_terminate_backend(%s, 10000)", [driver.info.backend_pid])
    outcome = wire.exchange([ALL])
    assert isinstance(outcome.error, psycopg.OperationalError)
    assert outcome.answers == []
    assert driver.closed


def test_whoever_is_interrupted_leaves_no_answers_behind_for_the_next(
    wire: Pipeline, driver: psycopg.Connection[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*_given: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(wire, "_wait", interrupted)
    with pytest.raises(KeyboardInterrupt):
        wire.exchange([ALL])
    assert driver.closed


def test_two_connections_keep_apart_what_they_have_prepared(
    postgresql: Server, wire: Pipeline, driver: psycopg.Connection[Any]
) -> None:
    with closing(postgresql.connect(driver.info.dbname)) as other:
        other.autocommit = True
        beside = Pipeline(other, PATIENCE_SECONDS)
        said: list[object] = []
        asked = [Statement("SELECT $1::int", (number,)) for number in range(50)]
        thread = threading.Thread(target=lambda: said.append(beside.exchange(asked).answers))
        thread.start()
        own = wire.exchange(asked).answers
        thread.join()
    assert said == [own] == [[[(number,)] for number in range(50)]]
