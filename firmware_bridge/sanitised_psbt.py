"""What of a PSBT goes to a device, and what of its answer is taken back: checked at both doors."""

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
    Vault,
    accept_signatures,
    verify_signatures,
)
from multisig.proofs import Prover, Unproven, proven_output


def require_sound(psbt: Psbt, policy: Policy) -> None:
    """Every input is proven to be a coin of the policy and says its true amount (S4, S5); what is signed is signed well.

    HWI skips an input without UTXO data, signs another transaction, and returns an invalid signature as if all were well.

    :raises MultisigError: it is not so.
    """
    verify_signatures(psbt, policy)
    for index, (item, spent) in enumerate(zip(psbt.inputs, psbt.tx.inputs, strict=True)):
        previous = item.non_witness_utxo
        if previous is None:
            raise PsbtMismatch(f"Input {index} has no previous transaction.")
        if item.witness_utxo not in {None, previous.outputs[spent.outpoint.vout]}:
            raise PsbtMismatch(f"Input {index} states another coin than its previous transaction has.")


def for_device(psbt: Psbt, policy: Policy) -> bytes:
    """The PSBT as the device is to see it: what this machine has proven of its coins and change, and the signatures so far.

    Devices differ in what they believe. A path beside an output has HWI tell a Trezor to pay there whatever the script is; a
    sighash has a Ledger sign less than the whole; a second key named as the device's own has HWI ask the person twice.

    The vault's own keys stand in the global part: without them a Trezor shows change as a payment, and a Ledger signs nothing.

    :raises PsbtMismatch: a coin is not proven.
    """
    prover = Prover(policy)
    cosigners = policy.cosigners if isinstance(policy, Vault) else ()
    told = replace(
        psbt,
        inputs=tuple(_proven_input(index, item, prover) for index, item in enumerate(psbt.inputs)),
        outputs=tuple(_proven_output(item, prover) for item in psbt.outputs),
        xpubs=tuple((key.xpub, key.origin) for key in cosigners),
    )
    return told.to_bytes()


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
    """Change says where it stands; whatever else is claimed to be ours (S1), or stands where nobody looks (S9), is a payment."""
    ours = prover.prove(item.script_pubkey, item.derivations)
    return replace(
        item,
        witness_script=None if ours is None else ours.witness_script,
        redeem_script=None,
        derivations={} if ours is None else ours.derivations,
    )


def take_back(psbt: Psbt, answer: bytes | str, policy: Policy, signer: Fingerprint) -> Psbt:
    """Our PSBT with the device's verified new signatures; nothing else of the answer (bytes, or base64) is looked at (S19).

    :raises BadDeviceSignature: one of them does not verify, or is not this signer's.
    :raises DeviceFault: the answer is no PSBT, or one of another transaction.
    """
    try:
        return accept_signatures(psbt, Psbt.parse(answer), policy, signer)
    except BadSignature as error:
        raise BadDeviceSignature(error.input_index) from error
    except PsbtMismatch as error:
        raise DeviceFault("it returned another transaction") from error
    except (InvalidPsbt, PsbtTooLarge) as error:
        raise DeviceFault(f"it returned no PSBT: {error}") from error
