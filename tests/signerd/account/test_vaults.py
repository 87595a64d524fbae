"""Pinning: what is compared, and what can never be pinned (S15, S16, S17); a vault's record as platforms of
several ages answer with it. In the whole daemon the device shows the address first, nothing is approved by
it, and changes are alarms.
"""

from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from custody.schemas.vaults import Vault
from firmware_bridge import DeviceState
from signerd.account.vaults import OF_OTHERS, RECORD, pin, pinnable, require_code, seen_vaults
from signerd.account.wire import PlatformWorkspace, claim_of
from signerd.cli.vaults import preview_text
from signerd.core.audit import Note
from signerd.core.states import State
from signerd.core.values import Pin, VaultClaim
from signerd.daemon import vaults
from signerd.daemon.service import Daemon
from signerd.errors import AccountReused, DeviceUnready, NoSuchDevice, VaultDiffers, WrongCode
from signerd.journal import Journal
from signerd.journal.keys_and_vaults import AtDevice
from tests.support.daemons import daemon_at, notices, some_rounds, told, until_state
from tests.support.desk import CLAIM, NETWORK, VAULT, VAULT_ID, open_journal, own_keys
from tests.support.fake_bridge import FakeBridge
from tests.support.fake_platform import STAMP, FakePlatform
from tests.support.wallets import ALICE, BOB, CAROL, MALLORY, make_vault

SHOWN = AtDevice(enrolled=True, address_shown=True)
CODE = VAULT.verification_code


@pytest.fixture
def journal(tmp_path: Path) -> Journal:
    with open_journal(tmp_path) as journal:
        journal.add_own_keys(own_keys(), "key-1", Note("registered", "key-1"))
        journal.learn(CLAIM)
        yield journal


def pin_it(journal: Journal, vault_id: str = VAULT_ID) -> Pin:
    return pin(journal, pinnable(journal, vault_id), RECORD, SHOWN)


def shown(journal: Journal, descriptor: str, vault_id: str = "vault-2", **figures: object) -> None:
    journal.learn(VaultClaim(vault_id, 1, "Second", descriptor, **figures))


def last(journal: Journal):
    return list(journal.audit())[-1].note


def test_a_pinned_vault_is_known_with_our_key_in_it(journal: Journal) -> None:
    pinned = pin_it(journal)
    assert pinned.own_key == ALICE.vault_key()
    assert journal.pins() == (pinned,)
    assert journal.at_device(journal.pin(VAULT_ID)) == SHOWN
    facts = last(journal).facts
    assert last(journal).kind == "pinned"
    assert (facts["source"], facts["address_on_device"]) == ("record", "shown")
    assert (facts["code"], facts["address"]) == (CODE, VAULT.address(0, 0))
    assert pin_it(journal) == pinned
    assert [entry.note.kind for entry in journal.audit()].count("pinned") == 1


def test_a_descriptor_that_cannot_be_read_is_shown_as_such(journal: Journal) -> None:
    shown(journal, VAULT.descriptor.replace("48h", "49h"))
    seen = next(vault for vault in seen_vaults(journal) if vault.vault_id == "vault-2")
    assert seen.fault
    assert seen.vault is None
    with pytest.raises(VaultDiffers):
        pinnable(journal, "vault-2")


def test_each_vault_has_an_account_of_its_own(journal: Journal) -> None:
    pin_it(journal)
    shown(journal, make_vault((ALICE, BOB, MALLORY)).descriptor)
    with pytest.raises(AccountReused, match="Treasury"):
        pinnable(journal, "vault-2")
    shown(journal, make_vault((ALICE, BOB, MALLORY), account=1).descriptor, "vault-3")
    assert pin_it(journal, "vault-3").own_key == ALICE.vault_key(account=1)


# --- our key (S15), repeated keys (S17) ---------------------------------------------------------------------


def test_s16_a_record_that_contradicts_its_descriptor_is_not_pinned(journal: Journal) -> None:
    shown(journal, make_vault(account=1).descriptor, threshold=3)
    with pytest.raises(VaultDiffers, match="contradicts"):
        pinnable(journal, "vault-2")


# --- where the quorum is from -------------------------------------------------------------------------------


