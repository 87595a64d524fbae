"""Signed messages (BIP-322): the official vectors, proofs of a vault, and what is altered."""

import base64
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from custody.server.chain.engine import consensus
from multisig import (
    InvalidMessage,
    InvalidPsbt,
    Network,
    OutPoint,
    ProvenSpend,
    Psbt,
    ReceivedPsbt,
    TxOut,
    decode_address,
    inspect,
    sats,
    to_version_2,
)
from multisig.bip322 import (
    ProofSignature,
    ProofState,
    Variant,
    build_proof,
    inspect_proof,
    is_proof,
    require_showable,
    signed_message_hash,
    to_sign,
    to_spend,
    verify_message,
)
from multisig.bip322.rules import BrokenRule, operations_of
from tests.support import vectors
from tests.support.examples import examples
from tests.support.proofs import MESSAGE, signed_proof, signed_psbt
from tests.support.wallets import ALICE, BOB, fund, make_spend, make_vault, with_input

VAULT = make_vault()
CHALLENGE = VAULT.script_pubkey(0, 0)
COINS = [fund(VAULT, 40_000, index=1), fund(VAULT, 70_000, index=2, chain=1)]


def judged(text, *, message=MESSAGE, challenge=CHALLENGE):
    return verify_message(message, challenge, text, consensus)


@pytest.mark.parametrize("vector", vectors.official("bip322.json", lambda v: v["kind"] == "tx_hashes"))
def test_the_official_transactions(vector):
    challenge = decode_address(vector["address"], Network.MAINNET)
    assert signed_message_hash(vector["message"]).hex() == vector["message_hash"]
    assert to_spend(vector["message"], challenge).txid == vector["to_spend_tx_hash"]
    assert to_sign(vector["message"], challenge).txid == vector["to_sign_tx_hash"]


@pytest.mark.parametrize("vector", vectors.official("bip322.json", lambda v: v["kind"] == "error"))
def test_the_official_signatures_that_are_none(vector):
    challenge = decode_address(vector["address"], Network.MAINNET)
    verdict = judged(vector["signature"], message=vector["message"], challenge=challenge)
    assert (verdict.state, bool(verdict.reason)) == (ProofState.INVALID, True)


@pytest.mark.parametrize(
    "vector", vectors.official("bip322.json", lambda v: v["kind"] in {"simple", "full", "proof_of_funds"})
)
def test_the_official_signatures(vector):
    challenge = decode_address(vector["address"], Network.MAINNET)
    for text in vector["bip322_signatures"]:
        verdict = judged(text, message=vector["message"], challenge=challenge)
        assert (verdict.state, verdict.reason) == (ProofState.VALID, "")
        assert (verdict.lock_time, verdict.age) == (vector.get("lock_time", 0), vector.get("sequence", 0))
        coins = [coin for of_one in vector.get("additional_inputs", ()) for coin in of_one]
        assert sorted((c.output.amount, c.output.script_pubkey.hex()) for c in verdict.coins) == sorted(
            (coin["value"], coin["pk_script"]) for coin in coins
        )
        if text[:3] in set(Variant):
            assert str(ProofSignature.parse(text))[:3] == text[:3]
        other = judged(text, message=vector["message"] + " ", challenge=challenge)
        assert other.state is ProofState.INVALID


@pytest.mark.parametrize("vector", vectors.own("bip322.json"))
def test_an_implementation_that_is_not_ours_judges_alike(vector):
    challenge = decode_address(vector["address"], Network.MAINNET)
    verdict = judged(vector["signature"], message=vector["message"], challenge=challenge)
    assert verdict.state == vector.get("stricter", vector["state"])


def test_a_vault_proves_an_address_and_its_coins():
    simple, funds = signed_proof(VAULT), signed_proof(VAULT, COINS)
    assert (simple.variant, funds.variant) == (Variant.SIMPLE, Variant.FUNDS)
    assert judged(str(simple)).state is ProofState.VALID
    verdict = judged(str(funds))
    assert (verdict.state, verdict.reason) == (ProofState.VALID, "")
    assert [(c.outpoint, c.output.amount) for c in verdict.coins] == [
        (coin.outpoint, coin.amount) for coin in COINS
    ]
    assert isinstance(funds.content, Psbt)
    assert not funds.content.xpubs
    assert not any(item.derivations for item in funds.content.inputs), "an auditor learns no account key"


