"""Requests and answers as files: written for a device, found beside each other, read back."""

from pathlib import Path

from firmware_bridge.airgap import card, names, psbt_text
from firmware_bridge.airgap.handoff import request_bytes, take_signed
from firmware_bridge.airgap.psbt_text import Form
from multisig import Fingerprint, Policy, Psbt


def write_psbt(
    psbt: Psbt, policy: Policy, folder: Path, *, label: str = "", form: Form = Form.BINARY
) -> Path:
    """Write the request to a card's folder, whole and for good before this returns. The file's path.

    The name is made of the label and the transaction's id, so that the same request is written once. Where one card goes round,
    read the first signer's answer first, then the next one's, which holds both: signatures are taken of one signer at a time.

    :raises MultisigError: an input is not proven to be a coin of the policy, or a signature in it is bad (S4, S5).
    :raises NameTaken: another file has that name.
    :raises NoCard, CardProtected, CardFault: the folder cannot be written.
    """
    content = psbt_text.write(request_bytes(psbt, policy), form)
    return card.write(folder, names.request_name(label, psbt), content)


def find_answers(request: Path) -> tuple[Path, ...]:
    """The files beside the request that a device named as answers to it, the latest first. None is opened.

    :raises NoCard, CardProtected, CardFault: the folder cannot be read.
    """
    found = names.answers_among(card.entries(request.parent), request.name)
    return tuple(request.parent / name for name in found)


def read_signed(file: Path, psbt: Psbt, policy: Policy, signer: Fingerprint) -> Psbt:
    """Our PSBT with the verified new signatures in the file, which may be binary, base64 or hexadecimal.

    :raises BridgeError: as `take_signed`; and `NoCard`, `CardProtected`, `CardFault` where the file cannot be read.
    """
    return take_signed(card.read(file, psbt_text.MAX_CARRIED), psbt, policy, signer)
