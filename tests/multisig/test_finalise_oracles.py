"""What we finalise, others accept: Bitcoin Core's own engine and bdk, which share no code with us."""

import bdkpython
import pbk
import pytest
from pbk.script import PrecomputedTransactionData

from multisig import (
    CHANGE,
    ChangeTo,
    Policy,
    Psbt,
    Transaction,
    TxOut,
    accept_signatures,
    build_psbt,
    finalise,
    op_return_script,
    sats,
)
from tests.support.wallets import ALICE, BOB, CAROL, THREE, Signer, fund, make_spend, make_vault, pay


def core_accepts(tx: Transaction, spent: list[TxOut]) -> bool:
    """Whether Bitcoin Core's consensus engine takes every input.

    Its C code ends the process for a wrong index or number of coins, and tells a failed script by its value.
    """
    assert len(spent) == len(tx.inputs)
    theirs = pbk.Transaction(tx.serialize())
    coins = [pbk.TransactionOutput(pbk.ScriptPubkey(coin.script_pubkey), coin.amount) for coin in spent]
    data = PrecomputedTransactionData(theirs, coins)
    flags = sum(pbk.ScriptVerificationFlags)
    return all(_verify(coin, theirs, data, index, flags) for index, coin in enumerate(spent))


def _verify(
    coin: TxOut, tx: pbk.Transaction, data: PrecomputedTransactionData, index: int, flags: int
) -> bool:
    script = pbk.ScriptPubkey(coin.script_pubkey)
    return bool(script.verify(coin.amount, tx, data, index, pbk.ScriptVerificationFlags(flags)))


def coins_of(psbt: Psbt) -> list[TxOut]:
    return [item.witness_utxo for item in psbt.inputs]


def spend_of(policy: Policy, n_inputs: int = 3) -> Psbt:
    coins = [fund(policy, 40_000, index=index, chain=index % 2) for index in range(n_inputs)]
    outputs = [
        pay(20_000),
        ChangeTo(sats(40_000 * n_inputs - 21_000), CHANGE, 9),
        TxOut(sats(0), op_return_script(b"x" * 80)),
    ]
    return build_psbt(policy, coins, outputs, 123)


def signed_by(psbt: Psbt, *signers: Signer) -> Psbt:
    for signer in signers:
        psbt = signer.sign(psbt)
    return psbt


QUORUMS = [
    pytest.param(make_vault(), (ALICE, BOB), id="2 of 3"),
    pytest.param(make_vault(), (CAROL, ALICE), id="another 2 of 3"),
    pytest.param(make_vault(threshold=3), THREE, id="3 of 3"),
    pytest.param(make_vault(threshold=1), (BOB,), id="1 of 3"),
    pytest.param(
        make_vault([Signer(f"p{i}") for i in range(15)], 15),
        tuple(Signer(f"p{i}") for i in range(15)),
        id="15 of 15",
    ),
    pytest.param(ALICE.profile(), (ALICE,), id="profile"),
]


@pytest.mark.parametrize(("policy", "signers"), QUORUMS)
def test_a_finalised_spend_is_accepted_by_bitcoin_core(policy, signers):
    psbt = signed_by(spend_of(policy), *signers)
    assert core_accepts(finalise(psbt, policy), coins_of(psbt))


def test_bitcoin_core_refuses_what_we_refuse():
    """So that the test above can fail: one signature less, another amount, signatures out of order."""
    vault = make_vault()
    psbt = signed_by(spend_of(vault), ALICE, BOB)
    tx = finalise(psbt, vault)
    coins = coins_of(psbt)
    cheaper = [TxOut(sats(coin.amount - 1), coin.script_pubkey) for coin in coins]
    assert not core_accepts(tx, cheaper)
    assert not core_accepts(_with_witness(tx, lambda w: (w[0], w[2], w[1], w[3])), coins)
    assert not core_accepts(_with_witness(tx, lambda w: (w[0], w[1], b"", w[3])), coins)


def _with_witness(tx, change):
    inputs = tuple(type(item)(item.outpoint, item.sequence, b"", change(item.witness)) for item in tx.inputs)
    return Transaction(tx.version, inputs, tx.outputs, tx.locktime)


@pytest.mark.parametrize(("policy", "signers"), QUORUMS)
def test_bdk_finalises_the_same_psbt_to_the_same_transaction(policy, signers):
    psbt = signed_by(spend_of(policy), *signers)
    result = bdkpython.Psbt(psbt.to_base64()).finalize()
    assert result.could_finalize, result.errors
    assert result.psbt.extract_tx().serialize() == finalise(psbt, policy).serialize()


def test_bdk_reads_our_bytes_and_we_read_its():
    psbt = signed_by(make_spend(make_vault()), ALICE, CAROL)
    theirs = bdkpython.Psbt(psbt.to_base64())
    assert theirs.fee() == 1_000
    assert Psbt.parse(theirs.serialize()) == psbt


def test_a_psbt_that_bdk_finalised_is_taken_apart_to_what_went_in():
    vault = make_vault()
    psbt = signed_by(spend_of(vault), BOB, CAROL)
    returned = Psbt.parse(bdkpython.Psbt(psbt.to_base64()).finalize().psbt.serialize())
    assert all(item.is_final for item in returned.inputs)
    assert accept_signatures(psbt.without_signatures(), returned, vault, None) == psbt
