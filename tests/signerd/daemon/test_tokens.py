"""What the platform says of a vault's tokens: shown as its words, in proven decimals where the token is
proven (S13).
"""

import pytest

from signerd.daemon.funds import vault_tokens
from signerd.errors import UnknownVault
from tests.support.daemons import daemon_at, prepare, until
from tests.support.desk import VAULT_ID
from tests.support.fake_bridge import FakeBridge
from tests.support.fake_platform import FakePlatform
from tests.support.paged import paged
from tests.support.tokens import GOLD, HELD, call, published, told_call

pytestmark = pytest.mark.anyio


@pytest.fixture
def platform(tmp_path):
    return FakePlatform(tmp_path, holdings=[HELD], calls=[told_call(uid) for uid in range(1, 30)])


@pytest.fixture
async def daemon(tmp_path, platform):
    state = tmp_path / "state"
    state.mkdir(mode=0o700)
    prepare(state)
    async with daemon_at(state, platform, FakeBridge()) as running:
        await until(lambda: bool(running.follower.state.workspaces))
        yield running


async def test_an_unproven_token_has_the_platform_s_name_and_decimals_and_is_marked(daemon):
    (held,) = (await vault_tokens(daemon, VAULT_ID)).holdings
    assert (held.proven, held.name, held.balance) == (False, "Bitcoin <b>", "98750")


async def test_s13_a_proven_one_has_its_own(daemon):
    daemon.journal.learn_token(call(), published(GOLD))
    (held,) = (await vault_tokens(daemon, VAULT_ID)).holdings
    assert (held.proven, held.name, held.balance, held.supply) == (True, GOLD.name, "987.50", "1000.00")


async def test_the_newest_calls_come_first_and_more_is_said(daemon):
    found = await vault_tokens(daemon, VAULT_ID)
    assert [shown.uid for shown in found.calls] == list(range(29, 9, -1))
    assert found.more


@pytest.mark.parametrize("lie", [{"balance": "1e9"}, {"decimals": 2**63}, {"decimals": 10**9}, {"name": 7}])
async def test_f_a_holding_that_makes_no_sense_hides_no_other(daemon, platform, lie):
    platform.holdings, platform.calls = [{**HELD, **lie}, HELD], [{"UID": 2**63}, told_call(1)]
    found = await vault_tokens(daemon, VAULT_ID)
    assert [held.balance for held in found.holdings] == ["98750"]
    assert [shown.uid for shown in found.calls] == [1]
    assert found.more


async def test_the_platform_is_not_asked_about_an_unknown_vault(daemon):
    with pytest.raises(UnknownVault):
        await vault_tokens(daemon, "vault-9")


async def test_l8_the_page_marks_it_as_the_platform_s_words(daemon):
    async with paged(daemon) as browser:
        answer = await browser.get(f"/vaults/{VAULT_ID}/tokens")
    assert answer.status_code == 200
    assert "Not trusted here" in answer.text
    assert "Bitcoin &lt;b&gt;" in answer.text
    assert "<b>" not in answer.text.split("holdings-title")[1].split("calls-title")[0]
