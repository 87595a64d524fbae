"""Whatever asks for ``database`` runs twice: on SQLite always, on PostgreSQL where it is installed."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from custody.server.store import Store, sqlite_url
from tests.support.postgresql import REQUIRED, Server, find_programs, is_required, running_server


@pytest.fixture(scope="session")
def postgresql() -> Iterator[Server]:
    """One server for each process of the test run, started when the first test asks."""
    programs = find_programs()
    if programs is None:
        without = pytest.fail if is_required() else pytest.skip
        without(
            f"PostgreSQL is not installed (Debian's package postgresql); {REQUIRED}=1 makes this a failure"
        )
    with running_server(programs) as server:
        yield server


@pytest.fixture(params=["sqlite", "postgresql"])
def database(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """The URL of a fresh database."""
    if request.param == "sqlite":
        yield sqlite_url(tmp_path / "custody.db")
        return
    with request.getfixturevalue("postgresql").database() as url:
        yield url


@pytest.fixture
def store(database: str) -> Iterator[Store]:
    opened = Store.open(database)
    yield opened
    opened.close()
