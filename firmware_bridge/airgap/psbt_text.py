"""The forms in which a PSBT is carried: bytes, base64, hexadecimal digits. Devices take each and answer in the same."""

import base64
import binascii
import re
from enum import StrEnum, unique
from typing import Final

from firmware_bridge.airgap.outcomes import FinalTransaction, Unreadable
from firmware_bridge.airgap.transfer import MAX_BYTES
from multisig import InvalidTransaction, Transaction

# Hexadecimal digits are twice the bytes; some programs break lines.
MAX_CARRIED: Final = 2 * MAX_BYTES + MAX_BYTES // 16
_MAGIC: Final = b"psbt\xff"
_HEX_MAGIC: Final = _MAGIC.hex().encode()
_BASE64_MAGIC: Final = b"cHNidP"
_BYTE_ORDER_MARK: Final = b"\xef\xbb\xbf"
# One class of characters and no group in a loop, which would take sixty bytes of memory for each that is read.
_HEX = re.compile(rb"[0-9a-f]+")


@unique
class Form(StrEnum):
    """How a PSBT is written."""

    BINARY = "binary"
    """What Coldcard prefers, and every device with a card takes."""
    BASE64 = "base64"


def write(psbt: bytes, form: Form) -> bytes:
    return base64.b64encode(psbt) if form is Form.BASE64 else psbt


def read(carried: bytes) -> bytes:
    """The bytes of a PSBT, from whichever form they are in. What is inside is not looked at.

    :raises FinalTransaction: it is a complete transaction.
    :raises Unreadable: it is neither, or larger than a PSBT may be.
    """
    if len(carried) > MAX_CARRIED:
        raise Unreadable(f"This is larger than a PSBT may be, which is {MAX_BYTES} bytes.")
    found = _from_text(carried)
    if found.startswith(_MAGIC):
        if len(found) > MAX_BYTES:
            raise Unreadable(f"This PSBT has {len(found)} bytes; at most {MAX_BYTES} are read.")
        return found
    if _is_transaction(found):
        raise FinalTransaction
    raise Unreadable("This is no PSBT.")


def _from_text(carried: bytes) -> bytes:
    if carried.startswith(_MAGIC):
        return carried
    text = b"".join(carried.removeprefix(_BYTE_ORDER_MARK).split())
    if text.startswith(_BASE64_MAGIC):
        try:
            return base64.b64decode(text, validate=True)
        except binascii.Error:
            raise Unreadable("This PSBT is damaged: it is not valid base64.") from None
    lowered = text.lower()
    if len(lowered) % 2 == 0 and _HEX.fullmatch(lowered):
        return bytes.fromhex(lowered.decode("ascii"))
    if lowered.startswith(_HEX_MAGIC):
        raise Unreadable("This PSBT is damaged: its hexadecimal digits break off.")
    return carried


def _is_transaction(found: bytes) -> bool:
    try:
        Transaction.parse(found)
    except InvalidTransaction:
        return False
    return True
