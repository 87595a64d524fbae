import pytest

from tests.support.esplora import EsploraRig


@pytest.fixture(scope="module")
def module_rig(tmp_path_factory):
    opened = EsploraRig(tmp_path_factory.mktemp("chain"))
    yield opened
    opened.close()


@pytest.fixture
def rig(module_rig):
    module_rig.renew()
    return module_rig
