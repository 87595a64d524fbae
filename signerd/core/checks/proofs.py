"""A message that the vault is to sign (BIP-322): what it says, and for what. It is no payment."""

from custody.schemas.proposals import TxType
from multisig import Psbt
from multisig.bip322 import is_proof
from signerd.core.checks.case import Answer, Case, InspectedCase, allow, refuse
from signerd.core.text import amount, count, foreign
from signerd.core.values import Snapshot


def is_mislabelled(snapshot: Snapshot, psbt: Psbt) -> bool:
    """A proposal is a message exactly where its transaction is one. What was brought has no label."""
    return snapshot.brought is None and is_proof(psbt) is not (snapshot.kind is TxType.PROOF)


def agrees(case: Case) -> Answer | None:
    """None where it is what it is called."""
    if not is_mislabelled(case.snapshot, case.psbt):
        return None
    if case.snapshot.kind is TxType.PROOF:
        return refuse("It is called a message to be signed, and its transaction is a payment.", kind="proof")
    return refuse("It is called a payment, and its PSBT asks for a message.", kind="proof")


def proves(case: InspectedCase) -> Answer:
    """Shows the whole message, and whose word it becomes. The platform's record is not asked."""
    proof = case.inspection.proof
    assert proof is not None, "only messages are judged by this"
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
    """Said before the person is asked. A device that was not seen yet is asked for what it is when it is."""
    proof, screen = case.inspection.proof, case.around.screen
    if screen is None or proof is None:
        return allow("Which device has your key is not known yet: it is asked only if it can sign a message.")
    why = screen.why_no_message(len(proof.coins))
    if why:
        return refuse(f"Your device ({screen.name}) signs no such message: {why}.", device=screen.name)
    return allow(f"Your device ({screen.name}) signs such messages.", device=screen.name)
