import pytest

from tests.support.custody import open_desk


@pytest.fixture
def desk(tmp_path, database):
    with open_desk(tmp_path / "state", database_url=database) as opened:
        yield opened


@pytest.fixture
def funded(desk):
    """A vault with three confirmed deposits."""
    desk.deposit(100_000, 200_000, 400_000)
    return desk
