"""Pinning: what is compared, and what can never be pinned (S15, S16, S17); a vault's record as platforms of
several ages answer with it.
"""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from custody.schemas.vaults import Vault
from signerd.account.vaults import RECORD, pin, pinnable, require_code, seen_vaults
from signerd.account.wire import PlatformWorkspace, claim_of
from signerd.core.audit import Note
from signerd.core.values import Pin, VaultClaim
from signerd.errors import (
    AccountReused,
    VaultDiffers,
    WrongCode,
)
from signerd.journal import Journal
from signerd.journal.keys_and_vaults import AtDevice
from tests.support.desk import CLAIM, VAULT, VAULT_ID, open_journal, own_keys
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
    for typed in ("", CODE[:-1], make_vault(threshold=1).verification_code):
        with pytest.raises(WrongCode):
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