@pytest.mark.parametrize("coins", [[], COINS], ids=["control", "funds"])
@settings(max_examples=examples(60))
@given(data=st.data())
def test_no_byte_of_a_proof_can_be_another(coins, data):
    text = str(signed_proof(VAULT, coins))
    raw = bytearray(base64.b64decode(text[3:]))
    place = data.draw(st.integers(0, len(raw) - 1))
    raw[place] ^= data.draw(st.integers(1, 255))
    verdict = judged(text[:3] + base64.b64encode(bytes(raw)).decode())
    # What is not signed of a PSBT is what merely repeats: two claims about one coin.
    assert verdict.state is not ProofState.VALID or verdict.coins == judged(text).coins


@pytest.mark.parametrize(
    ("message", "challenge"),
    [
        (MESSAGE + ".", CHALLENGE),
        (MESSAGE, VAULT.script_pubkey(0, 1)),
        (MESSAGE, make_vault(account=1).script_pubkey(0, 0)),
    ],
    ids=["message", "address", "vault"],
)
@pytest.mark.parametrize("coins", [[], COINS], ids=["control", "funds"])
def test_a_proof_speaks_for_one_message_and_one_address(coins, message, challenge):
    assert (
        judged(str(signed_proof(VAULT, coins)), message=message, challenge=challenge).state
        is ProofState.INVALID
    )


def test_of_a_full_signature_every_field_is_held():
    psbt = signed_psbt(VAULT)
    tx = ProvenSpend(psbt, VAULT).finalise()
    assert judged(str(ProofSignature(Variant.FULL, tx))).state is ProofState.VALID
    pays = replace(tx, outputs=(TxOut(sats(0), CHALLENGE),))
    twice = replace(tx, outputs=(*tx.outputs, *tx.outputs))
    other = replace(tx, inputs=(replace(tx.inputs[0], outpoint=OutPoint("11" * 32, 0)),))
    more = replace(tx, inputs=(*tx.inputs, replace(tx.inputs[0], outpoint=OutPoint("11" * 32, 0))))
    for altered in (pays, twice, other, more, replace(tx, version=2), replace(tx, locktime=1)):
        assert judged(str(ProofSignature(Variant.FULL, altered))).state is ProofState.INVALID


def test_a_version_without_rules_is_not_judged():
    unsigned = build_proof(VAULT, MESSAGE, 0, 0).psbt
    later = replace(unsigned, tx=replace(unsigned.tx, version=3))
    for signer in (ALICE, BOB):
        later = signer.sign(later)
    tx = ProvenSpend(later, VAULT).finalise()
    assert judged(str(ProofSignature(Variant.FULL, tx))).state is ProofState.INCONCLUSIVE


def test_a_proof_of_funds_states_each_coin_as_it_is():
    psbt = signed_proof(VAULT, COINS).content
    assert isinstance(psbt, Psbt)
    stated = psbt.inputs[1].witness_utxo
    assert stated is not None
    richer = with_input(psbt, 1, witness_utxo=replace(stated, amount=sats(stated.amount + 1)))
    without = with_input(psbt, 1, non_witness_utxo=None)
    bare = with_input(without, 1, witness_utxo=None)
    open_ = with_input(psbt, 2, final_script_witness=None)
    for altered in (
        richer,
        with_input(without, 1, witness_utxo=replace(stated, amount=sats(1))),
        bare,
        open_,
    ):
        assert judged(str(ProofSignature(Variant.FUNDS, altered))).state is ProofState.INVALID
    verdict = judged(str(ProofSignature(Variant.FUNDS, without)))
    assert verdict.state is ProofState.VALID


