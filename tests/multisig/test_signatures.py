"""Signatures are let in one by one, each verified,
and finalised from what was verified (BIP-174; S19, P1 to P9).
"""

from dataclasses import replace

import pytest
from btclib_secp256k1 import dsa
from hypothesis import given, settings
from hypothesis import strategies as st

from multisig import (
    CHANGE,
    BadSignature,
    ChangeTo,
    ForeignSignature,
    NotFinalisable,
    OutPoint,
    ProvenSpend,
    Psbt,
    PsbtMismatch,
    accept_signatures,
    build_psbt,
    combine,
    finalise,
    progress,
    sats,
    signer_progress,
    verify_signatures,
)
from multisig.signatures import signing_inputs
from tests.support.examples import examples
from tests.support.wallets import (
    ALICE,
    BOB,
    CAROL,
    MALLORY,
    ORDER,
    THREE,
    Signer,
    fund,
    make_spend,
    make_vault,
    pay,
    with_input,
    with_inputs,
    with_output,
)

VAULT = make_vault()
SPEND = make_spend(VAULT)


def key_of(signer: Signer, psbt: Psbt = SPEND, index: int = 0) -> bytes:
    origins = psbt.inputs[index].derivations
    return next(key for key, origin in origins.items() if origin.fingerprint == signer.fingerprint)


def signature_of(signer: Signer, index: int = 0) -> bytes:
    return signer.signatures(SPEND, index)[key_of(signer, index=index)]


def high_s(signature: bytes) -> bytes:
    """The same signature with the other S, which consensus takes and policy does not."""
    r_length = signature[3]
    r, s = signature[4 : 4 + r_length], int.from_bytes(signature[6 + r_length : -1])
    other = (ORDER - s).to_bytes(33)
    body = b"\x02" + bytes((r_length,)) + r + b"\x02\x21" + other
    return b"\x30" + bytes((len(body),)) + body + signature[-1:]


def long_form(signature: bytes) -> bytes:
    """The same numbers in a DER length that BER allows and BIP-66 does not."""
    return b"\x30\x81" + signature[1:]


def finalised(psbt: Psbt, *signers: Signer) -> Psbt:
    """As a wallet that finalises returns it: signatures only in the final witnesses."""
    for signer in signers:
        psbt = signer.sign(psbt)
    tx = finalise(psbt, VAULT)
    bare = psbt.without_signatures()
    inputs = (
        replace(item, final_script_witness=tx_in.witness)
        for item, tx_in in zip(bare.inputs, tx.inputs, strict=True)
    )
    return replace(bare, inputs=tuple(inputs))


def accept(returned: Psbt, signer: Signer | None, base: Psbt = SPEND) -> Psbt:
    fingerprint = None if signer is None else signer.fingerprint
    return accept_signatures(base, Psbt.parse(returned.to_bytes()), VAULT, fingerprint)


# --- what is signed, and by whom


def test_the_report_names_who_signed_and_who_is_missing():
    report = verify_signatures(ALICE.sign(SPEND, inputs=[1]), VAULT)
    assert report.inputs[0].valid == {}
    assert set(report.inputs[0].missing) == {signer.fingerprint for signer in THREE}
    assert report.inputs[1].valid == {key_of(ALICE, index=1): ALICE.fingerprint}
    assert set(report.inputs[1].missing) == {BOB.fingerprint, CAROL.fingerprint}


def test_progress_is_the_least_over_the_inputs():
    assert progress(SPEND, VAULT) == 0
    assert progress(ALICE.sign(SPEND, inputs=[0]), VAULT) == 0
    assert progress(BOB.sign(ALICE.sign(SPEND), inputs=[0]), VAULT) == 1
    assert progress(BOB.sign(ALICE.sign(SPEND)), VAULT) == 2


def test_a_signer_who_signed_some_inputs_is_told_which_are_missing_p8():
    partly = accept(ALICE.sign(SPEND, inputs=[1]), ALICE)
    report = signer_progress(partly, VAULT, ALICE.fingerprint)
    assert (report.signed, report.missing, report.is_complete) == ((1,), (0,), False)
    whole = accept(ALICE.sign(SPEND, inputs=[0]), ALICE, partly)
    assert signer_progress(whole, VAULT, ALICE.fingerprint).is_complete


