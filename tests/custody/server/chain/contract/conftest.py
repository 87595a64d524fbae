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


@pytest.fixture(params=RIGS)
def rig(request: pytest.FixtureRequest) -> Rig:
    return request.getfixturevalue(f"{request.param}_rig")


@pytest.fixture
def embedded_rig(tmp_path):
    opened = EmbeddedRig(tmp_path / "chain")
    yield opened
    opened.close()


@pytest.fixture
def core_rig(tmp_path):
    opened = FakeNodeRig(tmp_path / "chain")
    yield opened
    opened.close()


@pytest.fixture
def esplora_rig(tmp_path):
    opened = EsploraRig(tmp_path / "chain")
    yield opened
    opened.close()


@pytest.fixture
def mempool_space_rig(tmp_path):
    """The same API with mempool.space's test of acceptance."""
    opened = EsploraRig(tmp_path / "chain", tests=True)
    yield opened
    opened.close()
