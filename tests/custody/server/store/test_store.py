"""The unit of work over a real SQLite file."""

import threading
from datetime import UTC, datetime
from pathlib import Path

import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from sqlalchemy import create_engine, inspect, select, text
from sqlalchemy.exc import IntegrityError, OperationalError

from custody.server.store import Store
from custody.server.store.migrate import upgrade
from custody.server.store.models import Base, Membership, Organisation, Role, User, Workspace

NOW = datetime(2026, 1, 2, 3, 4, 5, 678000, tzinfo=UTC)


@pytest.fixture
def store(tmp_path: Path):
    opened = Store.open(tmp_path / "custody.db")
    yield opened
    opened.close()


def user(email: str) -> User:
    return User(email=email, created_at=NOW)


def write_rows(store: Store, *rows: Base) -> None:
    """One after the other: each may need the one before it."""
    with store.write() as db:
        for row in rows:
            db.add(row)
            db.flush()


def workspace(**changes: object) -> Workspace:
    values = {"organisation_id": 1, "name": "w", "description": "", "network": "testnet", "chain": "regtest"}
    return Workspace(**{**values, "created_at": NOW, **changes})


def emails(store: Store) -> list[str]:
    with store.read() as db:
        return list(db.scalars(select(User.email).order_by(User.id)))


def test_commits_what_ran_through_and_forgets_what_failed(store: Store) -> None:
    with store.write() as db:
        db.add(user("a@example.org"))
    with pytest.raises(IntegrityError):
        write_rows(store, user("b@example.org"), user("a@example.org"))
    assert emails(store) == ["a@example.org"]


def test_survives_being_reopened(tmp_path: Path) -> None:
    first = Store.open(tmp_path / "custody.db")
    with first.write() as db:
        db.add(user("a@example.org"))
    first.close()
    second = Store.open(tmp_path / "custody.db")
    assert emails(second) == ["a@example.org"]
    second.close()


def test_times_come_back_in_utc_and_a_time_without_zone_is_refused(store: Store) -> None:
    with store.write() as db:
        db.add(user("a@example.org"))
    with store.read() as db:
        assert db.scalars(select(User.created_at)).one() == NOW
    with pytest.raises(Exception, match="zone"), store.write() as db:
        db.add(User(email="b@example.org", created_at=NOW.replace(tzinfo=None)))


def test_the_disk_is_asked_to_keep_what_was_answered(store: Store) -> None:
    with store.write() as db:
        assert db.scalar(text("PRAGMA synchronous")) == 2
        assert db.scalar(text("PRAGMA journal_mode")) == "wal"
        assert db.scalar(text("PRAGMA foreign_keys")) == 1


def test_a_reader_cannot_write(store: Store) -> None:
    with store.read() as db:
        db.add(user("a@example.org"))
        with pytest.raises(OperationalError, match="readonly"):
            db.flush()


def test_a_reader_sees_one_snapshot_while_a_writer_commits(store: Store) -> None:
    with store.read() as db:
        assert db.scalars(select(User)).all() == []
        with store.write() as writer:
            writer.add(user("a@example.org"))
        assert db.scalars(select(User)).all() == []
    assert emails(store) == ["a@example.org"]


def test_parallel_writers_lose_no_update(store: Store) -> None:
    with store.write() as db:
        db.add(Organisation(name="0", created_at=NOW))

    def count() -> None:
        for _ in range(25):
            with store.write() as db:
                row = db.scalars(select(Organisation)).one()
                row.name = str(int(row.name) + 1)

    threads = [threading.Thread(target=count) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    with store.read() as db:
        assert db.scalars(select(Organisation.name)).one() == "100"


def test_another_users_programs_cannot_read_the_file(tmp_path: Path) -> None:
    store = Store.open(tmp_path / "custody.db")
    with store.write() as db:
        db.add(user("a@example.org"))
    modes = {path.name: path.stat().st_mode & 0o777 for path in tmp_path.iterdir()}
    store.close()
    assert modes == {"custody.db": 0o600, "custody.db-wal": 0o600, "custody.db-shm": 0o600}


def test_the_database_refuses_a_role_of_another_workspace(store: Store) -> None:
    """P25: even a mistake in our code cannot make it a membership."""
    write_rows(
        store,
        user("a@example.org"),
        Organisation(id=1, name="o", created_at=NOW),
        workspace(id=1, name="one"),
        workspace(id=2, name="two"),
        Role(
            id=1,
            workspace_id=1,
            name="r",
            description="",
            limit_sats=0,
            cycle_period="M",
            cycle_day=1,
            created_at=NOW,
            updated_at=NOW,
        ),
    )
    with pytest.raises(IntegrityError):
        write_rows(store, Membership(user_id=1, workspace_id=2, role_id=1, created_at=NOW))


@pytest.mark.parametrize(
    ("network", "chain"), [("mainnet", "regtest"), ("testnet", "mainnet"), ("x", "regtest")]
)
def test_the_database_refuses_a_network_on_the_wrong_chain(store: Store, network: str, chain: str) -> None:
    write_rows(store, Organisation(id=1, name="o", created_at=NOW))
    with pytest.raises(IntegrityError):
        write_rows(store, workspace(network=network, chain=chain))


def test_migrations_from_empty_give_exactly_the_models(tmp_path: Path) -> None:
    engine = create_engine(f"sqlite:///{tmp_path}/empty.db")
    with engine.begin() as connection:
        upgrade(connection)
        context = MigrationContext.configure(connection, opts={"compare_type": True})
        assert compare_metadata(context, Base.metadata) == []
        assert set(inspect(connection).get_table_names()) == {*Base.metadata.tables, "alembic_version"}
    engine.dispose()


def test_a_second_run_of_the_migrations_changes_nothing(tmp_path: Path) -> None:
    engine = create_engine(f"sqlite:///{tmp_path}/empty.db")
    for _ in range(2):
        with engine.begin() as connection:
            upgrade(connection)
    engine.dispose()
