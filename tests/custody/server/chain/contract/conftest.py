"""The contract of every chain backend: each test runs once for each rig.

A new kind of backend brings a fixture ``<kind>_rig``; the tests stay as they are.
What a rig is stands in tests/support/chains.py.
"""

import pytest

from custody.server.chain.configuration import BackendKind
from tests.support.chains import EmbeddedRig, Rig
from tests.support.fake_bitcoind import FakeNodeRig
from tests.support.regtest import open_output

# One kind has a second rig: a fake node.
RIGS = (*BackendKind, "core")


@pytest.fixture(scope="module", params=RIGS)
def rig(request: pytest.FixtureRequest) -> Rig:
    return request.getfixturevalue(f"{request.param}_rig")


@pytest.fixture(scope="module")
def embedded_rig(tmp_path_factory):
    opened = EmbeddedRig(tmp_path_factory.mktemp("chain"))
    yield opened
    opened.close()


@pytest.fixture(scope="module")
def core_rig(tmp_path_factory):
    opened = FakeNodeRig(tmp_path_factory.mktemp("chain"))
    yield opened
    opened.close()


@pytest.fixture
def here(rig):
    """A script that nothing has paid so far."""
    return open_output(rig.fresh())
