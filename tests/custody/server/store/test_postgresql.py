"""PostgreSQL only: a server that can be busy, unavailable, or leave a commit unanswered."""

import os
import socket
from contextlib import closing
from datetime import UTC, datetime
from typing import Any

import pytest
from sqlalchemy import make_url, select, text
from sqlalchemy.exc import DBAPIError, InvalidRequestError

from custody.server.errors import DatabaseUnavailable, OutcomeUnknown
from custody.server.store import CannotOpen, Store
from custody.server.store.models import OrganisationRow
from custody.server.store.postgresql import (
    _SESSION,
    BUSY_TIMEOUT_MS,
    IDLE_TIMEOUT_MS,
    STATEMENT_TIMEOUT_MS,
    WRITER_KEY,
)
from tests.support.postgresql import Server

pytestmark = pytest.mark.slow("the second database")

NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)


class Beside:
    """A session beside the platform's, for what another program, or an administrator, would do."""

    def __init__(self, server: Server, database: str) -> None:
        self._connect = lambda: closing(server.connect(make_url(database).database))

    def ask(self, query: str, *values: object) -> list[tuple]:
        with self._connect() as connection:
            cursor = connection.execute(query, values)
            return cursor.fetchall() if cursor.description else []

    def end_sessions(self) -> int:
        """As an administrator does, and as a restart does to all."""
        ended = self.ask(
            "SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity"
            " WHERE datname = current_database() AND pid <> pg_backend_pid()"
        )
        return len(ended)


@pytest.fixture
def beside(postgresql: Server, database: str) -> Beside:
    return Beside(postgresql, database)


def organisation(name: str) -> OrganisationRow:
    return OrganisationRow(name=name, created_at=NOW)


def names(store: Store) -> list[str]:
    with store.read() as db:
        return list(db.scalars(select(OrganisationRow.name).order_by(OrganisationRow.id)))


def setting(store: Store, name: str, *, writing: bool) -> str:
    with store.write() if writing else store.read() as db:
        return db.scalar(text(f"SHOW {name}"))


@pytest.mark.parametrize("writing", [True, False])
def test_every_session_has_its_deadlines_readers_a_snapshot_and_writers_the_newest(
    store: Store, writing: bool
) -> None:
    wanted = {
        "lock_timeout": f"{BUSY_TIMEOUT_MS // 1000}s",
        "statement_timeout": f"{STATEMENT_TIMEOUT_MS // 1000}s",
        "idle_in_transaction_session_timeout": f"{IDLE_TIMEOUT_MS // 1000}s",
        "synchronous_commit": "on",
        "transaction_isolation": "read committed" if writing else "repeatable read",
        "transaction_read_only": "off" if writing else "on",
    }
    assert {name: setting(store, name, writing=writing) for name in wanted} == wanted


def test_a_writer_holds_the_lock_of_all_writers_to_the_end_of_its_transaction(
    store: Store, beside: Beside
) -> None:
    held = (
        "SELECT mode FROM pg_locks WHERE locktype = 'advisory' "
        "AND (classid::bigint << 32) + objid::bigint = %s"
    )
    with store.write():
        assert beside.ask(held, WRITER_KEY) == [("ExclusiveLock",)]
    assert beside.ask(held, WRITER_KEY) == []


def test_a_session_that_ended_while_it_was_idle_is_replaced_unseen(store: Store, beside: Beside) -> None:
    with store.write() as db:
        db.add(organisation("before"))
    assert names(store) == ["before"]
    assert beside.end_sessions() == 2
    with store.write() as db:
        db.add(organisation("after"))
    beside.end_sessions()
    assert names(store) == ["before", "after"]


def test_a_server_that_refuses_connections_is_away_until_it_takes_them(
    store: Store, beside: Beside, postgresql: Server, database: str
) -> None:
    name = str(make_url(database).database)
    beside.end_sessions()
    postgresql.administer("ALTER DATABASE {} ALLOW_CONNECTIONS false", name)
    for unit in (store.read, store.write):
        with pytest.raises(DatabaseUnavailable, match="cannot be reached"), unit() as db:
            db.connection()
    postgresql.administer("ALTER DATABASE {} ALLOW_CONNECTIONS true", name)
    with store.write() as db:
        db.add(organisation("after"))
    assert names(store) == ["after"]


