"""What of a PSBT goes to a device, and what of its answer is taken back: checked at both doors."""

from dataclasses import replace

from firmware_bridge.errors import BadDeviceSignature, DeviceFault
from multisig import (
    BadSignature,
    Fingerprint,
    InvalidPsbt,
    Policy,
    Psbt,
    PsbtMismatch,
    PsbtTooLarge,
    Vault,
    accept_signatures,
    verify_signatures,
)


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
    """The PSBT with the vault's own keys in its global part: without them a Trezor shows change as a payment, and a Ledger
    signs nothing.
    """
    if isinstance(policy, Vault):
        psbt = replace(psbt, xpubs=tuple((key.xpub, key.origin) for key in policy.cosigners))
    return psbt.to_bytes()


def take_back(psbt: Psbt, answer: str, policy: Policy, signer: Fingerprint) -> Psbt:
    """Our PSBT with the device's verified new signatures; nothing else of the answer (base64) is looked at (S19).

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
