"""Settings alone choose the platform's chain backend."""

import pytest
from click.testing import CliRunner

from custody.common.terminal import Exit
from custody.server.app import open_platform
from custody.server.cli import app
from custody.server.errors import ChainUnavailable
from custody.server.settings import Settings
from tests.support.fake_bitcoind import PASSWORD, USER, FakeNodeRig

REGTEST = "CUSTODY_CHAIN_REGTEST"


@pytest.fixture
def rig(tmp_path):
    opened = FakeNodeRig(tmp_path / "elsewhere")
    opened.mine(3)
    yield opened
    opened.close()


@pytest.fixture
def platform(tmp_path, rig, monkeypatch):
    monkeypatch.setenv(REGTEST, f"bitcoind:{rig.node.url}")
    monkeypatch.setenv(f"{REGTEST}_USER", USER)
    monkeypatch.setenv(f"{REGTEST}_PASSWORD", PASSWORD)
    opened = open_platform(Settings(state=tmp_path / "state"))
    yield opened
    opened.close()


def test_a_node_takes_the_place_of_the_embedded_chain(platform, rig, tmp_path):
    background = platform.background
    assert not background.has_embedded_chain
    background.open_chains()
    assert background.backends["regtest"].tip() == rig.chain.tip()
    assert [watcher.chain for watcher in background.watchers()] == ["regtest"]
    assert background.tools.market.refresh("regtest").tip == rig.chain.tip()
    assert not (tmp_path / "state" / "chain").exists()
    background.close_chains()


def test_a_node_that_is_down_stops_no_server(platform, rig):
    rig.node.faults.hangs_up = True
    platform.background.open_chains()
    with pytest.raises(ChainUnavailable):
        platform.background.tools.market.refresh("regtest")
    rig.node.faults.hangs_up = False
    assert platform.background.tools.market.refresh("regtest").tip == rig.chain.tip()
    platform.background.close_chains()


def test_a_mistyped_setting_is_reported_before_anything_is_opened(tmp_path, monkeypatch):
    monkeypatch.setenv("CUSTODY_CHAIN_MAINET", "bitcoind:http://127.0.0.1:8332")
    result = CliRunner().invoke(app, ["serve", "--state", str(tmp_path / "new"), "--listen", "127.0.0.1:0"])
    assert result.exit_code == Exit.STATE
    assert "CUSTODY_CHAIN_MAINET is not a setting" in result.stderr
    assert "The page 'The chain'" in result.stderr
    assert not (tmp_path / "new").exists()
