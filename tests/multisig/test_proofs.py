"""Ownership is derived from the policy; a claim only says where to look (BIP-388)."""

import pytest

from multisig import CHANGE, MAX_INDEX, RECEIVE, DerivationPath, KeyOrigin
from multisig.proofs import OurScript, Place, Prover, Unproven, derive, proven_output
from tests.support.wallets import ALICE, foreign_script, make_spend, make_vault, with_input

VAULT = make_vault()
POLICIES = [VAULT, make_vault(threshold=1), ALICE.profile()]


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("place", [Place(RECEIVE, 0), Place(CHANGE, MAX_INDEX)])
def test_what_is_derived_is_what_the_policy_says(policy, place):
    ours = derive(policy, place)
    assert ours.script_pubkey == policy.script_pubkey(place.chain, place.index)
    assert ours.derivations == policy.derivations(place.chain, place.index)
    if policy is VAULT:
        assert ours.witness_script == VAULT.witness_script(place.chain, place.index)
    assert list(ours.signers) == sorted(ours.derivations)


def test_a_script_is_ours_where_its_origins_lead_to_it():
    prover = Prover(VAULT)
    proof = prover.prove(VAULT.script_pubkey(1, 5), VAULT.derivations(1, 5))
    assert isinstance(proof, OurScript)
    assert proof.place == Place(1, 5)


@pytest.mark.parametrize(
    "derivations",
    [
        {},
        VAULT.derivations(1, 6),
        make_vault(account=1).derivations(1, 5),
        {**VAULT.derivations(1, 5), **VAULT.derivations(1, 6)},
        {b"\x02" * 33: KeyOrigin(ALICE.fingerprint, DerivationPath(()))},
        {b"\x02" * 33: KeyOrigin(ALICE.fingerprint, DerivationPath((1, 5)))},
    ],
)
def test_nothing_is_proven_by_origins_that_lead_elsewhere_or_nowhere(derivations):
    assert Prover(VAULT).prove(VAULT.script_pubkey(1, 5), derivations) is None


def test_one_right_origin_is_enough_to_look_and_the_script_decides():
    one = dict(list(VAULT.derivations(1, 5).items())[:1])
    prover = Prover(VAULT)
    assert prover.prove(VAULT.script_pubkey(1, 5), one) is not None
    assert prover.prove(foreign_script(), one) is None


@pytest.mark.parametrize("place", [Place(2, 0), Place(0, MAX_INDEX + 1)])
def test_places_where_no_wallet_looks(place):
    assert place.is_absurd
    assert not Place(CHANGE, MAX_INDEX).is_absurd


def test_an_amount_is_proven_by_the_whole_previous_transaction_s4_s5():
    psbt = make_spend(VAULT)
    item = psbt.inputs[0]
    assert proven_output(item) == item.witness_utxo
    assert proven_output(with_input(psbt, 0, non_witness_utxo=None).inputs[0]) is Unproven.MISSING
    other = with_input(psbt, 0, non_witness_utxo=psbt.inputs[1].non_witness_utxo)
    assert proven_output(other.inputs[0]) is Unproven.MISMATCH
