"""Bumps, cancels and forwards through the whole daemon: from the platform's word to the signature it gets
back.
"""

from pathlib import Path

import pytest

from multisig import RECEIVE, Psbt, TxOut, build_psbt, sats, signer_progress
from signerd.cli.words import proposal_text
from signerd.core.audit import Note
from signerd.core.states import State
from signerd.core.values import SigningLimits, Snapshot
from signerd.daemon import vaults
from signerd.errors import NeedsAcknowledgement
from signerd.journal import Journal
from tests.support.daemons import approve, daemon_at, until_state
from tests.support.desk import NETWORK, VAULT, snapshot_of
from tests.support.fake_bridge import FakeBridge
from tests.support.fake_platform import FakePlatform
from tests.support.payments import PROFILE, forward_of, forward_psbt, profile_key, shop, spend_of
from tests.support.wallets import ALICE, BOB, fund, make_vault

pytestmark = pytest.mark.anyio


def platform_with(folder: Path, *snapshots: Snapshot) -> FakePlatform:
    return FakePlatform(folder, {snapshot.psbt_id: snapshot for snapshot in snapshots})


async def test_s6_a_bump_and_a_cancel_of_what_was_signed_are_signed_without_a_warning(
    prepared: Path, tmp_path: Path, bridge: FakeBridge
) -> None:
    platform = platform_with(tmp_path, shop())
    async with daemon_at(prepared, platform, bridge) as daemon:
        await approve(daemon, "p-1")
        await until_state(daemon, "p-1", State.SUBMITTED)
        platform.proposals["p-2"] = shop((1, 2), 3_000, "p-2", replaces="p-1")
        await until_state(daemon, "p-2", State.WAITING_PERSON)
        text = proposal_text(await daemon.proposal("p-2"))
        head = text[: text.index("Where the money goes")]
        assert "  It replaces p-1: only the fee changes, from 5." in head
        await approve(daemon, "p-2")
        await until_state(daemon, "p-2", State.SUBMITTED)
        platform.proposals["p-3"] = snapshot_of(spend_of((1, 2), (), 9_000), "p-3", replaces="p-2")
        await until_state(daemon, "p-3", State.WAITING_PERSON)
        await approve(daemon, "p-3")
        await until_state(daemon, "p-3", State.SUBMITTED)
    assert bridge.asked == 3


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
        await approve(daemon, "p-1")
        await until_state(daemon, "p-1", State.SUBMITTED)


# --- forwards -----------------------------------------------------------------------------------------------


@pytest.fixture
def registered(prepared: Path) -> Path:
    """The profile was registered with the key, as a whole registration does."""
    with Journal(prepared, network=NETWORK, limits=SigningLimits()) as journal:
        journal.add_own_keys((profile_key(),), "key-1", Note("registered", "key-1"))
    return prepared


async def test_a_forward_is_shown_approved_signed_with_the_profile_and_submitted(
    registered: Path, tmp_path: Path, bridge: FakeBridge
) -> None:
    platform = platform_with(tmp_path, forward_of(forward_psbt()))
    async with daemon_at(registered, platform, bridge) as daemon:
        await until_state(daemon, "f-1", State.WAITING_PERSON)
        text = proposal_text(await daemon.proposal("f-1"))
        assert "back   0.00039000 BTC (39,000 sats) to your own profile" in text
        assert "takes  0.00100000 BTC (100,000 sats) from your own profile" in text
        assert bridge.asked == 0
        await approve(daemon, "f-1")
        await until_state(daemon, "f-1", State.SUBMITTED)
        (told,) = platform.signatures("f-1")
        assert signer_progress(Psbt.parse(told["psbt"]), PROFILE, ALICE.fingerprint).is_complete
        approved = next(e.note for e in daemon.journal.audit() if e.note.kind == "approved")
        assert approved.facts["payments"] == []
        assert [amount for _script, amount in approved.facts["forwarded"]] == [60_000]
        assert (await daemon.verify_audit()).fault is None


async def test_s19_what_another_device_signed_of_a_forward_is_not_taken(
    registered: Path, tmp_path: Path, bridge: FakeBridge
) -> None:
    bridge.alter = lambda _psbt: BOB.sign(forward_psbt(profile=BOB.profile(NETWORK)))
    platform = platform_with(tmp_path, forward_of(forward_psbt()))
    async with daemon_at(registered, platform, bridge) as daemon:
        await approve(daemon, "f-1")
        await until_state(daemon, "f-1", State.INTERRUPTED)
        assert "was not used" in daemon.journal.record("f-1").reason
    assert platform.signatures("f-1") == []
