"""Parsing and verifying what a signer sends back, outside any database transaction, so that no writer waits.

Two megabytes of outputs take a second to parse; a hundred inputs take a tenth of a second to verify, also
with the consensus engine.
"""

from dataclasses import dataclass

from custody.server.chain.engine import InvalidSpend, consensus, verify_transaction
from custody.server.errors import Invalid, NotASigner, PsbtDiffers, SignatureInvalid
from custody.server.store.models import DecisionRow, KeyRow, ProposalRow, VaultRow
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
class Signer:
    """The caller as a signer of a proposal. ``policy``: of its coins. ``fingerprint``: of the key there.
    ``decision``: the earlier one, which a new one replaces. ``vault``: whose coins it spends; None for a
    forward.
    """

    proposal: ProposalRow
    policy: Policy
    key: KeyRow
    fingerprint: Fingerprint
    decision: DecisionRow | None
    vault: VaultRow | None = None


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


def verified(text: str, signer: Signer) -> Verified:
    """Verifies a submitted PSBT, which stands beside the stored one with the signatures of others. Raises
    Invalid; PsbtDiffers (another transaction, or changed); NotASigner (another signer's signature);
    SignatureInvalid; InvalidSpend, which is a bug of ours.
    """
    proposal = signer.proposal
    try:
        returned = ReceivedPsbt.parse(text).psbt
    except (InvalidPsbt, PsbtTooLarge) as error:
        raise Invalid.at("/psbt_base64", str(error), error.code) from error
    if returned.tx.txid != proposal.txid_expected:
        raise PsbtDiffers("The submitted PSBT is not of the proposed transaction.")
    base = Psbt.parse(proposal.psbt)
    signed = _accept(base, returned, signer)
    report = signed.report()
    progress = report.of_signer(signer.fingerprint)
    if not progress.signed:
        raise SignatureInvalid("The PSBT has no signature of your key.")
    return Verified(
        base=proposal.psbt,
        signed=signed.psbt.to_bytes(),
        new=tuple(
            NewSignature(index, key, signature)
            for index, (before, after) in enumerate(zip(base.inputs, signed.psbt.inputs, strict=True))
            for key, signature in after.partial_signatures.items()
            if key not in before.partial_signatures
        ),
        progress=progress,
        collected=report.progress,
        final=final_transaction(signed) if report.progress >= proposal.m else None,
    )


def _accept(base: Psbt, returned: Psbt, signer: Signer) -> ProvenSpend:
    try:
        return ProvenSpend(base, signer.policy).accept(returned, signer.fingerprint)
    except PsbtMismatch as error:
        raise PsbtDiffers(str(error)) from error
    except ForeignSignature as error:
        hint = "Submit the signatures of your own device alone, without those of other signers."
        raise NotASigner(str(error), hint=hint) from error
    except BadSignature as error:
        raise SignatureInvalid.at("/psbt_base64", str(error), error.code) from error


def final_transaction(signed: ProvenSpend) -> Transaction:
    """The transaction of a PSBT with M verified signatures of every input.

    Raises InvalidSpend where the consensus engine refuses what our own checks accept: a bug of ours, which
    must never reach the network.
    """
    transaction, spent = signed.finalise(), spent_outputs(signed.psbt)
    verify_transaction(transaction, spent)
    if is_proof(signed.psbt):
        # As a third party would.
        message, proof = (signed.psbt.signed_message or b"").decode(), str(finalise_proof(signed))
        verdict = verify_message(message, spent[0].script_pubkey, proof, consensus)
        if verdict.state is not ProofState.VALID:
            raise InvalidSpend(f"the proof is {verdict.state}: {verdict.reason}")
    return transaction


def spent_outputs(psbt: Psbt) -> list[TxOut]:
    """The spent outputs from the previous transactions, whose hashes the inputs commit to."""
    outputs = []
    for item in psbt.inputs:
        assert item.non_witness_utxo is not None, "a PSBT of ours carries every previous transaction"
        outputs.append(item.non_witness_utxo.outputs[item.outpoint.vout])
    return outputs
