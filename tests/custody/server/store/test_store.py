"""Opening a database by its URL, and the unit of work, on either database."""

import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from datetime import UTC, datetime
from pathlib import Path

import pytest
from pydantic import ValidationError
from sqlalchemy import event, select, text
from sqlalchemy.exc import DBAPIError, IntegrityError

from custody.server.errors import DatabaseUnavailable, Outdated
from custody.server.settings import Settings
from custody.server.store import CannotOpen, Store, sqlite_url
from custody.server.store.database import READ_POOL
from custody.server.store.models import Base, MembershipRow, OrganisationRow, RoleRow, UserRow, WorkspaceRow
from custody.server.store.store import open_database
from tests.support.databases import make_impatient

NOW = datetime(2026, 1, 2, 3, 4, 5, 678000, tzinfo=UTC)


def user(email: str) -> UserRow:
    return UserRow(email=email, created_at=NOW)


def write_rows(store: Store, *rows: Base) -> None:
    """Writes the rows in order: each may need the one before it."""
    with store.write() as db:
        for row in rows:
            db.add(row)
            db.flush()


def workspace(**changes: object) -> WorkspaceRow:
    values = {"organisation_id": 1, "name": "w", "description": "", "network": "testnet", "chain": "regtest"}
    return WorkspaceRow(**{**values, "created_at": NOW, **changes})


def role(**changes: object) -> RoleRow:
    values = {"workspace_id": 1, "name": "r", "description": "", "limit_sats": 0, "cycle_period": "M"}
    return RoleRow(**{**values, "cycle_day": 1, "created_at": NOW, "updated_at": NOW, **changes})


def emails(store: Store) -> list[str]:
    with store.read() as db:
        return list(db.scalars(select(UserRow.email).order_by(UserRow.id)))


def test_times_come_back_in_utc_and_a_time_without_zone_is_refused(store: Store) -> None:
    with store.write() as db:
        db.add(user("a@example.org"))
    with store.read() as db:
        assert db.scalars(select(UserRow.created_at)).one() == NOW
    with pytest.raises(Exception, match="zone"), store.write() as db:
        db.add(UserRow(email="b@example.org", created_at=NOW.replace(tzinfo=None)))


def test_a_reader_cannot_write(store: Store) -> None:
    with store.read() as db:
        db.add(user("a@example.org"))
        with pytest.raises(DBAPIError, match=r"readonly|read-only"):
            db.flush()
    assert emails(store) == []


def test_a_reader_sees_one_snapshot_while_a_writer_commits(store: Store) -> None:
    with store.read() as db:
        assert db.scalars(select(UserRow)).all() == []
        with store.write() as writer:
            writer.add(user("a@example.org"))
        assert db.scalars(select(UserRow)).all() == []
    assert emails(store) == ["a@example.org"]


def test_writers_of_two_processes_take_turns_and_lose_no_update(store: Store, database: str) -> None:
    """The row is read before it is written: without one writer at a time, one of the two would be lost."""
    write_rows(store, OrganisationRow(name="0", created_at=NOW))
    other = Store.open(database)
    start = threading.Barrier(4)

    def count(mine: Store) -> None:
        start.wait()
        for _ in range(10):
            with mine.write() as db:
                row = db.scalars(select(OrganisationRow)).one()
                row.name = str(int(row.name) + 1)

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(count, [store, other] * 2))
    other.close()
    with store.read() as db:
        assert db.scalars(select(OrganisationRow.name)).one() == "40"


def test_a_lock_held_elsewhere_is_said_to_pass_and_passes(store: Store, database: str) -> None:
    other = Store.open(database)
    make_impatient(store)
    with other.write(), pytest.raises(DatabaseUnavailable, match="busy"), store.write():
        pytest.fail("two writers at once")
    write_rows(store, user("a@example.org"))
    assert emails(other) == ["a@example.org"]
    other.close()


def test_readers_who_find_no_connection_free_do_not_wait_for_ever(store: Store, monkeypatch) -> None:
    monkeypatch.setattr(store._database.reading.pool, "_timeout", 0.01)
    with ExitStack() as all_of_them:
        for _ in range(READ_POOL):
            all_of_them.enter_context(store.read()).connection()
        with pytest.raises(DatabaseUnavailable, match="busy"), store.read() as db:
            db.connection()
    assert emails(store) == []


@pytest.mark.parametrize("event_name", ["begin", "commit"])
def test_nothing_is_held_after_a_failure_at_the_beginning_or_the_end(store: Store, event_name: str) -> None:
    """Neither the turn nor a connection: the next ones do not wait."""

    def fail(*_args: object) -> None:
        raise ZeroDivisionError

    engines = [(store._database.writing, store.write)]
    if event_name == "begin":
        engines.append((store._database.reading, store.read))
    for engine, unit in engines:
        event.listen(engine, event_name, fail)
        try:
            with pytest.raises(ZeroDivisionError), unit() as db:
                db.connection()
        finally:
            event.remove(engine, event_name, fail)
    assert store._database.writing.pool.checkedout() == store._database.reading.pool.checkedout() == 0
    assert not store._turn.locked()
    with store.write() as db:
        db.add(user("a@example.org"))
    assert emails(store) == ["a@example.org"]


