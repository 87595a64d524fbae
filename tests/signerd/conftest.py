"""A scripted platform that offers one proposal, a scripted device, and an unused state folder."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.daemons import prepare
from tests.support.desk import snapshot_of, spend
from tests.support.fake_bridge import FakeBridge
from tests.support.fake_platform import FakePlatform
from tests.support.written import none_open_to_others


@pytest.fixture(autouse=True)
def what_is_written_is_the_persons_alone() -> Iterator[None]:
    with none_open_to_others():
        yield


@pytest.fixture
def state(tmp_path: Path) -> Path:
    folder = tmp_path / "state"
    folder.mkdir(mode=0o700)
    return folder


@pytest.fixture
def prepared(state: Path) -> Path:
    """The folder of a person who has registered and pinned already."""
    prepare(state)
    return state


@pytest.fixture
def platform(tmp_path: Path) -> FakePlatform:
    return FakePlatform(tmp_path, {"p-1": snapshot_of(spend())})


@pytest.fixture
def bridge() -> FakeBridge:
    return FakeBridge()
