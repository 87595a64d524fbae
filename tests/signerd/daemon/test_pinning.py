"""Pinning in the whole daemon: the device shows the address first, nothing is approved by it, and changes are
alarms.
"""

from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest

from firmware_bridge import DeviceState
from signerd.account.vaults import OF_OTHERS
from signerd.cli.vaults import preview_text
from signerd.core.audit import Note
from signerd.core.states import State
from signerd.core.values import VaultClaim
from signerd.daemon import vaults
from signerd.daemon.service import Daemon
from signerd.errors import (
    NoSuchDevice,
    WrongCode,
)
from tests.support.daemons import daemon_at, notices, some_rounds, told, until_state
from tests.support.desk import NETWORK, VAULT, VAULT_ID, own_keys
from tests.support.fake_bridge import FakeBridge
from tests.support.fake_platform import FakePlatform
from tests.support.wallets import ALICE, BOB, CAROL, MALLORY, make_vault

pytestmark = pytest.mark.anyio
CODE = VAULT.verification_code
OTHER = make_vault((ALICE, BOB, MALLORY))


@pytest.fixture
async def daemon(state: Path, platform: FakePlatform, bridge: FakeBridge) -> AsyncIterator[Daemon]:
    """Its key is registered; the vault is seen and not pinned."""
    async with daemon_at(state, platform, bridge) as daemon:
        preview = await daemon.preview_registration()
        await daemon.register(preview.device_id, preview.digest)
        await until_state(daemon, "p-1", State.REFUSED)
        yield daemon


def kinds(daemon: Daemon) -> list[str]:
    return [entry.note.kind for entry in daemon.journal.audit()]


async def test_a_vault_of_others_needs_no_attention_and_one_that_our_key_left_until_it_is_unpinned(daemon):
    others = make_vault((BOB, CAROL, MALLORY))
    daemon.journal.learn(VaultClaim("vault-2", 1, "Reserve 2", others.descriptor))
    assert OF_OTHERS in [view.fault for view in await vaults.vaults(daemon)]
    assert await notices(daemon, "Vault ") == []
    daemon.journal.add_own_keys(own_keys(MALLORY), "key-2", Note("registered", "key-2"))
    # Never pinned here, and made with a former key: its coins may wait to be moved on.
    (note,) = await notices(daemon, "Vault ")
    assert "former key" in note
    assert "unpin" not in note


async def test_of_a_vault_that_was_never_pinned_no_notice_names_unpin(daemon):
    forged = replace(MALLORY.vault_key(NETWORK), origin=ALICE.vault_key(NETWORK).origin)
    impostor = replace(VAULT, cosigners=(forged, *make_vault((BOB, CAROL)).cosigners))
    daemon.journal.learn(VaultClaim("vault-2", 1, "Cold `x", impostor.descriptor))
    daemon.journal.learn(VaultClaim("vault-3", 1, "Reserve", "wsh(nothing)"))
    told = await notices(daemon, "Vault ")
    assert len(told) == 2
    assert "Vault Cold 'x: ALARM" in told[0]
    assert not [note for note in told if "unpin" in note]


async def test_without_a_device_it_is_pinned_by_the_flag_only_and_the_device_comes_later(daemon, bridge):
    bridge.becomes(DeviceState.LOCKED)
    with pytest.raises(NoSuchDevice) as refused:
        await vaults.pin(daemon, VAULT_ID, CODE)
    assert "--without-device-address" in refused.value.hint
    view = await vaults.pin(daemon, VAULT_ID, CODE, without_device_address=True)
    assert (view.pinned, view.enrolled, view.address_shown) == (True, False, False)
    bridge.becomes(DeviceState.READY)
    view = await vaults.pin(daemon, VAULT_ID, CODE)
    assert (view.enrolled, view.address_shown) == (True, True)
    assert kinds(daemon).count("pinned") == 1


async def test_the_device_is_not_asked_before_the_code_is_right(daemon, bridge):
    with pytest.raises(WrongCode):
        await vaults.pin(daemon, VAULT_ID, OTHER.verification_code)
    assert bridge.enrolled == bridge.shown == []


async def test_s16_a_later_change_is_told_refuses_and_ends_only_by_the_old_code(prepared, platform, bridge):
    async with daemon_at(prepared, platform, bridge) as daemon:
        await until_state(daemon, "p-1", State.WAITING_PERSON)
        platform.vault = OTHER
        (view,) = await vaults.vaults(daemon)
        assert view.changes
        assert view.verification_code == CODE
        assert len(told(daemon, VAULT_ID, "alarm")) == 1
        await until_state(daemon, "p-1", State.REFUSED)
        checks = {check.name: check.outcome for check in (await daemon.proposal("p-1")).checks}
        assert checks["vault-alarm"] == "refuse"
        # Taking it back changes nothing, and no poll tells it again.
        platform.vault = VAULT
        await vaults.vaults(daemon)
        await some_rounds(daemon)
        assert daemon.journal.record("p-1").state is State.REFUSED
        assert kinds(daemon).count("vault-changed") == len(told(daemon, VAULT_ID, "alarm")) == 1
        assert any("ALARM" in note for note in (await daemon.status()).notes)
        for code in (OTHER.verification_code, ""):
            with pytest.raises(WrongCode):
                await vaults.unpin(daemon, VAULT_ID, code)
        assert not (await vaults.unpin(daemon, VAULT_ID, CODE)).pinned
        assert daemon.journal.record("p-1").state is State.REFUSED
        assert not (await vaults.pin(daemon, VAULT_ID, CODE)).changes
        await until_state(daemon, "p-1", State.WAITING_PERSON)
        assert bridge.asked == 0
        assert (await daemon.verify_audit()).fault is None


@pytest.mark.parametrize(("threshold", "warned"), [(1, True), (2, False)])
async def test_s27_two_groups_of_signers_without_a_common_member_are_warned_of_before_the_pin(
    daemon, threshold, warned
):
    """What the page and the command line print line by line."""
    vault = make_vault(threshold=threshold)
    daemon.journal.learn(VaultClaim("vault-2", 1, "Other", vault.descriptor))
    preview = await vaults.preview_pin(daemon, "vault-2")
    assert (f"WARNING: {threshold} of 3 signers are enough" in preview_text(preview)) is warned
    assert any("Ask the other signers before you approve" in line for line in preview.advice) is warned
