"""A daemon whose answers are scripted."""

import pytest

from tests.support.served import served_script


@pytest.fixture(scope="module")
def silent(tmp_path_factory):
    """It knows no answer: nothing may reach it."""
    with served_script(tmp_path_factory.mktemp("silent") / "s") as daemon:
        yield daemon
