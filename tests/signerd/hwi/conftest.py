"""A registered device with a pinned vault behind a real daemon, and the program that asks it."""

import pytest

from signerd.core.audit import Note
from signerd.core.values import SigningLimits
from signerd.journal import Journal
from tests.support.bills import PROFILE_KEY
from tests.support.command import signerd_hwi
from tests.support.daemons import prepare
from tests.support.desk import NETWORK, own_keys
from tests.support.served import make_outer, served_daemon


@pytest.fixture
def outer(tmp_path):
    return make_outer(tmp_path)


@pytest.fixture
def desk(tmp_path, outer):
    """Registered with the profile's account too, as a registration leaves it."""
    state = tmp_path / "s"
    state.mkdir(mode=0o700)
    prepare(state)
    with Journal(state, network=NETWORK, limits=SigningLimits()) as journal:
        journal.add_own_keys((*own_keys(), PROFILE_KEY), "key-1", Note("registered", "key-1"))
    with served_daemon(state, outer, prepared=False) as daemon:
        yield daemon


@pytest.fixture
def hwi(desk):
    def ask(*arguments, typed=""):
        # A test that fails does not wait as a person would.
        return signerd_hwi("--wait", "5", *arguments, state=desk.state, typed=typed)

    return ask
