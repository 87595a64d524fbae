"""Checks of a message that the vault is to sign (BIP-322)."""

from custody.schemas.proposals import TxType
from multisig import Psbt
from multisig.bip322 import is_proof
from signerd.core.checks.case import Answer, Case, InspectedCase, allow, refuse
from signerd.core.text import amount, count, foreign
from signerd.core.values import Snapshot


def is_mislabelled(snapshot: Snapshot, psbt: Psbt) -> bool:
    """Whether a proposal's kind and its transaction disagree about being a message. Imported PSBTs have no
    kind.
    """
    return snapshot.brought is None and is_proof(psbt) is not (snapshot.kind is TxType.PROOF)


def agrees(case: Case) -> Answer | None:
    """A refusal where the kind is wrong; else None."""
    if not is_mislabelled(case.snapshot, case.psbt):
        return None
    if case.snapshot.kind is TxType.PROOF:
        return refuse("It is called a message to be signed, and its transaction is a payment.", kind="proof")
    return refuse("It is called a payment, and its PSBT asks for a message.", kind="proof")


def proves(case: InspectedCase) -> Answer:
    """Shows the whole message, its address and coins, from the PSBT alone."""
    proof = case.inspection.proof
    assert proof is not None, "this check is for messages"
    if not proof.message or not proof.address:
        return refuse("What it says, or for which address of the vault, is not proven.")
    coins = ""
    if proof.coins:
        coins = f", and of {count(len(proof.coins), 'coin', 'coins')} with {amount(proof.total)} in all"
    return allow(
        f"It signs the message “{foreign(proof.message)}” as proof that the vault controls "
        f"{proof.address}{coins}. "
        "It pays nobody, and no node can ever take it.",
        message=proof.message,
        address=proof.address,
        coins=len(proof.coins),
        total_sats=int(proof.total),
    )


def signable(case: InspectedCase) -> Answer:
    """Whether our device can sign it. A device that was not seen yet is checked when it is connected."""
    proof, screen = case.inspection.proof, case.context.screen
    if screen is None or proof is None:
        return allow("Which device has your key is not known yet: it is asked only if it can sign a message.")
    why = screen.why_no_message(len(proof.coins))
    if why:
        return refuse(f"Your device ({screen.name}) signs no such message: {why}.", device=screen.name)
    return allow(f"Your device ({screen.name}) signs such messages.", device=screen.name)
