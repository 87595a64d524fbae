"""What a vault holds, and the next address to be paid to: derived here, whatever the platform says."""

import pytest

from multisig import MAX_INDEX
from signerd.daemon.funds import NONE_LEFT, NOT_OURS
from signerd.errors import NotPinned
from signerd.journal import Journal
from tests.support.daemons import daemon_at, until
from tests.support.desk import VAULT, VAULT_ID
from tests.support.fake_bridge import FakeBridge
from tests.support.fake_platform import FakePlatform, problem
from tests.support.wallets import make_vault

pytestmark = pytest.mark.anyio


@pytest.fixture
def platform(tmp_path):
    return FakePlatform(tmp_path, next_address=VAULT.address(0, 7), confirmed_sats=5_000)


async def test_the_platform_says_which_of_our_addresses_is_next(prepared, platform):
    async with daemon_at(prepared, platform, FakeBridge()) as daemon:
        await until(lambda: bool(daemon.follower.state.workspaces))
        found = await daemon.funds.of_vault(VAULT_ID)
        assert (found.fresh.index, found.fresh.address) == (7, VAULT.address(0, 7))
        assert (found.confirmed_sats, found.note) == (5_000, None)


async def test_s13_an_address_that_is_none_of_the_vaults_is_never_told(prepared, platform):
    platform.next_address = make_vault(threshold=1).address(0, 0)
    async with daemon_at(prepared, platform, FakeBridge()) as daemon:
        await until(lambda: bool(daemon.follower.state.workspaces))
        found = await daemon.funds.of_vault(VAULT_ID)
        assert (found.fresh.index, found.fresh.address) == (0, VAULT.address(0, 0))
        assert "Pay nothing to it" in (found.note or "")
        assert platform.next_address not in found.model_dump_json()


async def test_behind_the_last_address_there_is_none_and_that_is_said(prepared, platform, monkeypatch):
    """A thousand payments signed here lead there, each a thousand addresses further."""
    monkeypatch.setattr(Journal, "next_receive_index", lambda _journal, _vault: MAX_INDEX + 1)
    async with daemon_at(prepared, platform, FakeBridge()) as daemon:
        await until(lambda: bool(daemon.follower.state.workspaces))
        found = await daemon.funds.of_vault(VAULT_ID)
        assert (found.fresh.index, found.fresh.address) == (MAX_INDEX, VAULT.address(0, MAX_INDEX))
        assert (found.confirmed_sats, found.note) == (5_000, NONE_LEFT)
        # The worse finding is not hidden by it, and is found before all addresses up to there are derived.
        platform.next_address = make_vault(threshold=1).address(0, 0)
        assert (await daemon.funds.of_vault(VAULT_ID)).note == f"{NOT_OURS} {NONE_LEFT}"


async def test_without_the_platform_there_is_an_address_and_a_word_why_no_balance(prepared, platform):
    async with daemon_at(prepared, platform, FakeBridge()) as daemon:
        await until(lambda: bool(daemon.follower.state.workspaces))
        platform.before = lambda request: (
            problem(503, "UNAVAILABLE") if request.url.path.endswith("list-wallets") else None
        )
        found = await daemon.funds.of_vault(VAULT_ID)
        assert (found.confirmed_sats, found.fresh.index) == (None, 0)
        assert "signed here alone" in (found.note or "")
        await daemon.unpin(VAULT_ID, VAULT.verification_code)
        with pytest.raises(NotPinned):
            await daemon.funds.of_vault(VAULT_ID)
