"""S15 to S17: a quorum that a platform shows to be pinned, and our key in it."""

import pytest

from multisig import MultisigError, Vault
from signerd.account.vaults import pinnable
from signerd.core.audit import Note
from signerd.core.values import OwnKey, SigningLimits, VaultClaim
from signerd.errors import SignerdError, VaultDiffers
from signerd.journal import Journal
from tests.attacks.people import ALICE, NAME, VAULT_ID, WORKSPACE
from tests.attacks.recipes.quorum import VAULTS
from tests.conformance.rigs import NETWORK


@pytest.fixture
def journal(tmp_path):
    with Journal(tmp_path, network=NETWORK, limits=SigningLimits()) as found:
        keys = (OwnKey(ALICE.vault_key(), "vault", 0),)
        found.add_own_keys(keys, "key-1", Note("registered", "key-1"))
        yield found


def outcome(journal, entry) -> str | None:
    """How it ends when the person wants to pin what the platform shows."""
    journal.learn(VaultClaim(VAULT_ID, WORKSPACE, NAME, entry.descriptor))
    try:
        pinnable(journal, VAULT_ID)
    except (SignerdError, MultisigError) as error:
        return error.code
    return None


def readable(entry) -> str | None:
    """What is wrong with the descriptor itself."""
    try:
        Vault.from_descriptor(entry.descriptor, NETWORK)
    except MultisigError as error:
        return error.code
    return None


@pytest.mark.parametrize("entry", VAULTS, ids=str)
def test_s15_s16_s17_what_may_be_pinned(journal, entry):
    wrong = readable(entry)
    assert outcome(journal, entry) == (VaultDiffers.code if wrong else entry.outcome)
    assert wrong in {None, entry.outcome}
