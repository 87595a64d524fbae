"""The contract of every chain backend: each test runs once for each rig.

A new kind of backend brings a fixture ``<kind>_rig``; the tests stay as they are.
What a rig is stands in tests/support/chains.py.
"""

import pytest

from custody.server.chain.configuration import Kind
from tests.support.chains import EmbeddedRig, Rig
from tests.support.esplora import EsploraRig
from tests.support.fake_bitcoind import FakeNodeRig

# Two kinds have a second rig: an explorer with mempool.space's API, and a fake node.
RIGS = (*Kind, "mempool_space", "core")


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


@pytest.fixture(scope="module")
def esplora_rig(tmp_path_factory):
    opened = EsploraRig(tmp_path_factory.mktemp("chain"))
    yield opened
    opened.close()


@pytest.fixture(scope="module")
def mempool_space_rig(tmp_path_factory):
    """The same API with mempool.space's test of acceptance."""
    opened = EsploraRig(tmp_path_factory.mktemp("chain"), tests=True)
    yield opened
    opened.close()
