import pytest


@pytest.fixture
def rig(esplora_rig):
    esplora_rig.renew()
    return esplora_rig
