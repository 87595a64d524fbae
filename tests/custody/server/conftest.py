"""Tests with the fixture ``database`` run on SQLite; in a full run on SQLite or PostgreSQL, as the run draws,
and the named ones on both.
"""

from collections.abc import Iterator
from pathlib import Path

import pytest

from custody.server.store import Store, sqlite_url
from tests.support.bitcoind import MISSING, NodeRig, find_bitcoind, running_node
from tests.support.custody import Desk
from tests.support.databases import make_sqlite
from tests.support.examples import IS_FULL, drawn
from tests.support.patience import PATIENCE
from tests.support.platform import Clock, World, open_world
from tests.support.postgresql import REQUIRED, Server, find_programs, is_required, running_server
from tests.support.prepared import Copies, Story, nothing, three_deposits

# On both: what asks the databases for what they do differently (locks, plans, migrations), and the life
# of a proposal. Of the rest each statement is asked by many tests, half of which run on either, and others in
# the next run: all on both would take a third of the suite's time. ``TEST_EXAMPLES=2`` runs all on both.
ON_BOTH = {
    "test_leases", "test_lifecycle", "test_migrations", "test_outbox", "test_plans", "test_races",
    "test_budgets", "test_every_kind", "test_screening", "test_named_approvers", "test_workers",
    "test_set_aside", "test_statements",
}  # fmt: skip
# What one database alone has. Of the routes' tests these ask it nothing that the others do not ask of both.
ALONE = {"test_postgresql": "postgresql"} | dict.fromkeys(
    (
        "test_altered_rows",
        "test_sqlite",
        "test_auth",
        "test_frame",
        "test_keys",
    ),
    "sqlite",
)


@pytest.fixture(scope="session")
def postgresql() -> Iterator[Server]:
    """One server for each process of the test run, started when the first test asks."""
    programs = find_programs()
    if programs is None:
        without = pytest.fail if is_required() else pytest.skip
        without(
            f"PostgreSQL is not installed (Debian's package postgresql); {REQUIRED}=1 makes this a failure"
        )
    with running_server(programs) as server, pytest.MonkeyPatch.context() as patched:
        patched.setattr("custody.server.store.postgresql.CONNECT_TIMEOUT_SECONDS", int(PATIENCE))
        yield server


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "database" in metafunc.fixturenames:
        metafunc.parametrize("database", _databases(metafunc), indirect=True)


def _databases(metafunc: pytest.Metafunc) -> list[str]:
    module, both = metafunc.module.__name__.rpartition(".")[2], ["sqlite", "postgresql"]
    if module in ALONE:
        return [ALONE[module]]
    if not IS_FULL:
        return ["sqlite"]
    if module in ON_BOTH:
        return both
    if find_programs() is None and not is_required():
        return ["sqlite"]
    return drawn(both, 1, of=metafunc.definition.nodeid)


@pytest.fixture
def database(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """The URL of a fresh database with the tables; without them where a test copies a prepared desk there."""
    is_replaced = "copies" in request.fixturenames
    if request.param == "sqlite":
        file = tmp_path / "custody.db"
        if not is_replaced:
            make_sqlite(file)
        yield sqlite_url(file)
        return
    with request.getfixturevalue("postgresql").database(is_made=not is_replaced) as url:
        yield url


@pytest.fixture
def store(database: str) -> Iterator[Store]:
    opened = Store.open(database)
    yield opened
    opened.close()


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def world(tmp_path: Path, database: str) -> Iterator[World]:
    """A platform without people, over either database."""
    with open_world(tmp_path / "state", database_url=database) as opened:
        yield opened


@pytest.fixture(scope="session")
def copies(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Copies:
    return Copies(tmp_path_factory.mktemp("prepared"), lambda: request.getfixturevalue("postgresql"))


@pytest.fixture
def beginning(request: pytest.FixtureRequest) -> Story:
    """What happened at the desk before the test; a module may override it."""
    return three_deposits if "funded" in request.fixturenames else nothing


@pytest.fixture
def public_url() -> str | None:
    """The URL in mails; a module whose tests follow their links overrides it."""
    return None


@pytest.fixture
def desk(
    tmp_path: Path, database: str, copies: Copies, beginning: Story, public_url: str | None
) -> Iterator[Desk]:
    """A desk over either database, copied from a prepared one."""
    with copies.desk(beginning, tmp_path / "state", database, public_url=public_url) as opened:
        yield opened


@pytest.fixture
def funded(desk: Desk) -> Desk:
    """A vault with three confirmed deposits."""
    return desk


@pytest.fixture(scope="session")
def bitcoind_rig(tmp_path_factory: pytest.TempPathFactory) -> Iterator[NodeRig]:
    """A real node on regtest, one for each process of the test run. Tests do not undo what they do to its
    chain.
    """
    program = find_bitcoind()
    if program is None:
        pytest.skip(MISSING)
    with running_node(program, tmp_path_factory.mktemp("bitcoind")) as node:
        rig = NodeRig(node)
        yield rig
        rig.close()
