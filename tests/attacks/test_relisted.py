"""S26 over a real journal: an alarm, "unpin, then pin again", and the quorum comes back under another id."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from multisig import Psbt
from signerd.core import events
from signerd.core.audit import Note
from signerd.core.claims import VaultClaim
from signerd.core.values import OwnKey, Pin, SigningLimits, Snapshot
from signerd.journal import Journal
from tests.attacks.cases import Proposal, proposals, snapshot
from tests.attacks.people import ALICE, MALLORYS, NAME, VAULT, VAULT_ID, WORKSPACE
from tests.attacks.recipes.scene import story
from tests.conformance.rigs import NETWORK

RELISTED = proposals(lambda p: p.number == "S26")


@pytest.fixture
def journal(tmp_path: Path) -> Iterator[Journal]:
    with Journal(tmp_path, network=NETWORK, limits=SigningLimits()) as journal:
        keys = (OwnKey(ALICE.vault_key(), "vault", 0), OwnKey(ALICE.profile().key, "profile", 0))
        journal.add_own_keys(keys, "key-1", Note("registered", "key-1"))
        yield journal


def pin_under(journal: Journal, vault_id: str) -> None:
    """The person compared the code, and it is the same code each time."""
    journal.learn(VaultClaim(vault_id, WORKSPACE, NAME, VAULT.descriptor))
    pin = Pin(vault_id, WORKSPACE, NAME, VAULT, ALICE.vault_key())
    journal.add_pin(pin, Note("pinned", vault_id))


def sign(journal: Journal, shown: Snapshot) -> None:
    journal.poll(shown)
    found = journal.review(shown.psbt_id)
    journal.decide(shown.psbt_id, events.Approved(found.digest, found.to_acknowledge))
    journal.decide(shown.psbt_id, events.DeviceFound("d"))
    journal.decide(shown.psbt_id, events.DeviceReturned(ALICE.sign(Psbt.parse(shown.psbt)).to_bytes()))
    assert journal.record(shown.psbt_id).signature is not None


def held_after_relisting(journal: Journal, proposal: Proposal) -> frozenset[str]:
    """The first is signed, the vault raises an alarm and comes back under the proposal's id; what holds that
    one.
    """
    (other,) = proposal.others
    first = snapshot("other-0", other.psbt.to_bytes(), {**story(other.psbt), **other.tells})
    pin_under(journal, first.vault_id)
    sign(journal, first)
    journal.learn(VaultClaim(first.vault_id, WORKSPACE, NAME, MALLORYS.descriptor))
    assert journal.vault_changes(first.vault_id)
    journal.unpin(first.vault_id, Note("unpinned", first.vault_id))
    second = replace(proposal.snapshot(), vault_id="vault-new" if first.vault_id == VAULT_ID else VAULT_ID)
    pin_under(journal, second.vault_id)
    journal.poll(second)
    found = journal.review(second.psbt_id)
    assert found.allowed
    return found.to_acknowledge


@pytest.mark.parametrize("proposal", RELISTED, ids=str)
def test_what_was_signed_under_another_id_is_remembered(journal: Journal, proposal: Proposal) -> None:
    assert held_after_relisting(journal, proposal) == set(proposal.held)
