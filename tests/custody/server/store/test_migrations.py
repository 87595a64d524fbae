"""A new database has the tables of the models, and one is made by one process, on either database."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier

import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Engine, inspect

from custody.server.store import Store, sqlite_url
from custody.server.store.models import Base
from custody.server.store.store import MIGRATIONS, newest, open_database, upgrade


@pytest.fixture(params=["sqlite", "postgresql"])
def empty(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """The URL of a database without tables."""
    if request.param == "sqlite":
        yield sqlite_url(tmp_path / "empty.db")
        return
    with request.getfixturevalue("postgresql").empty_database() as url:
        yield url


@pytest.fixture
def engine(empty: str) -> Iterator[Engine]:
    database = open_database(empty)
    yield database.writing
    database.writing.dispose()


def test_the_newest_by_its_files_name_is_alembics() -> None:
    assert newest() == ScriptDirectory(str(MIGRATIONS)).get_current_head()


def test_a_new_database_has_exactly_the_models_and_a_second_run_changes_nothing(engine: Engine) -> None:
    """Checks are named alike on either database: Alembic does not compare them."""
    for _ in range(2):
        with engine.begin() as connection:
            upgrade(connection)
    with engine.begin() as connection:
        context = MigrationContext.configure(connection, opts={"compare_type": True})
        assert compare_metadata(context, Base.metadata) == []
        found = inspect(connection)
        assert set(found.get_table_names()) == {*Base.metadata.tables, "alembic_version"}
        for table in Base.metadata.sorted_tables:
            named = {check["name"] for check in found.get_check_constraints(table.name)}
            assert named == {
                str(constraint.name)
                for constraint in table.constraints
                if type(constraint).__name__ == "CheckConstraint"
            }


def test_a_run_that_is_not_committed_leaves_nothing_behind(engine: Engine) -> None:
    with engine.connect() as connection, connection.begin() as transaction:
        upgrade(connection)
        transaction.rollback()
    with engine.begin() as connection:
        assert inspect(connection).get_table_names() == []


def test_processes_that_start_at_once_take_turns(empty: str) -> None:
    start = Barrier(4)

    def open_store(_number: int) -> Store:
        start.wait()
        return Store.open(empty)

    with ThreadPoolExecutor(4) as pool:
        stores = list(pool.map(open_store, range(4)))
    for store in stores:
        with store.read() as db:
            assert set(inspect(db.connection()).get_table_names()) == {
                *Base.metadata.tables,
                "alembic_version",
            }
        store.close()
