"""A platform for each test."""

from pathlib import Path

import pytest

from tests.support.platform import open_world


@pytest.fixture
def world(tmp_path: Path, database: str):
    with open_world(tmp_path / "state", database_url=database) as opened:
        yield opened