def test_an_error_does_not_repeat_what_was_stored(store: Store) -> None:
    """P49: its text reaches the log, and the row may be a credential."""
    write_rows(store, user("secret@example.org"))
    with pytest.raises(IntegrityError) as refused:
        write_rows(store, user("secret@example.org"))
    shown = f"{refused.value} {refused.value.orig} {refused.value.__cause__}"
    assert "users" in shown
    assert "secret@" not in shown


def test_the_database_refuses_a_role_of_another_workspace(store: Store) -> None:
    """P25: even a mistake in our code cannot make it a membership."""
    write_rows(
        store,
        user("a@example.org"),
        OrganisationRow(id=1, name="o", created_at=NOW),
        workspace(id=1, name="one"),
        workspace(id=2, name="two"),
        role(id=1),
    )
    with pytest.raises(IntegrityError):
        write_rows(store, MembershipRow(user_id=1, workspace_id=2, role_id=1, created_at=NOW))


def test_a_deleted_roles_id_is_never_given_again(store: Store) -> None:
    """The audit log, and invitations that were decided, name roles by id."""
    write_rows(store, OrganisationRow(id=1, name="o", created_at=NOW), workspace(id=1), role())
    with store.write() as db:
        db.delete(db.get_one(RoleRow, 1))
    write_rows(store, role())
    with store.read() as db:
        assert list(db.scalars(select(RoleRow.id))) == [2]


@pytest.mark.parametrize(
    ("network", "chain"), [("mainnet", "regtest"), ("testnet", "mainnet"), ("x", "regtest")]
)
def test_the_database_refuses_a_network_on_the_wrong_chain(store: Store, network: str, chain: str) -> None:
    write_rows(store, OrganisationRow(id=1, name="o", created_at=NOW))
    with pytest.raises(IntegrityError):
        write_rows(store, workspace(network=network, chain=chain))


SECRET = "hunter2"


@pytest.mark.parametrize(
    "url",
    [
        "",
        "no url",
        "mysql://u:hunter2@localhost/custody",
        "postgresql+asyncpg://u:hunter2@localhost/custody",
        # An @ that is not percent-encoded cuts the password in two.
        "postgresql://u:x@hunter2:y@localhost/custody",
        "postgresql://u:x@hunter2@:a/b:c@localhost/custody",
        "postgresql://u:hunter2@localhost:port/custody",
        "postgresql://u:hunter2@localhost",
        "postgresql://u@localhost/custody?password=hunter2",
        "postgresql://u:hunter2@localhost/custody?options=-c%20fsync%3Doff",
        "postgresql://u:hunter2@db.example.org/custody",
        "postgresql://u:hunter2@/custody?host=db.example.org",
        "postgresql://u:hunter2@192.0.2.7/custody",
        "sqlite://",
        "sqlite:///:memory:",
        "sqlite:///file.db?mode=hunter2",
    ],
)
def test_what_cannot_be_used_is_refused_without_being_repeated(url: str) -> None:
    with pytest.raises(CannotOpen) as refused:
        open_database(url)
    assert SECRET not in f"{refused.value} {refused.value.hint} {refused.value.__cause__!r}"


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://u:hunter2@localhost/custody",
        "postgresql+psycopg://u:hunter2@127.0.0.1:5432/custody",
        "postgresql://u:hunter2@[::1]/custody",
        "postgresql://u:hunter2@/custody?host=/run/postgresql",
        "postgresql://u:hunter2@db.example.org/custody?sslmode=verify-full&sslrootcert=/etc/custody/ca.pem",
        "postgresql://u:hunter2@db/custody?sslmode=disable",
    ],
)
def test_what_can_be_used_keeps_its_password_to_itself(url: str) -> None:
    database = open_database(url)
    assert database.writing.url.password == SECRET
    assert SECRET not in f"{database!r} {database.writing!r} {Store(database)!r} {Store(database).__dict__!r}"


def test_the_settings_keep_it_to_themselves(tmp_path: Path, monkeypatch) -> None:
    url = "postgresql://u:hunter2@localhost/custody"
    monkeypatch.setenv("CUSTODY_DATABASE_URL", url)
    found = Settings(state=tmp_path)
    assert found.database == url
    assert SECRET not in f"{found!r} {found} {found.model_dump()}"
    with pytest.raises(ValidationError) as incomplete:
        Settings()
    assert SECRET not in str(incomplete.value)


def test_without_a_url_it_is_a_file_in_the_state_folder(tmp_path: Path) -> None:
    folder = tmp_path / "100% of them? #1"
    folder.mkdir()
    Store.open(Settings(state=folder, database_url=None).database).close()
    assert (folder / "custody.db").is_file()
    Store.open(sqlite_url(folder / "custody.db")).close()


def test_a_database_of_a_newer_version_is_refused_in_words(database: str) -> None:
    """And one that is migrated under a running process is written to no more."""
    running = Store.open(database)
    assert not running.is_outdated()
    with running.write() as db:
        db.execute(text("UPDATE alembic_version SET version_num = '9999'"))
    assert running.is_outdated()
    with pytest.raises(Outdated, match="newer version"), running.write() as db:
        db.execute(text("DELETE FROM alembic_version"))
    with pytest.raises(CannotOpen, match=r"newer version .* \(to 9999\)") as refused:
        Store.open(database)
    assert "Start that version" in refused.value.hint
    with running.read() as db:
        assert db.scalar(text("SELECT version_num FROM alembic_version")) == "9999"
    running.close()
