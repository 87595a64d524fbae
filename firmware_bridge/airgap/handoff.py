"""What leaves without a cable, and what is taken back: the doors of `sanitised_psbt`, with an answer's usual mistakes told apart."""

from firmware_bridge import sanitised_psbt
from firmware_bridge.airgap import psbt_text
from firmware_bridge.airgap.outcomes import NothingSigned, OtherTransaction, Unreadable
from firmware_bridge.airgap.transfer import MAX_BYTES, Transfer
from firmware_bridge.errors import BadDeviceSignature, DeviceFault, WrongDevice
from multisig import (
    Fingerprint,
    ForeignSignature,
    MultisigError,
    Policy,
    Psbt,
    PsbtMismatch,
    PsbtTooLarge,
    accept_signatures,
    signer_progress,
)


def request_bytes(psbt: Psbt, policy: Policy) -> bytes:
    """Exactly what a device is shown, as over a cable (S4, S5).

    :raises MultisigError: an input is not proven to be a coin of the policy, or a signature in it is bad; or it is larger than any
        device takes.
    """
    sanitised_psbt.require_sound(psbt, policy)
    content = sanitised_psbt.for_device(psbt, policy)
    if len(content) > MAX_BYTES:
        raise PsbtTooLarge(f"The PSBT has {len(content)} bytes; no device takes more than {MAX_BYTES}.")
    return content


def take_signed(answer: bytes | Transfer, psbt: Psbt, policy: Policy, signer: Fingerprint) -> Psbt:
    """Our PSBT with the verified new signatures of this signer; nothing else of the answer is looked at (S19).

    `answer`: a PSBT in any form of `psbt_text`, or what a scanner read. Inputs may be left unsigned: see `signer_progress`.

    :raises WrongDevice: the signer is none of the policy's, or the answer is signed by another cosigner.
    :raises BadDeviceSignature: a signature does not verify; it names the input.
    :raises OtherTransaction: it answers another request.
    :raises NothingSigned: it brings nothing new, and the signer has not signed before.
    :raises FinalTransaction: it is a complete transaction.
    :raises Unreadable: it is no PSBT.
    """
    if policy.cosigner_for(signer) is None:
        raise WrongDevice("This signer is no cosigner here.")
    found = psbt_text.read(answer if isinstance(answer, bytes) else answer.data)
    taken = _take_back(found, psbt, policy, signer)
    if taken == psbt and not signer_progress(psbt, policy, signer).is_complete:
        raise NothingSigned(f"This brings no new signature by {signer}.")
    return taken


def _take_back(found: bytes, psbt: Psbt, policy: Policy, signer: Fingerprint) -> Psbt:
    try:
        return sanitised_psbt.take_back(psbt, found, policy, signer)
    except BadDeviceSignature as error:
        if isinstance(error.__cause__, ForeignSignature) and _is_by_cosigners(found, psbt, policy):
            raise WrongDevice(
                f"This is signed by another cosigner's device than {signer}.", detail=str(error.__cause__)
            ) from error
        raise
    except DeviceFault as error:
        raise _told_apart(error) from error


def _is_by_cosigners(found: bytes, psbt: Psbt, policy: Policy) -> bool:
    # The file of a colleague is an honest mistake; a signature that no cosigner made is not.
    try:
        accept_signatures(psbt, Psbt.parse(found), policy, None)
    except MultisigError:
        return False
    return True


def _told_apart(error: DeviceFault) -> DeviceFault:
    if isinstance(error.__cause__, PsbtMismatch):
        return OtherTransaction("This belongs to another transaction.")
    return Unreadable(f"This PSBT cannot be read: {error.__cause__}", detail=error.detail)
