"""The contract of `firmware_bridge` with a device: `TEST_FULL=1 pytest tests/conformance`, on a virtual
device of each make in turn; with `--endpoint` on one device, in the cases that are about its make.
"""

from collections.abc import Iterator
from pathlib import Path

import pytest

from firmware_bridge import Endpoint
from tests.conformance import makes, remote, rigs
from tests.conformance.makes import Make
from tests.conformance.transcripts import Transcript
from tests.support.examples import IS_FULL


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("conformance", "the contract of firmware_bridge, for a device at an endpoint")
    group.addoption("--endpoint", help="such as trezor:udp:127.0.0.1:21324; default: virtual devices of ours")
    group.addoption("--hands", default="", help="module:factory of what presses and reads at the endpoint")


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line(
        "markers", "in_process: a case that only devices in the tests' own process can have"
    )
    given = config.getoption("--endpoint", None)
    if given is None:
        return
    try:
        endpoint = Endpoint.parse(given)
    except ValueError as error:
        raise pytest.UsageError(f"--endpoint: {error}") from error
    factory = remote.factory_of(config.getoption("--hands"))
    remote.RUN.remote = remote.Remote(endpoint, factory)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """At an endpoint: the cases of its make, and none that only software in this process can have."""
    if remote.RUN.remote is None:
        return
    kept = [item for item in items if _is_about(item, remote.RUN.remote)]
    config.hook.pytest_deselected(items=[item for item in items if item not in kept])
    items[:] = kept


def _is_about(item: pytest.Item, there: remote.Remote) -> bool:
    if not isinstance(item, pytest.Function) or item.get_closest_marker("in_process") is not None:
        return False
    values = item.callspec.params.values() if hasattr(item, "callspec") else ()
    return "folder" in item.fixturenames and all(_fits(value, there) for value in values)


def _fits(value: object, there: remote.Remote) -> bool:
    match value:
        case Make():
            return value.family == there.endpoint.family and not value.fake
        case Transcript():
            return value.family == there.endpoint.family
        case _:
            return True


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


# The fakes differ in how vaults are known, and in little else.
@pytest.fixture(params=makes.ALL if IS_FULL else makes.FAST, ids=makes.named)
def make(request: pytest.FixtureRequest) -> makes.Make:
    return request.param


@pytest.fixture
def folder() -> Iterator[Path]:
    with rigs.short_folder() as name:
        yield Path(name)
    remote.close_hands()


@pytest.fixture
def rig(make: makes.Make, folder: Path) -> rigs.Rig:
    return make.rig(folder)
