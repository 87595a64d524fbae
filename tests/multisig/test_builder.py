"""A built PSBT has every field that devices need (BIP-174), and is consistent."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from multisig import (
    CHANGE,
    RECEIVE,
    SIGHASH_ALL,
    ChangeTo,
    InvalidPath,
    InvalidPsbt,
    OutPoint,
    Psbt,
    Sats,
    Transaction,
    TxIn,
    TxOut,
    build_psbt,
    built_psbt,
    estimate_vsize,
    multisig_script,
    op_return_script,
    p2wpkh,
    p2wsh,
    sats,
    vault_input_weight,
)
from tests.support.policies import profile, vault
from tests.support.wallets import ALICE, fund, make_vault, pay

VAULT = make_vault()
COIN = fund(VAULT, 100_000, index=4)
OUTPUTS = [pay(40_000), ChangeTo(sats(59_000), CHANGE, 2)]
OTHERS = fund(VAULT, 100_000, index=5).previous_transaction
OTHER_OUTPOINTS = (*(OutPoint(COIN.outpoint.txid, vout) for vout in (0, 2)), OutPoint("00" * 32, 1))


def test_an_input_carries_all_that_a_device_asks_for():
    """Both forms of the coin (core #19215), the script, every key's origin, and the one sighash."""
    (item,) = build_psbt(VAULT, [COIN], OUTPUTS, 0).inputs
    assert item.outpoint == COIN.outpoint
    assert item.non_witness_utxo == COIN.previous_transaction
    assert item.witness_utxo == COIN.previous_transaction.outputs[1]
    assert item.witness_script == VAULT.witness_script(RECEIVE, 4)
    assert item.derivations == VAULT.derivations(RECEIVE, 4)
    assert item.sighash_type == SIGHASH_ALL
    assert item.partial_signatures == {}
    assert item.redeem_script is None
    assert not item.is_final


def test_change_carries_its_proof_and_a_payment_carries_nothing():
    payment, change = build_psbt(VAULT, [COIN], OUTPUTS, 0).outputs
    assert (payment.derivations, payment.witness_script) == ({}, None)
    assert change.script_pubkey == VAULT.script_pubkey(CHANGE, 2)
    assert change.witness_script == VAULT.witness_script(CHANGE, 2)
    assert change.derivations == VAULT.derivations(CHANGE, 2)


def test_the_account_keys_are_included():
    psbt = build_psbt(VAULT, [COIN], OUTPUTS, 0)
    assert set(psbt.xpubs) == {(key.xpub, key.origin) for key in VAULT.cosigners}


def test_a_profile_has_no_script_to_show():
    profile = ALICE.profile()
    psbt = build_psbt(profile, [fund(profile, 100_000)], [ChangeTo(sats(99_000), CHANGE, 0)], 0)
    assert psbt.inputs[0].witness_script is None
    assert psbt.inputs[0].derivations == profile.derivations(RECEIVE, 0)
    assert psbt.outputs[0].derivations == profile.derivations(CHANGE, 0)


def test_sequence_locktime_version_and_order_are_as_given():
    coins = [fund(VAULT, 50_000, index=index) for index in (9, 3, 5)]
    psbt = build_psbt(VAULT, coins, OUTPUTS[::-1], 840_000, sequence=0xFFFFFFFE, version=1)
    assert [item.outpoint for item in psbt.tx.inputs] == [coin.outpoint for coin in coins]
    assert {item.sequence for item in psbt.tx.inputs} == {0xFFFFFFFE}
    assert (psbt.tx.locktime, psbt.tx.version) == (840_000, 1)
    assert [output.amount for output in psbt.tx.outputs] == [59_000, 40_000]


def test_what_is_built_has_the_bytes_that_it_was_read_by():
    """With one coin, with two in either order, with change and without."""
    other = fund(VAULT, 50_000, index=9)
    for coins, outputs in (
        ([COIN], OUTPUTS),
        ([COIN, other], OUTPUTS),
        ([other, COIN], [*reversed(OUTPUTS)]),
        ([COIN], OUTPUTS[:1]),
    ):
        psbt, raw = built_psbt(VAULT, coins, outputs, 7)
        assert raw == psbt.to_bytes()
        assert psbt == build_psbt(VAULT, coins, outputs, 7) == Psbt.parse(raw)


@pytest.mark.parametrize(
    ("coins", "outputs", "error", "words"),
    [
        ([], OUTPUTS, InvalidPsbt, None),
        ([COIN, COIN], OUTPUTS, InvalidPsbt, None),
        ([replace(COIN, amount=sats(100_001))], OUTPUTS, InvalidPsbt, None),
        ([replace(COIN, index=5)], OUTPUTS, InvalidPsbt, None),
        ([replace(COIN, chain=CHANGE)], OUTPUTS, InvalidPsbt, None),
        *(([replace(COIN, outpoint=other)], OUTPUTS, InvalidPsbt, None) for other in OTHER_OUTPOINTS),
        ([replace(COIN, previous_transaction=OTHERS)], OUTPUTS, InvalidPsbt, None),
        ([COIN], [pay(100_001)], InvalidPsbt, "more than the coins"),
        ([COIN], [], InvalidPsbt, "has no outputs"),
        # Beyond the bounds of a vault (S9).
        ([COIN], [ChangeTo(sats(1_000), CHANGE, 1_000_001)], InvalidPath, None),
    ],
)
def test_s9_coins_that_are_not_as_stated_and_outputs_beyond_them_are_refused(coins, outputs, error, words):
    with pytest.raises(error, match=words):
        build_psbt(VAULT, coins, outputs, 0)


KEYS = [b"\x02" + bytes([i] * 32) for i in range(1, 16)]
P2WSH, P2WPKH, DATA = p2wsh(b""), p2wpkh(KEYS[0]), op_return_script(bytes(80))
QUORUMS = st.integers(1, 15).flatmap(lambda n: st.tuples(st.integers(1, n), st.just(n)))


# The three figures of the design's rules.
@pytest.mark.parametrize(
    ("outputs", "vsize"), [([P2WSH, DATA], 250), ([P2WSH, DATA, P2WPKH], 281), ([P2WSH, DATA, P2WSH], 293)]
)
def test_known_sizes_of_2_of_3(outputs, vsize):
    assert estimate_vsize(vault(), 1, outputs) == vsize


def signed(inputs, outputs, witness):
    spends = tuple(TxIn(OutPoint("ab" * 32, vout), 0, b"", witness) for vout in range(inputs))
    return Transaction(2, spends, tuple(TxOut(Sats(1), script) for script in outputs), 0)


@given(st.integers(1, 300), st.lists(st.sampled_from([P2WSH, P2WPKH, DATA]), min_size=1, max_size=300))
def test_the_estimate_is_the_size_of_the_longest_signed_transaction(inputs, outputs):
    policy = vault()
    witness = (b"", bytes(72), bytes(72), policy.witness_script(0, 0))
    assert estimate_vsize(policy, inputs, outputs) == signed(inputs, outputs, witness).vsize
    single = profile()
    assert estimate_vsize(single, inputs, outputs) == signed(inputs, outputs, (bytes(72), KEYS[0])).vsize


@given(QUORUMS)
def test_every_quorum(quorum):
    m, n = quorum
    witness = (b"", *[bytes(72)] * m, multisig_script(m, KEYS[:n]))
    with_one, with_two = signed(1, [P2WSH], witness), signed(2, [P2WSH], witness)
    assert vault_input_weight(m, n) == with_two.weight - with_one.weight


@pytest.mark.parametrize(("m", "n"), [(0, 1), (2, 1), (1, 16), (0, 0)])
def test_impossible_quorums(m, n):
    with pytest.raises(ValueError, match="quorum"):
        vault_input_weight(m, n)
