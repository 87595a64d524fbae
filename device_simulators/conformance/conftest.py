"""The fixtures of the cases: a virtual device of each make in turn, or the one at the endpoint that was
given.
"""

from collections.abc import Iterator
from pathlib import Path

import pytest

from device_simulators.conformance import makes, remote, rigs


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line(
        "markers", "in_process: a case that only devices in the tests' own process can have"
    )


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(params=makes.ALL, ids=makes.named)
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