# --- what is not a signature of ours

BAD = {
    "garbage": b"\x00" * 70,
    "empty": b"",
    "only a sighash byte": b"\x01",
    "truncated": signature_of(ALICE)[:-2] + b"\x01",
    "without its sighash byte": signature_of(ALICE)[:-1],
    "sighash byte of NONE": signature_of(ALICE)[:-1] + b"\x02",
    "sighash byte of SINGLE with ANYONECANPAY": signature_of(ALICE)[:-1] + b"\x83",
    "high S (P6)": high_s(signature_of(ALICE)),
    "not strict DER (P6)": long_form(signature_of(ALICE)),
    "Bob's": signature_of(BOB),
    "of the other input": signature_of(ALICE, 1),
    "over another transaction": ALICE.signatures(make_spend(VAULT, fee=1_001), 0)[key_of(ALICE)],
    "with sighash NONE, honestly made (P5)": ALICE.signatures(SPEND, 0, sighash=2)[key_of(ALICE)],
    "with sighash SINGLE, honestly made (P5)": ALICE.signatures(SPEND, 0, sighash=3)[key_of(ALICE)],
    "with ANYONECANPAY, honestly made (P5)": ALICE.signatures(SPEND, 0, sighash=0x81)[key_of(ALICE)],
}


@pytest.mark.parametrize("signature", BAD.values(), ids=BAD)
def test_a_bad_signature_is_refused_wherever_it_comes_in_s8_p5_p6(signature):
    poisoned = SPEND.with_signatures({0: {key_of(ALICE): signature}})
    for refuse in (
        lambda: verify_signatures(poisoned, VAULT),
        lambda: accept(poisoned, ALICE),
        lambda: accept(poisoned, None),
        lambda: combine([SPEND, poisoned], VAULT),
        lambda: progress(poisoned, VAULT),
        lambda: finalise(CAROL.sign(BOB.sign(poisoned)), VAULT),
    ):
        with pytest.raises(BadSignature) as refusal:
            refuse()
        assert refusal.value.input_index == 0


def test_a_second_signature_of_the_same_signer_must_verify_too_p7():
    signed = ALICE.sign(SPEND)
    with pytest.raises(BadSignature):
        accept(SPEND.with_signatures({0: {key_of(ALICE): b"\x00" * 71}}), ALICE, signed)


MALLORYS = MALLORY.vault_key().xpub.derive_public_key(0, 0)


@pytest.mark.parametrize(
    ("returned", "signer"),
    [
        (SPEND.with_signatures({1: {MALLORYS: signature_of(ALICE, 1)}}), ALICE),
        (BOB.sign(SPEND), ALICE),
        (BOB.sign(ALICE.sign(SPEND)), ALICE),
        (finalised(SPEND, ALICE, BOB), BOB),
    ],
    ids=["a stranger's", "Bob's", "Bob's beside hers", "Alice's in a final witness"],
)
def test_a_signature_of_somebody_else_is_refused_p2_p3(returned, signer):
    with pytest.raises(ForeignSignature) as refusal:
        accept(returned, signer)
    assert refusal.value.input_index == (1 if MALLORYS in returned.inputs[1].partial_signatures else 0)


# --- what is taken, and what is ignored


def test_the_same_signature_again_and_another_by_the_same_key_change_nothing_p4():
    once = accept(ALICE.sign(SPEND), ALICE)
    other = SPEND.with_signatures({0: {key_of(ALICE): other_nonce(signature_of(ALICE))}})
    for returned, signer in ((ALICE.sign(SPEND), ALICE), (once, BOB), (other, ALICE)):
        assert accept(returned, signer, once) == once


def other_nonce(signature: bytes) -> bytes:
    """A second valid signature by Alice on input 0, made with another nonce."""
    origin = SPEND.inputs[0].derivations[key_of(ALICE)]
    digest = signing_inputs(SPEND, VAULT)[0].digest
    other = dsa.sign(digest, ALICE.private_node(origin.path).key, aux_rand32=b"\x07" * 32) + b"\x01"
    assert other != signature
    return other