def test_a_commit_that_is_answered_by_the_servers_end_is_not_called_undone(
    store: Store, beside: Beside
) -> None:
    beside.ask(
        "CREATE FUNCTION end_session() RETURNS trigger LANGUAGE plpgsql AS"
        " $$ BEGIN PERFORM pg_terminate_backend(pg_backend_pid()); PERFORM pg_sleep(10); RETURN NULL; END $$"
    )
    beside.ask(
        "CREATE CONSTRAINT TRIGGER at_commit AFTER INSERT ON organisations DEFERRABLE INITIALLY DEFERRED"
        " FOR EACH ROW EXECUTE FUNCTION end_session()"
    )
    with pytest.raises(OutcomeUnknown), store.write() as db:
        db.add(organisation("perhaps"))


def test_a_commit_without_an_answer_may_have_been_made(store: Store, database: str) -> None:
    """The connection breaks where COMMIT is sent and its answer is awaited: here it was made, and "nothing
    was changed" would have been a lie.
    """
    through = Store.open(database)

    def write() -> None:
        with through.write() as db:
            db.add(organisation("made"))
            db.flush()
            driver: Any = db.connection().connection.dbapi_connection
            with socket.socket(fileno=os.dup(driver.fileno())) as line:
                line.shutdown(socket.SHUT_RD)

    with pytest.raises(OutcomeUnknown):
        write()
    # Whoever has its turn after it sees what it has done.
    with store.write():
        assert names(store) == ["made"]
    assert names(through) == ["made"]
    through.close()


def test_where_there_is_no_transaction_left_nothing_is_called_committed(store: Store) -> None:
    """The driver would say nothing."""

    def write() -> None:
        with store.write() as db:
            db.add(organisation("half"))
            db.flush()
            driver = db.connection().connection.dbapi_connection
            assert driver is not None
            driver.rollback()

    with pytest.raises(InvalidRequestError, match="it is over"):
        write()
    assert names(store) == []


def test_a_process_that_stops_in_the_middle_does_not_hold_the_lock(store: Store, beside: Beside) -> None:
    sessions = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND pid = %s"

    def write() -> None:
        with store.write() as db:
            pid = db.scalar(text("SELECT pg_backend_pid()"))
            db.add(organisation("half"))
            db.flush()
            db.execute(text("SET idle_in_transaction_session_timeout = '1ms'"))
            while beside.ask(sessions, pid) == [(1,)]:
                pass
            db.add(organisation("other half"))

    with pytest.raises(DatabaseUnavailable) as told:
        write()
    assert told.value.hint.startswith("Nothing was changed")
    assert names(store) == []


def test_an_error_names_the_rule_and_not_the_row(store: Store) -> None:
    """P49: PostgreSQL adds "Failing row contains (…)", and quotes a value that it cannot read."""
    for statement in (
        "INSERT INTO organisations (name) VALUES (:secret)",
        "INSERT INTO organisations (name, created_at) VALUES ('o', CAST(:secret AS varchar)::timestamptz)",
    ):
        with pytest.raises(DBAPIError) as refused, store.write() as db:
            db.execute(text(statement), {"secret": "hunter2"})
        assert "hunter2" not in f"{refused.value} {refused.value.orig} {refused.value.__cause__}"


def test_a_database_that_cannot_store_every_letter_is_refused(postgresql: Server) -> None:
    with (
        postgresql.empty_database("ENCODING 'LATIN1' LOCALE 'C'") as url,
        pytest.raises(CannotOpen, match="LATIN1"),
    ):
        Store.open(url)


def test_another_process_that_migrates_is_waited_for_and_not_for_ever(
    store: Store, database: str, monkeypatch
) -> None:
    monkeypatch.setitem(_SESSION, "lock_timeout", 1)
    with store.write(), pytest.raises(DatabaseUnavailable, match="busy"):
        Store.open(database)
