"""Ownership is derived from the policy; a claim only says where to look (BIP-388)."""

import pytest

from multisig import CHANGE, MAX_INDEX, DerivationPath, KeyOrigin
from multisig.proofs import Place, Prover, Unproven, proven_output
from tests.support.wallets import ALICE, make_spend, make_vault, with_input

VAULT = make_vault()


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