def test_of_two_signatures_by_one_key_all_combiners_keep_the_same():
    one = ALICE.sign(SPEND)
    other = SPEND.with_signatures({0: {key_of(ALICE): other_nonce(signature_of(ALICE))}})
    assert combine([one, other], VAULT) == combine([other, one], VAULT)


def lies(psbt: Psbt) -> Psbt:
    """Everything but the transaction and the signatures, falsified."""
    stated = replace(psbt.inputs[0].witness_utxo, amount=sats(1))
    psbt = with_input(
        psbt,
        0,
        witness_utxo=stated,
        non_witness_utxo=None,
        witness_script=b"\x51",
        redeem_script=b"\x51",
        derivations={},
        sighash_type=0x83,
    )
    return replace(psbt, xpubs=(), outputs=tuple(replace(item, derivations={}) for item in psbt.outputs))


def test_all_but_the_signatures_of_what_came_back_is_ignored_s19_p9():
    assert accept(lies(ALICE.sign(SPEND)), ALICE) == ALICE.sign(SPEND)


OTHER_TRANSACTIONS = {
    "an amount changed (P1)": with_output(SPEND, 0, amount=sats(50_001)),
    "the recipient swapped (P1)": with_output(SPEND, 0, script_pubkey=pay(1, "mallory").script_pubkey),
    "a sequence changed": with_inputs(SPEND, replace(SPEND.inputs[0], sequence=0), SPEND.inputs[1]),
    "the inputs exchanged": with_inputs(SPEND, *SPEND.inputs[::-1]),
    "an input less": with_inputs(SPEND, SPEND.inputs[0]),
    "another coin": with_inputs(
        SPEND, SPEND.inputs[0], replace(SPEND.inputs[1], outpoint=OutPoint("11" * 32, 0))
    ),
    "a locktime": replace(SPEND, tx=replace(SPEND.tx, locktime=1)),
    "a version": replace(SPEND, tx=replace(SPEND.tx, version=1)),
}


@pytest.mark.parametrize("other", OTHER_TRANSACTIONS.values(), ids=OTHER_TRANSACTIONS)
def test_another_transaction_is_refused_s19_p1(other):
    with pytest.raises(PsbtMismatch):
        accept_signatures(SPEND, ALICE.sign(other), VAULT, ALICE.fingerprint)
    with pytest.raises(PsbtMismatch):
        combine([SPEND, other], VAULT)


def test_inputs_that_are_not_the_vault_s_are_refused_s3():
    for hostile in (
        with_input(SPEND, 0, non_witness_utxo=None),
        with_input(SPEND, 0, non_witness_utxo=SPEND.inputs[1].non_witness_utxo),
        with_input(SPEND, 0, derivations={}),
    ):
        with pytest.raises(PsbtMismatch):
            verify_signatures(hostile, VAULT)
    with pytest.raises(PsbtMismatch):
        verify_signatures(SPEND, make_vault(threshold=1))


# --- finalised inputs are taken apart


def test_a_finalised_psbt_is_taken_apart_and_verified():
    base = ALICE.sign(SPEND)
    assert accept(finalised(SPEND, ALICE, BOB), BOB, base) == BOB.sign(base)
    assert accept(finalised(SPEND, BOB, CAROL), None) == CAROL.sign(BOB.sign(SPEND))
    assert progress(finalised(SPEND, ALICE, CAROL), VAULT) == 2


WITNESS = finalised(SPEND, ALICE, BOB).inputs[0].final_script_witness or ()
FORGED = {
    "empty": (),
    "script only": (WITNESS[-1],),
    "first item not empty": (b"\x01", *WITNESS[1:]),
    "another script": (*WITNESS[:-1], make_vault(threshold=1).witness_script(0, 0)),
    "signatures out of order": (b"", WITNESS[2], WITNESS[1], WITNESS[3]),
    "one signature twice": (b"", WITNESS[1], WITNESS[1], WITNESS[3]),
    "garbage": (b"", WITNESS[1], b"\x30" * 71, WITNESS[3]),
    "with another sighash byte": (b"", WITNESS[1], WITNESS[2][:-1] + b"\x81", WITNESS[3]),
}


@pytest.mark.parametrize("witness", FORGED.values(), ids=FORGED)
def test_a_forged_final_witness_is_refused(witness):
    with pytest.raises(BadSignature) as refusal:
        accept(with_input(SPEND, 0, final_script_witness=witness), None)
    assert refusal.value.input_index == 0