@pytest.mark.parametrize("source", ["file", "psbt"])
def test_s16_what_the_person_brings_is_the_records_quorum_or_refused_with_both_shown(
    journal: Journal, source: str
) -> None:
    same = make_vault((CAROL, ALICE, BOB))
    for is_pinned in (False, True):
        for other in (make_vault((ALICE, BOB, MALLORY)), make_vault(threshold=3), make_vault(account=1)):
            with pytest.raises(VaultDiffers) as told:
                pinnable(journal, VAULT_ID, other, source)
            for vault in (VAULT, other):
                assert vault.verification_code in str(told.value)
                assert vault.address(0, 0) in str(told.value)
        pin(journal, pinnable(journal, VAULT_ID, same, source), source, SHOWN)
        assert is_pinned or last(journal).facts["source"] == source


def test_what_changes_while_the_person_is_at_the_device_is_not_pinned(journal: Journal) -> None:
    wanted = pinnable(journal, VAULT_ID)
    journal.learn(replace(CLAIM, descriptor=make_vault((ALICE, BOB, MALLORY)).descriptor))
    with pytest.raises(VaultDiffers):
        pin(journal, wanted, RECORD, SHOWN)
    assert journal.pins() == ()


# --- codes, and looking at a change -------------------------------------------------------------------------


def test_a_code_is_taken_as_people_type_it_and_another_is_not() -> None:
    for typed in (CODE, CODE.lower(), CODE.replace("-", " "), f" {CODE.replace('-', '')}\n"):
        require_code(VAULT, typed)
    for typed, where in (
        ("", "has 0 letters"),
        (CODE[:-1], "has 31 letters"),
        (f"0000{CODE[4:]}", "in group 1$"),
    ):
        with pytest.raises(WrongCode, match=where):
            require_code(VAULT, typed)


def test_s16_a_changed_vault_is_shown_as_pinned_and_cannot_be_pinned_over(journal: Journal) -> None:
    pin_it(journal)
    for claim in (replace(CLAIM, descriptor=make_vault(threshold=1).descriptor), CLAIM):
        journal.learn(claim)
        (seen,) = seen_vaults(journal)
        assert seen.vault == VAULT
        assert seen.changes
        assert "ALARM" in seen.fault
        with pytest.raises(VaultDiffers) as told:
            pinnable(journal, VAULT_ID)
        assert "signerd unpin" in told.value.hint


def replace_device(journal: Journal) -> None:
    journal.add_own_keys(own_keys(MALLORY), "key-2", Note("registered", "key-2"))


def test_a_pinned_vault_with_a_replaced_key_stays_readable_and_says_so(journal: Journal) -> None:
    pin_it(journal)
    replace_device(journal)
    (seen,) = seen_vaults(journal)
    assert (seen.pinned, seen.vault, seen.own) == (True, VAULT, None)
    assert seen.fault is not None
    assert "a device of yours that was replaced" in seen.fault
    assert seen.changes == ()


def test_s15_a_former_devices_fingerprint_on_another_key_is_an_alarm(journal: Journal) -> None:
    replace_device(journal)
    shown(journal, make_vault(account=5).descriptor)
    assert next(seen.fault for seen in seen_vaults(journal) if seen.vault_id == "vault-2").startswith("ALARM")


HERE = PlatformWorkspace(1, "Main", "testnet")
FIGURES = {"Limit": "1.00", "Used": "0.40", "Unused": "0.60", "NextReset": STAMP}
LIMITS = {"detailed_vault_limits": FIGURES | {"CyclePeriod": "W", "CycleDay": 1}}
ASSET = {"contract_uid": 1, "contract_id": None, "ticker": "GOLD", "decimals": 2, **FIGURES}


@pytest.mark.parametrize(
    "fields",
    [
        {"limit_error": "no"},
        LIMITS,
        LIMITS | {"assets": []},
        LIMITS | {"assets": [ASSET]},
        LIMITS | {"assets": [ASSET | {"LimitOfItsOwn": True}], "more": {}},
    ],
    ids=["no policies", "older", "no token moved", "a token moved", "newer"],
)
def test_a_vault_is_the_same_whatever_is_told_of_its_limits(tmp_path: Path, fields: dict[str, Any]) -> None:
    record = FakePlatform(tmp_path, {})._vault()
    del record["limit_error"]
    claim = claim_of(Vault.model_validate(record | fields), HERE)
    assert (claim.vault_id, claim.descriptor) == (CLAIM.vault_id, CLAIM.descriptor)


pytestmark = pytest.mark.anyio
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
    bridge.becomes(DeviceState.BUSY)
    with pytest.raises(DeviceUnready) as asked:
        await vaults.pin(daemon, VAULT_ID, CODE)
    assert asked.value.hint == "Answer what is on its screen first."
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
