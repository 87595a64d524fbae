"""A vault as a Ledger's wallet policy, and the PSBT version that the app reads."""

from dataclasses import replace

import pytest

from firmware_bridge.hwi_client.base import parse_psbt
from firmware_bridge.hwi_client.ledger.app import to_version_2, wallet_of
from tests.conformance import rigs
from tests.support import wallets
from tests.support.driver import policy_args

VAULT = rigs.make_vault()


def test_a_vault_is_a_policy_with_the_keys_in_their_own_order():
    wallet = wallet_of(policy_args(VAULT))
    assert (wallet.name, wallet.descriptor_template) == ("Savings", "wsh(sortedmulti(2,@0/**,@1/**,@2/**))")
    for text, key in zip(wallet.keys_info, VAULT.cosigners, strict=True):
        assert text == f"[{key.fingerprint}/48'/1'/0'/2']{key.xpub}"


def test_another_order_is_another_wallet():
    policy = policy_args(VAULT)
    turned = replace(policy, keys=policy.keys[::-1])
    assert wallet_of(policy).id != wallet_of(turned).id


def prepared(psbt):
    theirs = parse_psbt(psbt.to_base64())
    to_version_2(theirs)
    return theirs


@pytest.mark.parametrize("locktime", [0, 800_000])
def test_version_2_says_what_version_0_said(locktime):
    psbt = wallets.make_spend(VAULT, n_inputs=3, locktime=locktime)
    theirs = prepared(psbt)
    assert theirs.version == 2
    assert (theirs.tx_version, theirs.fallback_locktime) == (psbt.tx.version, locktime)
    spent = [(item.prev_txid[::-1].hex(), item.prev_out, item.sequence) for item in theirs.inputs]
    paid = [(item.amount, item.script) for item in theirs.outputs]
    assert spent == [(str(i.outpoint.txid), i.outpoint.vout, i.sequence) for i in psbt.tx.inputs]
    assert paid == [(out.amount, out.script_pubkey) for out in psbt.tx.outputs]


def test_every_input_states_its_coin_as_the_previous_transaction_has_it():
    psbt = wallets.make_spend(VAULT)
    bare = wallets.with_input(psbt, 0, witness_utxo=None)
    coin = prepared(bare).inputs[0].witness_utxo
    expected = psbt.inputs[0].non_witness_utxo.outputs[1]
    assert (coin.nValue, coin.scriptPubKey) == (expected.amount, expected.script_pubkey)
