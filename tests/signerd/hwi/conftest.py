"""A registered device with a pinned vault behind a real daemon, and the program that asks it."""

import pytest

from tests.support.command import signerd_hwi
from tests.support.served import make_outer, served_daemon


@pytest.fixture
def outer(tmp_path):
    return make_outer(tmp_path)


@pytest.fixture
def desk(tmp_path, outer):
    with served_daemon(tmp_path / "s", outer) as daemon:
        yield daemon


@pytest.fixture
def hwi(desk):
    def ask(*arguments, typed=""):
        # The device is at an emulator's address. A test that fails does not wait as a person would.
        return signerd_hwi("--emulators", "--wait", "5", *arguments, state=desk.state, typed=typed)

    return ask