def test_what_a_signer_is_asked_is_inspected_as_a_proof():
    psbt = build_proof(VAULT, MESSAGE, 0, 0, COINS).psbt
    seen = inspect_proof(psbt, VAULT, network=Network.REGTEST)
    assert seen.ok
    assert seen.proof is not None
    assert (seen.proof.message, seen.proof.address) == (MESSAGE, VAULT.address(0, 0))
    assert [(coin.amount, coin.address) for coin in seen.proof.coins] == [
        (40_000, VAULT.address(0, 1)),
        (70_000, VAULT.address(1, 2)),
    ]
    assert (seen.proof.total, seen.fee, seen.payments) == (110_000, 0, ())
    assert is_proof(psbt)
    assert not inspect(psbt, VAULT, network=Network.REGTEST).ok, "as a payment it is refused"
    assert Psbt.parse(psbt.to_bytes()) == psbt
    assert ReceivedPsbt.parse(to_version_2(psbt)).psbt == psbt


def test_a_payment_in_the_clothes_of_a_proof_is_none():
    payment = replace(make_spend(VAULT), signed_message=MESSAGE.encode())
    assert not is_proof(payment)
    assert not inspect_proof(payment, VAULT, network=Network.REGTEST).ok
    # All of real coins to the fee: the message holds nothing together.
    psbt = build_proof(VAULT, MESSAGE, 0, 0, COINS).psbt
    tx = replace(psbt.tx, inputs=psbt.tx.inputs[1:])
    all_fee = replace(psbt, tx=tx, inputs=psbt.inputs[1:])
    assert is_proof(all_fee)
    assert "not-a-proof" in {
        finding.code for finding in inspect_proof(all_fee, VAULT, network=Network.REGTEST).findings
    }


@pytest.mark.parametrize(
    "altered",
    [
        lambda p: replace(p, signed_message=b"Another message."),
        lambda p: replace(p, signed_message=None),
        lambda p: replace(p, signed_message=b"\xff\xfe"),
        lambda p: replace(p, tx=replace(p.tx, locktime=5)),
        lambda p: replace(p, tx=replace(p.tx, version=2)),
        lambda p: with_input(p, 1, sighash_type=0x81),
        lambda p: with_input(p, 1, derivations={}),
        lambda p: with_input(p, 0, non_witness_utxo=None),
    ],
)
def test_every_other_form_is_refused(altered):
    psbt = altered(build_proof(VAULT, MESSAGE, 0, 0, COINS).psbt)
    assert not inspect_proof(psbt, VAULT, network=Network.REGTEST).ok


@pytest.mark.parametrize(
    "message",
    ["", "x", "a\nb", "a\tb", "\u202eab", "naïve", " ab", "ab ", "a   b", "x" * 331, "a\x1b[2Jb", "\ud800x"],
)
def test_a_message_that_a_device_cannot_show_is_not_asked_for(message):
    with pytest.raises(InvalidMessage):
        require_showable(message)
    with pytest.raises(InvalidMessage):
        build_proof(VAULT, message, 0, 0)


def test_a_coin_is_named_once():
    with pytest.raises(InvalidPsbt):
        build_proof(VAULT, MESSAGE, 0, 0, [COINS[0], COINS[0]])


@pytest.mark.parametrize(
    "text", ["pof", "smp", "fulAA==", "smpAP8=", "smp" + "A" * 4_000_000, "smp/w==", "é"]
)
def test_what_is_no_signature_is_refused_within_bounds(text):
    with pytest.raises(InvalidMessage):
        ProofSignature.parse(text)


@given(st.binary(max_size=300), st.sampled_from(["", *Variant]))
def test_any_bytes_are_judged(raw, prefix):
    assert judged(prefix + base64.b64encode(raw).decode()).state is ProofState.INVALID


@pytest.mark.parametrize("script", ["01" + "05", "4c01" + "aa", "4d0100" + "aa", "02aa", "ab", "4c"])
def test_a_push_has_one_form_and_no_script_has_a_separator(script):
    with pytest.raises(BrokenRule):
        list(operations_of(bytes.fromhex(script)))
