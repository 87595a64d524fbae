"""Bumps, cancels and forwards through the whole daemon: from the platform's word to the signature it gets
back.
"""

from pathlib import Path

import pytest

from multisig import RECEIVE, TxOut, build_psbt, sats
from signerd.cli.words import proposal_text
from signerd.core.states import State
from signerd.core.values import Snapshot
from signerd.daemon import vaults
from signerd.errors import NeedsAcknowledgement
from tests.support.daemons import approve, daemon_at, submits, until_state
from tests.support.desk import VAULT, snapshot_of
from tests.support.fake_bridge import FakeBridge
from tests.support.fake_platform import FakePlatform
from tests.support.wallets import fund, make_vault

pytestmark = pytest.mark.anyio


def platform_with(folder: Path, *snapshots: Snapshot) -> FakePlatform:
    return FakePlatform(folder, {snapshot.psbt_id: snapshot for snapshot in snapshots})


async def test_s16_a_sweep_into_a_vault_that_the_platform_names_is_held_until_that_vault_is_pinned(
    prepared: Path, tmp_path: Path, bridge: FakeBridge
) -> None:
    new = make_vault(account=1)
    outputs = [TxOut(sats(99_000), new.script_pubkey(RECEIVE, 0))]
    platform = platform_with(tmp_path, snapshot_of(build_psbt(VAULT, [fund(VAULT, 100_000)], outputs, 0)))
    platform.replaced_by = "vault-2"
    platform.bad_vaults.append({**FakePlatform(tmp_path, vault=new)._vault(), "id": "vault-2", "name": "New"})
    async with daemon_at(prepared, platform, bridge) as daemon:
        await until_state(daemon, "p-1", State.WAITING_PERSON)
        shown = await daemon.proposal("p-1")
        assert shown.to_acknowledge == ("replacement-not-pinned",)
        assert "0.00099000 BTC (99,000 sats) go to no vault" in proposal_text(shown)
        with pytest.raises(NeedsAcknowledgement):
            await approve(daemon, "p-1")
        await vaults.pin(daemon, "vault-2", new.verification_code)
        shown = await daemon.proposal("p-1")
        assert shown.to_acknowledge == ()
        assert f"your vault 'New' ({new.verification_code.partition('-')[0]})" in proposal_text(shown)
        await submits(daemon, "p-1")
