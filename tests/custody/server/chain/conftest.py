from contextlib import closing

import pytest

from custody.server.chain.embedded import EmbeddedChain
from tests.support.esplora import EsploraRig
from tests.support.regtest import FakeClock


@pytest.fixture
def clock():
    return FakeClock()


@pytest.fixture
def chain(tmp_path, clock):
    with closing(EmbeddedChain(tmp_path / "chain", clock=clock)) as opened:
        yield opened


@pytest.fixture(scope="module")
def esplora_rig(tmp_path_factory):
    opened = EsploraRig(tmp_path_factory.mktemp("chain"))
    yield opened
    opened.close()
