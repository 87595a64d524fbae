import pytest

from tests.support.esplora import EsploraRig


@pytest.fixture
def rig(tmp_path):
    opened = EsploraRig(tmp_path / "chain")
    yield opened
    opened.close()
