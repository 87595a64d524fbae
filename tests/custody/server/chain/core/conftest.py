import pytest

from tests.support.fake_bitcoind import FakeNodeRig


@pytest.fixture
def rig(tmp_path):
    """The Core backend with a simulated node that has a first block."""
    opened = FakeNodeRig(tmp_path / "chain")
    opened.mine()
    yield opened
    opened.close()


@pytest.fixture
def faults(rig):
    return rig.node.faults