# --- combine and finalise


@given(st.lists(st.sampled_from([s.sign(SPEND, inputs=[i]) for s in THREE for i in (0, 1)]), min_size=2))
@settings(max_examples=examples(20))
def test_combine_commutes_and_repeats_change_nothing(parts):
    combined = combine(parts, VAULT)
    assert combine(parts[::-1], VAULT) == combined
    assert combine([combined, *parts], VAULT) == combined
    assert combined.to_bytes() == combine(parts[::-1], VAULT).to_bytes()


def test_a_spend_that_is_proven_once_is_judged_as_one_that_is_proven_anew():
    proven = ProvenSpend(SPEND, VAULT).accept(ALICE.sign(SPEND), ALICE.fingerprint)
    assert proven.psbt == accept(ALICE.sign(SPEND), ALICE)
    assert proven.report() == verify_signatures(proven.psbt, VAULT)
    with pytest.raises(NotFinalisable):
        proven.finalise()
    for signature in BAD.values():
        with pytest.raises(BadSignature):
            proven.accept(SPEND.with_signatures({0: {key_of(CAROL): signature}}), None)
    whole = proven.accept(BOB.sign(SPEND), BOB.fingerprint)
    assert whole.finalise() == finalise(whole.psbt, VAULT)
    with pytest.raises(PsbtMismatch):
        ProvenSpend(with_input(SPEND, 0, non_witness_utxo=None), VAULT)
    with pytest.raises(AttributeError):
        proven.psbt = with_output(SPEND, 0, amount=sats(1))


def test_the_first_m_in_script_order_are_used():
    everyone = CAROL.sign(BOB.sign(ALICE.sign(SPEND)))
    for index, item in enumerate(finalise(everyone, VAULT).inputs):
        keys = sorted(everyone.inputs[index].derivations)
        expected = [everyone.inputs[index].partial_signatures[key] for key in keys[:2]]
        assert item.witness == (b"", *expected, everyone.inputs[index].witness_script)


@given(st.data())
@settings(max_examples=examples(15))
def test_finalise_takes_any_m_of_n_and_no_fewer(data):
    total = data.draw(st.integers(1, 15), label="n")
    threshold = data.draw(st.integers(1, total), label="m")
    people = [Signer(f"person {number}") for number in range(total)]
    vault = make_vault(people, threshold)
    spend = build_psbt(vault, [fund(vault, 50_000)], [pay(10_000), ChangeTo(sats(39_000), CHANGE, 0)], 0)
    chosen = data.draw(st.permutations(people), label="order")[:threshold]
    for signer in chosen[:-1]:
        spend = signer.sign(spend)
    with pytest.raises(NotFinalisable):
        finalise(spend, vault)
    tx = finalise(chosen[-1].sign(spend), vault)
    assert len(tx.inputs[0].witness) == threshold + 2


# --- a person's own account


def test_a_profile_goes_all_the_way():
    profile = ALICE.profile()
    coins = [fund(profile, 30_000, index=0), fund(profile, 30_000, index=1)]
    spend = build_psbt(profile, coins, [pay(10_000), ChangeTo(sats(49_000), CHANGE, 0)], 0)
    signed = accept_signatures(spend, ALICE.sign(spend), profile, ALICE.fingerprint)
    assert progress(signed, profile) == 1
    tx = finalise(signed, profile)
    keys = [next(iter(item.derivations)) for item in spend.inputs]
    assert [item.witness[1] for item in tx.inputs] == keys
    final = with_input(spend, 0, final_script_witness=tx.inputs[0].witness)
    assert accept_signatures(spend, final, profile, ALICE.fingerprint) == ALICE.sign(spend, inputs=[0])
    for witness in ((), (tx.inputs[0].witness[0],), (tx.inputs[0].witness[0], keys[1])):
        with pytest.raises(BadSignature):
            accept_signatures(spend, with_input(spend, 0, final_script_witness=witness), profile, None)
    with pytest.raises(ForeignSignature):
        accept_signatures(spend, ALICE.sign(spend), profile, BOB.fingerprint)
    with pytest.raises(NotFinalisable):
        finalise(spend, profile)
