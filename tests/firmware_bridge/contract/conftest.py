"""One make after the other, in a folder with a short name."""

from pathlib import Path

import pytest

from tests.support import makes, rigs


@pytest.fixture(params=makes.ALL, ids=makes.named)
def make(request):
    return request.param


@pytest.fixture
def folder():
    with rigs.short_folder() as name:
        yield Path(name)


@pytest.fixture
def rig(make, folder):
    return make.rig(folder)
