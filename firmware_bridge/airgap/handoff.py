"""PSBTs without a cable: the request as a device gets it, and the answer as it is accepted. The common
mistakes with an answer have outcomes of their own.
"""

import base64
import binascii
import re
from typing import Final

from firmware_bridge import sanitised_psbt
from firmware_bridge.airgap.transfer import (
    MAX_BYTES,
    BadTransfer,
    FinalTransaction,
    NothingSigned,
    OtherTransaction,
    Transfer,
)
from firmware_bridge.errors import BadDeviceSignature, DeviceFault, WrongDevice
from multisig import (
    Fingerprint,
    InvalidTransaction,
    Policy,
    Psbt,
    PsbtMismatch,
    PsbtTooLarge,
    Transaction,
    signer_progress,
)

# Hexadecimal digits take twice the bytes; some programs break lines.
MAX_CARRIED: Final = 2 * MAX_BYTES + MAX_BYTES // 16
_MAGIC: Final = b"psbt\xff"
_HEX_MAGIC: Final = _MAGIC.hex().encode()
_BASE64_MAGIC: Final = b"cHNidP"
_BYTE_ORDER_MARK: Final = b"\xef\xbb\xbf"
# Specter-DIY's QR codes: p1of2, and a piece of base64.
SPECTER_PART = re.compile(rb"p[0-9]{1,4}of[0-9]{1,4}\s")
SPECTER_SERIES: Final = (
    "This is a part of Specter-DIY's own series of QR codes, which is not read: give its file from the card."
)
# No group in a loop, which would take sixty bytes of memory for each byte read.
_HEX = re.compile(rb"[0-9a-f]+")


def decode_psbt(carried: bytes) -> bytes:
    """The bytes of a PSBT in any of its forms: bytes, base64, hexadecimal digits. The PSBT itself is not
    parsed.

    :raises FinalTransaction: it is a complete transaction.
    :raises BadTransfer: not a PSBT, or too large.
    """
    if len(carried) > MAX_CARRIED:
        raise BadTransfer(f"This is too large for a PSBT: {MAX_BYTES} bytes at most.")
    decoded = _from_text(carried)
    if decoded.startswith(_MAGIC):
        if len(decoded) > MAX_BYTES:
            raise BadTransfer(f"This PSBT has {len(decoded)} bytes; {MAX_BYTES} is the most.")
        return decoded
    if _is_transaction(decoded):
        raise FinalTransaction
    raise BadTransfer(SPECTER_SERIES if SPECTER_PART.match(carried.lstrip()) else "This is not a PSBT.")


def _from_text(carried: bytes) -> bytes:
    if carried.startswith(_MAGIC):
        return carried
    text = b"".join(carried.removeprefix(_BYTE_ORDER_MARK).split())
    if text.startswith(_BASE64_MAGIC):
        try:
            return base64.b64decode(text, validate=True)
        except binascii.Error:
            raise BadTransfer("This PSBT is damaged: it is not valid base64.") from None
    lowered = text.lower()
    if len(lowered) % 2 == 0 and _HEX.fullmatch(lowered):
        return bytes.fromhex(lowered.decode("ascii"))
    if lowered.startswith(_HEX_MAGIC):
        raise BadTransfer("This PSBT is damaged: it is not valid hexadecimal.")
    return carried


def _is_transaction(content: bytes) -> bool:
    try:
        Transaction.parse(content)
    except InvalidTransaction:
        return False
    return True


def request_bytes(psbt: Psbt, policy: Policy) -> bytes:
    """The request, exactly as a device gets it over a cable (S4, S5).

    :raises MultisigError: an input is not proven to be a coin of the policy, or a signature in it is bad; or
        it is larger than any device takes.
    """
    sanitised_psbt.require_sound(psbt, policy)
    content = sanitised_psbt.for_device(psbt, policy)
    if len(content) > MAX_BYTES:
        raise PsbtTooLarge(f"The PSBT has {len(content)} bytes; no device takes more than {MAX_BYTES}.")
    return content


def take_signed(answer: bytes | Transfer, psbt: Psbt, policy: Policy, signer: Fingerprint) -> Psbt:
    """Our PSBT with the new signatures, verified: this signer's, and those of cosigners whose devices had the
    file before (S33). Nothing else of the answer is used (S19).

    `answer`: a PSBT as bytes, base64 or hexadecimal digits, or a scanner's result. Inputs may be left
    unsigned: see `signer_progress`.

    :raises WrongDevice: the signer is not a cosigner, or only other cosigners signed the answer.
    :raises BadDeviceSignature: a signature does not verify; it names the input.
    :raises OtherTransaction: it answers another request.
    :raises NothingSigned: it has no new signature, and the signer has not signed everything before.
    :raises FinalTransaction: it is a complete transaction.
    :raises BadTransfer: not a PSBT.
    """
    if policy.cosigner_for(signer) is None:
        raise WrongDevice("This signer is not a cosigner here.")
    signed = decode_psbt(answer if isinstance(answer, bytes) else answer.data)
    try:
        taken = sanitised_psbt.take_back(psbt, signed, policy, None)
    except BadDeviceSignature:
        raise
    except DeviceFault as error:
        if isinstance(error.__cause__, PsbtMismatch):
            raise OtherTransaction("This belongs to another transaction.") from error
        raise BadTransfer(f"This PSBT cannot be read: {error.__cause__}", detail=error.detail) from error
    before = signer_progress(psbt, policy, signer)
    if before.is_complete or signer_progress(taken, policy, signer) != before:
        return taken
    if taken == psbt:
        raise NothingSigned(f"This holds no new signature by {signer}.")
    # Another cosigner's file is a common mistake.
    raise WrongDevice(f"This is signed by another cosigner's device than {signer}.")
