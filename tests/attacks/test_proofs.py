"""P93 to P96: messages that a vault signs (BIP-322), and payments in their clothes."""

from dataclasses import replace

import pytest

from custody.schemas.proposals import TxType
from firmware_bridge import sanitised_psbt
from multisig import MultisigError, Psbt, TxOut, sats
from multisig.bip322 import build_proof
from signerd.cli.words import proposal_text, proposals_text
from signerd.core.checks.case import Outcome
from signerd.core.review import ProposalReview, review
from signerd.core.states import State
from signerd.core.titles import title_of
from signerd.core.tokens import ModelScreen
from signerd.core.values import Imported, Neighbour, Record
from signerd.daemon.proposal_views import proposal_view
from tests.support.desk import VAULT, review_context, snapshot_of, spend
from tests.support.proofs import MESSAGE
from tests.support.wallets import ALICE, BOB, MALLORY, fund, make_vault, with_input

COINS = [fund(VAULT, 40_000, index=1), fund(VAULT, 70_000, index=2, chain=1)]
AT_BLOCK = f"{MESSAGE} (block 215, {'00' * 32})"
PROOF = build_proof(VAULT, AT_BLOCK, 0, 0, COINS).psbt


def told(psbt: Psbt, **changes: object):
    record = {"kind": TxType.PROOF, "recipients": (), "amounts": (), "fee": 0, "op_return": None}
    return snapshot_of(psbt, **(record | {"txid_expected": psbt.tx.txid} | changes))


def words_of(found: ProposalReview) -> str:
    """As the terminal shows it, in a list and whole."""
    view = proposal_view(Record(found.snapshot, State.WAITING_PERSON, "t"), found)
    return proposals_text([view]) + proposal_text(view)


def judged(psbt: Psbt, around: dict | None = None, **changes: object):
    return review(told(psbt, **changes), review_context(**(around or {})))


def test_p93_the_person_sees_the_message_and_what_it_speaks_for():
    found = judged(PROOF)
    assert found.allowed, found.refusals
    (shown,) = [verdict for verdict in found.verdicts if verdict.name == "proof"]
    for words in (MESSAGE, VAULT.address(0, 0), "2 coins", "110,000 sats", "no node can ever take it"):
        assert words in shown.sentence
    assert title_of(found, {}).startswith("Sign a message to prove control of 2 coins with 0.0011 BTC")
    whole = words_of(found)
    assert "It moves no money, and pays no fee" in whole
    proven = "control of 3 addresses, and of 2 coins of 0.00110000 BTC (110,000 sats) in all, at block 215"
    assert proven in whole
    assert not [word for word in ("takes ", "fee  ", "sat/vB", "NOT KNOWN") if word in whole]


def without_the_message(psbt: Psbt) -> Psbt:
    """All of the coins as a fee: a node would take it."""
    return replace(psbt, tx=replace(psbt.tx, inputs=psbt.tx.inputs[1:]), inputs=psbt.inputs[1:])


def paying(psbt: Psbt) -> Psbt:
    theft = TxOut(sats(109_000), MALLORY.profile().script_pubkey(0, 0))
    output = replace(psbt.outputs[0], amount=theft.amount, script_pubkey=theft.script_pubkey)
    return replace(psbt, tx=replace(psbt.tx, outputs=(theft,)), outputs=(output,))


def also_paying(psbt: Psbt) -> Psbt:
    paid = paying(psbt)
    return replace(
        psbt,
        tx=replace(psbt.tx, outputs=(*psbt.tx.outputs, *paid.tx.outputs)),
        outputs=(*psbt.outputs, *paid.outputs),
    )


ATTACKS = {
    "p93-a-payment-called-a-proof": replace(spend(), signed_message=MESSAGE.encode()),
    "p93-a-proof-that-pays": paying(PROOF),
    "p93-a-proof-that-also-pays": also_paying(PROOF),
    "p93-all-of-the-coins-as-a-fee": without_the_message(PROOF),
    "p94-another-message-than-is-signed": replace(PROOF, signed_message=b"I lend my coins to nobody."),
    "p94-a-message-that-clears-the-screen": replace(PROOF, signed_message=b"\x1b[2Jok"),
    "p94-no-message": replace(PROOF, signed_message=None),
    "p96-a-proof-of-another-vault": build_proof(make_vault((ALICE, BOB, MALLORY)), MESSAGE, 0, 0).psbt,
    "p96-a-signature-that-leaves-parts-open": with_input(PROOF, 1, sighash_type=0x81),
    "p96-a-coin-of-another-amount": with_input(
        PROOF, 1, witness_utxo=TxOut(sats(1), VAULT.script_pubkey(0, 1))
    ),
}


@pytest.mark.parametrize("name", ATTACKS)
def test_what_is_no_proof_of_this_vault_is_not_signed(name):
    psbt = ATTACKS[name]
    found = judged(psbt)
    assert not found.allowed
    # Nothing of it is shown as a message: the platform's label alone makes none.
    assert "moves no money" not in words_of(found)
    assert "Sign a message" not in words_of(found)
    # The last checks before a device: what they hand over, if anything, is shown there as the payment it is.
    try:
        sanitised_psbt.require_sound(psbt, VAULT)
        handed = Psbt.parse(sanitised_psbt.for_device(psbt, VAULT))
    except MultisigError:
        return
    assert handed.signed_message is None


def test_p93_a_proof_called_a_payment_is_refused():
    found = judged(PROOF, kind=TxType.SEND)
    assert not found.allowed
    assert "It is called a payment, and its PSBT asks for a message." in words_of(found)
    assert "It moves no money" in words_of(found)


def test_p93_a_payment_called_a_proof_is_shown_as_the_payment_it_is():
    found = judged(ATTACKS["p93-a-payment-called-a-proof"])
    whole = words_of(found)
    assert "It is called a message to be signed, and its transaction is a payment." in whole
    for words in ("Pay 0.0005 BTC to ", "  pays   0.00050000 BTC", "  fee    0.00001000 BTC"):
        assert words in whole


def test_p93_a_proof_that_a_person_brings_is_judged_as_one():
    imported = Imported(by="me", app_id=None, expires_at=2_000_000_000)
    found = judged(PROOF, kind=TxType.SEND, imported=imported, txid_expected="")
    assert found.allowed, found.refusals
    assert not judged(without_the_message(PROOF), kind=TxType.SEND, imported=imported).allowed


@pytest.mark.parametrize(
    ("no_proof", "no_funds", "allowed"), [("", "", True), ("", "a fee", False), ("no", "no", False)]
)
def test_p95_a_device_that_cannot_is_named_before_the_person_is_asked(no_proof, no_funds, allowed):
    screen = ModelScreen("Some device 1.0", None, no_proof=no_proof, no_funds=no_funds)
    found = judged(PROOF, {"screen": screen})
    assert found.allowed is allowed
    assert allowed or "Some device 1.0" in found.refusals[0].sentence


def test_p93_a_signed_proof_stands_in_no_payments_way():
    beside = Neighbour(
        "proof",
        State.CONFIRMED,
        signed=True,
        outpoints=frozenset(item.outpoint for item in spend().tx.inputs),
        payments=frozenset({(b"\x6a", 0)}),
        is_proof=True,
    )
    found = review(snapshot_of(spend()), review_context(neighbours=(beside,)))
    (conflict,) = [verdict for verdict in found.verdicts if verdict.name == "conflict"]
    assert conflict.outcome is Outcome.ALLOW
