"""What the platform says of a vault after it was pinned, part by part (S15, S16)."""

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from signerd.core.claims import (
    NO_KEY_OF_OURS,
    changes,
    contradictions,
    differences,
    fault_of_pinned,
    fingerprint_of_change,
    impostor,
)
from signerd.core.values import FormerKey, OwnKey, VaultClaim
from tests.support.desk import NETWORK, VAULT, VAULT_ID, make_pin, own_keys
from tests.support.examples import examples
from tests.support.wallets import ALICE, BOB, CAROL, MALLORY, make_vault

HONEST = VaultClaim(VAULT_ID, 1, "Treasury", VAULT.descriptor, 2, 3, VAULT.address(0, 0))


def test_a_name_is_a_label_and_neither_what_is_not_said_nor_the_order_of_keys_is_a_change():
    assert changes(make_pin(), VaultClaim(VAULT_ID, 1, "Treasury", VAULT.descriptor)) == ()
    turned = replace(HONEST, name="Something else", descriptor=make_vault((CAROL, ALICE, BOB)).descriptor)
    assert changes(make_pin(), turned) == ()
    assert fingerprint_of_change(turned, NETWORK) == fingerprint_of_change(HONEST, NETWORK)


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"workspace_id": 2}, "workspace 1"),
        ({"threshold": 1}, "signatures needed"),
        ({"signers": 4}, "cosigners"),
        ({"first_address": make_vault(account=1).address(0, 0)}, "first address"),
        (
            {"descriptor": make_vault(threshold=1).descriptor},
            "needs 1 signature, the pinned vault 2",
        ),
        (
            {"descriptor": make_vault((ALICE, BOB, MALLORY)).descriptor},
            f"the record: {MALLORY.fingerprint}",
        ),
        (
            {"descriptor": make_vault((ALICE, BOB, MALLORY)).descriptor},
            f"vault: {CAROL.fingerprint}",
        ),
        (
            {"descriptor": make_vault((ALICE, BOB)).descriptor},
            f"vault: {CAROL.fingerprint}",
        ),
        ({"descriptor": make_vault((ALICE, BOB, CAROL, MALLORY)).descriptor}, "only in the record"),
        ({"descriptor": make_vault(account=1).descriptor}, "another account"),
        ({"descriptor": VAULT.descriptor[:-1]}, "cannot be used"),
        ({"descriptor": ""}, "cannot be used"),
    ],
)
def test_s16_a_change_of_any_part_is_told(change, told):
    changed = replace(HONEST, **change)
    assert told in " ".join(changes(make_pin(), changed))
    assert fingerprint_of_change(changed, NETWORK) != fingerprint_of_change(HONEST, NETWORK)


def test_s15_another_key_under_a_known_fingerprint_is_told_as_such():
    bob, mallory = BOB.vault_key(), MALLORY.vault_key()
    forged = VAULT.descriptor.partition("#")[0].replace(str(bob.xpub), str(mallory.xpub))
    other = type(VAULT).from_descriptor(forged, NETWORK, strict=False)
    (sentence,) = differences(VAULT, other)
    assert "under the same label" in sentence
    assert str(BOB.fingerprint) in sentence


def test_the_same_key_under_another_label_is_told_as_such():
    """No cosigner went and none came: whoever made one of the two wrote the fingerprint wrong."""
    relabelled = VAULT.descriptor.partition("#")[0].replace(f"[{BOB.fingerprint}", "[00000001")
    other = type(VAULT).from_descriptor(relabelled, NETWORK, strict=False)
    (sentence,) = differences(VAULT, other)
    assert "the same, labelled 00000001/" in sentence


def test_s15_our_fingerprint_on_a_key_that_is_not_ours():
    forged = VAULT.descriptor.partition("#")[0].replace(
        str(ALICE.vault_key().xpub), str(MALLORY.vault_key().xpub)
    )
    vault = type(VAULT).from_descriptor(forged, NETWORK, strict=False)
    found = impostor(vault, own_keys())
    assert found is not None
    assert found.xpub == MALLORY.vault_key().xpub
    assert impostor(VAULT, own_keys()) is None
    assert impostor(VAULT, ()) is None
    # An account of ours that was never registered is as unknown as a stranger's key.
    assert impostor(make_vault(account=5), own_keys()) is not None
    assert impostor(make_vault(account=5), (OwnKey(ALICE.vault_key(account=5), "vault", 5),)) is None


def test_a_record_that_contradicts_its_own_descriptor():
    assert contradictions(HONEST, VAULT) == ()
    told = contradictions(replace(HONEST, threshold=1, signers=2, first_address="\x1b[2Jbc1"), VAULT)
    assert len(told) == 3
    assert "\x1b" not in " ".join(told)


@settings(max_examples=examples(40))
@given(
    st.lists(st.sampled_from((ALICE, BOB, CAROL, MALLORY)), min_size=1, max_size=4, unique=True),
    st.integers(1, 4),
    st.integers(0, 2),
)
def test_s16_no_other_quorum_passes_in_silence(signers, threshold, account):
    vault = make_vault(signers, min(threshold, len(signers)), account=account)
    told = changes(make_pin(), replace(HONEST, descriptor=vault.descriptor))
    assert bool(told) == (vault.verification_code != VAULT.verification_code)


@settings(max_examples=examples(40))
@given(st.text(max_size=80))
def test_s16_whatever_the_platform_sends_is_no_error(text):
    assert changes(make_pin(), replace(HONEST, descriptor=text))
    assert len(fingerprint_of_change(replace(HONEST, descriptor=text), NETWORK)) == 64


def test_of_a_pinned_vault_that_our_key_left_the_fault_is_said():
    assert fault_of_pinned(VAULT, (), own_keys(), ()) is None
    formers = tuple(FormerKey(own) for own in own_keys())
    assert "former key" in fault_of_pinned(VAULT, (), own_keys(MALLORY), formers)
    assert fault_of_pinned(VAULT, (), own_keys(MALLORY), ()) == NO_KEY_OF_OURS
