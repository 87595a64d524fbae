"""Pinning: what is compared, and what can never be pinned (S15, S16, S17)."""

from pathlib import Path

import pytest

from signerd.account.vaults import pin, seen_vaults
from signerd.core.audit import Note
from signerd.core.values import Limits
from signerd.errors import AccountReused, UnknownVault, VaultDiffers
from signerd.journal import Journal
from tests.support.desk import NETWORK, VAULT, VAULT_ID, own_keys
from tests.support.wallets import ALICE, BOB, CAROL, MALLORY, make_vault


@pytest.fixture
def journal(tmp_path: Path) -> Journal:
    with Journal(tmp_path, network=NETWORK, limits=Limits()) as journal:
        journal.add_own_keys(own_keys(), "key-1", Note("registered", "key-1"))
        journal.claim(VAULT_ID, 1, "Treasury", VAULT.descriptor)
        yield journal


def test_a_pinned_vault_is_known_with_our_key_in_it(journal: Journal) -> None:
    pinned = pin(journal, VAULT_ID, VAULT.verification_code)
    assert pinned.own_key == ALICE.vault_key()
    assert journal.pins() == (pinned,)
    assert pin(journal, VAULT_ID, VAULT.verification_code) == pinned
    assert [entry.note.kind for entry in journal.audit()][-1] == "pinned"


def test_the_order_of_cosigners_does_not_matter_later(journal: Journal) -> None:
    pin(journal, VAULT_ID, VAULT.verification_code)
    journal.claim(VAULT_ID, 1, "Treasury", make_vault((CAROL, BOB, ALICE)).descriptor)
    assert seen_vaults(journal)[0].fault is None


def test_an_unknown_vault_is_said(journal: Journal) -> None:
    with pytest.raises(UnknownVault):
        pin(journal, "vault-404", VAULT.verification_code)


@pytest.mark.parametrize(
    "descriptor",
    ["", "wsh(sortedmulti(2))", VAULT.descriptor[:-1] + "x", VAULT.descriptor.replace("48h", "49h")],
)
def test_a_descriptor_that_cannot_be_read_is_shown_as_such(journal: Journal, descriptor: str) -> None:
    journal.claim("vault-2", 1, "Broken", descriptor)
    seen = next(vault for vault in seen_vaults(journal) if vault.vault_id == "vault-2")
    assert seen.fault
    assert seen.first_address is None
    with pytest.raises(VaultDiffers):
        pin(journal, "vault-2", VAULT.verification_code)


def test_each_vault_has_an_account_of_its_own(journal: Journal) -> None:
    pin(journal, VAULT_ID, VAULT.verification_code)
    other = make_vault((ALICE, BOB, MALLORY))
    journal.claim("vault-2", 1, "Second", other.descriptor)
    with pytest.raises(AccountReused, match="Treasury"):
        pin(journal, "vault-2", other.verification_code)
    fresh = make_vault((ALICE, BOB, MALLORY), account=1)
    journal.claim("vault-3", 1, "Third", fresh.descriptor)
    assert pin(journal, "vault-3", fresh.verification_code).own_key == ALICE.vault_key(account=1)
