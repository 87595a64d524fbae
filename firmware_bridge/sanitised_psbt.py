"""What of a PSBT is sent to a device, and what of its answer is accepted."""

from dataclasses import replace

from firmware_bridge.errors import BadDeviceSignature, DeviceFault
from multisig import (
    BadSignature,
    Fingerprint,
    InvalidPsbt,
    Policy,
    Psbt,
    PsbtInput,
    PsbtMismatch,
    PsbtOutput,
    PsbtTooLarge,
    Severity,
    Vault,
    accept_signatures,
    verify_signatures,
)
from multisig.bip322 import inspect_proof, is_proof
from multisig.proofs import Prover, Unproven, proven_output


def require_sound(psbt: Psbt, policy: Policy) -> None:
    """Check that every input is proven to be a coin of the policy with its true amount (S4, S5), and that
    every signature in the PSBT verifies.

    HWI skips an input without UTXO data, signs another transaction, and reports success.

    A BIP-322 message must be one in all its parts: on some screens it looks like a payment.

    :raises MultisigError: one of these is not so.
    """
    verify_signatures(psbt, policy)
    if is_proof(psbt):
        _require_proof(psbt, policy)
    for index, (item, spent) in enumerate(zip(psbt.inputs, psbt.tx.inputs, strict=True)):
        previous = item.non_witness_utxo
        if previous is None:
            raise PsbtMismatch(f"Input {index} has no previous transaction.")
        if item.witness_utxo not in {None, previous.outputs[spent.outpoint.vout]}:
            raise PsbtMismatch(f"Input {index} states another coin than its previous transaction has.")


def _require_proof(psbt: Psbt, policy: Policy) -> None:
    refusals = [
        finding
        for finding in inspect_proof(psbt, policy, network=policy.network).findings
        if finding.severity is Severity.REFUSE
    ]
    if refusals:
        raise PsbtMismatch(f"It is not the message that it claims to be. {refusals[0].sentence}")


def for_device(psbt: Psbt, policy: Policy) -> bytes:
    """The PSBT as the device is to see it: only what was proven here of its coins and change, and the
    signatures so far.

    Devices believe different fields. HWI makes a Trezor treat an output with a path as change, whatever its
    script. A Ledger follows a sighash type and signs less than the whole. For a second key with the device's
    fingerprint HWI asks the person twice.

    The vault's keys are in the global fields: without them a Trezor shows change as a payment, and a Ledger
    signs nothing. Only a BIP-322 message keeps its own global field.

    :raises PsbtMismatch: a coin is not proven.
    """
    prover = Prover(policy)
    cosigners = policy.cosigners if isinstance(policy, Vault) else ()
    sanitised = replace(
        psbt,
        inputs=tuple(_proven_input(index, item, prover) for index, item in enumerate(psbt.inputs)),
        outputs=tuple(_proven_output(item, prover) for item in psbt.outputs),
        xpubs=tuple((key.xpub, key.origin) for key in cosigners),
        signed_message=psbt.signed_message if is_proof(psbt) else None,
    )
    return sanitised.to_bytes()


def _proven_input(index: int, item: PsbtInput, prover: Prover) -> PsbtInput:
    spent = proven_output(item)
    if isinstance(spent, Unproven) or (ours := prover.prove(spent.script_pubkey, item.derivations)) is None:
        raise PsbtMismatch(f"Input {index} is not proven to spend a coin of this policy.")
    return replace(
        item,
        witness_utxo=spent,
        witness_script=ours.witness_script,
        redeem_script=None,
        derivations=ours.derivations,
        sighash_type=None,
        final_script_sig=None,
    )


def _proven_output(item: PsbtOutput, prover: Prover) -> PsbtOutput:
    """Only proven change keeps its path and script. Any other output is a payment, whatever the PSBT claims
    (S1, S9).
    """
    ours = prover.prove(item.script_pubkey, item.derivations)
    return replace(
        item,
        witness_script=None if ours is None else ours.witness_script,
        redeem_script=None,
        derivations={} if ours is None else ours.derivations,
    )


def take_back(psbt: Psbt, answer: bytes | str, policy: Policy, signer: Fingerprint | None) -> Psbt:
    """Our PSBT with the device's new signatures, verified. Nothing else of the answer (bytes or base64) is
    used (S19). `signer`: None where any cosigner may have signed.

    :raises BadDeviceSignature: one of them does not verify, or is not this signer's.
    :raises DeviceFault: the answer is not a PSBT, or one of another transaction.
    """
    try:
        return accept_signatures(psbt, Psbt.parse(answer), policy, signer)
    except BadSignature as error:
        raise BadDeviceSignature(error.input_index) from error
    except PsbtMismatch as error:
        raise DeviceFault("it returned another transaction") from error
    except (InvalidPsbt, PsbtTooLarge) as error:
        raise DeviceFault(f"it returned no PSBT: {error}") from error
