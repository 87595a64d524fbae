"""Parsing and verifying what a signer sends back, outside any database transaction, so that no writer waits.

Two megabytes of outputs take a second to parse; a hundred inputs take a tenth of a second to verify, also
with the consensus engine.
"""

from dataclasses import dataclass

from custody.schemas import proposals as wire
from custody.server.chain.engine import InvalidSpend, consensus, verify_transaction
from custody.server.errors import Invalid, NotASigner, PsbtDiffers, SignatureInvalid
from multisig import (
    BadSignature,
    Fingerprint,
    ForeignSignature,
    InvalidPsbt,
    Policy,
    ProvenSpend,
    Psbt,
    PsbtMismatch,
    PsbtTooLarge,
    ReceivedPsbt,
    SignerProgress,
    Transaction,
    TxOut,
)
from multisig.bip322 import ProofState, finalise_proof, is_proof, verify_message


@dataclass(frozen=True)
class ExpectedSpend:
    """What a signer has to sign. ``psbt``: the stored one, with the signatures of others."""

    psbt: bytes
    txid: str
    policy: Policy
    fingerprint: Fingerprint
    m: int


@dataclass(frozen=True)
class NewSignature:
    """A signature that the stored PSBT does not have."""

    input_index: int
    public_key: bytes
    signature: bytes


@dataclass(frozen=True)
class Verified:
    """The result of verifying a signer's PSBT. It is valid as long as ``base`` is the stored PSBT.

    ``signed`` is ``base`` with the ``new`` signatures; every input has at least ``collected`` signatures.
    ``final``: the complete transaction, once it has M.
    """

    base: bytes
    signed: bytes
    new: tuple[NewSignature, ...]
    progress: SignerProgress
    collected: int
    final: Transaction | None


def read_returned(request: wire.SignPsbtRequest, txid: str) -> Psbt | None:
    """The submitted PSBT, if it is of the transaction ``txid``; None for a decline. Raises Invalid,
    PsbtDiffers.
    """
    if request.psbt_base64 is None:
        return None
    returned = _parse(request.psbt_base64)
    if returned.tx.txid != txid:
        raise PsbtDiffers("The submitted PSBT is not of the proposed transaction.")
    return returned


def verify_returned(returned: Psbt | None, expected: ExpectedSpend) -> Verified | None:
    """None for a decline. Raises PsbtDiffers; NotASigner (another signer's signature); SignatureInvalid;
    InvalidSpend, which is a bug of ours.
    """
    if returned is None:
        return None
    base = Psbt.parse(expected.psbt)
    signed = _accept(base, returned, expected)
    report = signed.report()
    progress = report.of_signer(expected.fingerprint)
    if not progress.signed:
        raise SignatureInvalid("The PSBT has no signature of your key.")
    return Verified(
        base=expected.psbt,
        signed=signed.psbt.to_bytes(),
        new=_new_signatures(base, signed.psbt),
        progress=progress,
        collected=report.progress,
        final=final_transaction(signed) if report.progress >= expected.m else None,
    )


def _new_signatures(base: Psbt, signed: Psbt) -> tuple[NewSignature, ...]:
    return tuple(
        NewSignature(index, key, signature)
        for index, (before, after) in enumerate(zip(base.inputs, signed.inputs, strict=True))
        for key, signature in after.partial_signatures.items()
        if key not in before.partial_signatures
    )


def _parse(text: str) -> Psbt:
    try:
        return ReceivedPsbt.parse(text).psbt
    except (InvalidPsbt, PsbtTooLarge) as error:
        sentence = str(error)
        raise Invalid.at("/psbt_base64", sentence, error.code) from error


def _accept(base: Psbt, returned: Psbt, expected: ExpectedSpend) -> ProvenSpend:
    try:
        return ProvenSpend(base, expected.policy).accept(returned, expected.fingerprint)
    except PsbtMismatch as error:
        raise PsbtDiffers(str(error)) from error
    except ForeignSignature as error:
        raise NotASigner(str(error)) from error
    except BadSignature as error:
        pointer = "/psbt_base64"
        raise SignatureInvalid.at(pointer, str(error), error.code) from error


def final_transaction(signed: ProvenSpend) -> Transaction:
    """The transaction of a PSBT with M verified signatures of every input.

    Raises InvalidSpend where the consensus engine refuses what our own checks accept: a bug of ours, which
    must never reach the network.
    """
    transaction = signed.finalise()
    verify_transaction(transaction, _spent_outputs(signed.psbt))
    if is_proof(signed.psbt):
        _require_proven(signed)
    return transaction


def _require_proven(signed: ProvenSpend) -> None:
    """Verifies the proof as a third party would. Raises InvalidSpend."""
    message, challenge = (signed.psbt.signed_message or b"").decode(), _spent_outputs(signed.psbt)[0]
    verdict = verify_message(message, challenge.script_pubkey, str(finalise_proof(signed)), consensus)
    if verdict.state is not ProofState.VALID:
        raise InvalidSpend(f"the proof is {verdict.state}: {verdict.reason}")


def _spent_outputs(psbt: Psbt) -> list[TxOut]:
    """The spent outputs from the previous transactions, whose hashes the inputs commit to."""
    outputs = []
    for item in psbt.inputs:
        assert item.non_witness_utxo is not None, "a PSBT of ours carries every previous transaction"
        outputs.append(item.non_witness_utxo.outputs[item.outpoint.vout])
    return outputs
