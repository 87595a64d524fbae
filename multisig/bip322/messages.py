"""A signed message: the two virtual transactions that stand for it, which cannot be mined (BIP-322, "Full"),
and the text of its signature, a prefix of three letters and base64 ("Types of Signatures").
"""

import base64
import binascii
import contextlib
import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from multisig.errors import InvalidMessage, InvalidPsbt, InvalidTransaction, PsbtTooLarge
from multisig.hashes import sha256
from multisig.psbt import Psbt
from multisig.psbt.codec import read_witness_stack
from multisig.psbt.fields import MAX_BYTES
from multisig.shown import ByMember
from multisig.transaction import MAX_UINT32, OutPoint, Transaction, TxIn, TxOut
from multisig.units import Sats
from multisig.wire import WireError, with_count

# "A few kilobytes" (BIP-322, "PSBT creator"); a longer message should be committed to by its hash.
MAX_MESSAGE_BYTES: Final = 4096
# Coldcard 5.6.1, shared/psbt.py and shared/msgsign.py: 2 to 330 characters of printable ASCII, no space at
# either end, and never three together.
MAX_SHOWN_CHARACTERS: Final = 330
_LEAST_SHOWN_CHARACTERS: Final = 2
_TOO_MANY_SPACES: Final = "   "

_TAG: Final = sha256(b"BIP0322-signed-message")
_NOWHERE: Final = OutPoint("00" * 32, MAX_UINT32)
_OP_RETURN: Final = b"\x6a"
_OP_0_PUSH_32: Final = b"\x00\x20"


def signed_message_hash(message: str) -> bytes:
    """The 32-byte tagged hash (BIP-340) of the message in UTF-8. Raises InvalidMessage."""
    return hashlib.sha256(_TAG + _TAG + message_bytes(message)).digest()


def message_bytes(message: str) -> bytes:
    """In UTF-8. Raises InvalidMessage for half a surrogate pair and for more than MAX_MESSAGE_BYTES."""
    try:
        encoded = message.encode("utf-8")
    except UnicodeEncodeError as error:
        raise InvalidMessage("The message is not text that can be written in UTF-8.") from error
    if len(encoded) > MAX_MESSAGE_BYTES:
        raise InvalidMessage(
            f"The message has {len(encoded)} bytes; at most {MAX_MESSAGE_BYTES} are accepted.",
            hint="Sign the SHA-256 of the message instead, as text.",
        )
    return encoded


def require_showable(message: str) -> None:
    """Check that a person can read the whole message on every device that shows it, and that no two messages
    look alike there. Raises InvalidMessage.
    """
    wrong = None
    if not _LEAST_SHOWN_CHARACTERS <= len(message) <= MAX_SHOWN_CHARACTERS:
        bounds = f"{_LEAST_SHOWN_CHARACTERS} to {MAX_SHOWN_CHARACTERS}"
        wrong = f"it has {len(message)} characters, and may have {bounds}"
    elif not message.isascii() or not message.isprintable():
        wrong = "it has a character that is not printable ASCII"
    elif message != message.strip() or _TOO_MANY_SPACES in message:
        wrong = "it begins or ends with a space, or has three spaces in a row"
    if wrong is not None:
        raise InvalidMessage(
            f"A device cannot show this message: {wrong}.",
            hint="Write one line of plain English letters, digits and signs.",
        )


def to_spend(message: str, challenge: bytes) -> Transaction:
    """The transaction that holds the message, and whose output has the script `challenge`.

    Raises InvalidMessage.
    """
    script_sig = _OP_0_PUSH_32 + signed_message_hash(message)
    return Transaction(0, (TxIn(_NOWHERE, 0, script_sig),), (TxOut(Sats(0), challenge),), 0)


def to_sign(message: str, challenge: bytes, coins: Sequence[OutPoint] = ()) -> Transaction:
    """The unsigned transaction that spends the output of `to_spend`, and `coins`. Raises InvalidMessage."""
    first = OutPoint(to_spend(message, challenge).txid, 0)
    inputs = tuple(TxIn(outpoint, 0) for outpoint in (first, *coins))
    return Transaction(0, inputs, (burn(),), 0)


def burn() -> TxOut:
    """The one output of `to_sign`: amount 0, and an OP_RETURN that can never be spent."""
    return TxOut(Sats(0), _OP_RETURN)


# Four characters of base64 carry three bytes; the prefix, and padding.
MAX_CHARACTERS: Final = MAX_BYTES // 3 * 4 + 16
# Bitcoin Core relays no heavier transaction (MAX_STANDARD_TX_WEIGHT); a byte weighs at least one unit.
_MAX_FULL_BYTES: Final = 400_000


class Variant(StrEnum):
    """The form of a signature, named by its prefix."""

    SIMPLE = "smp"
    FULL = "ful"
    FUNDS = "pof"


@dataclass(frozen=True, repr=False)
class ProofSignature(ByMember):
    """A parsed signature: the witness of a simple one, the transaction of a full one, or the PSBT of a proof
    of funds. It is not verified.
    """

    variant: Variant
    content: tuple[bytes, ...] | Transaction | Psbt

    @classmethod
    def parse(cls, text: str) -> "ProofSignature":
        """Without a prefix it is taken as simple, as the BIP allows. Raises InvalidMessage."""
        if len(text) > MAX_CHARACTERS:
            raise InvalidMessage(f"The signature has more than {MAX_CHARACTERS} characters.")
        prefix = text[:3]
        known = prefix in set(Variant)
        variant = Variant(prefix) if known else Variant.SIMPLE
        raw = _decoded(text[3:] if known else text)
        if not raw:
            raise InvalidMessage("The signature is too short: it is empty.")
        if is_legacy(text):
            raise InvalidMessage(LEGACY, hint="Ask for a signature of BIP-322 instead.")
        try:
            return cls(variant, _content(variant, raw))
        except (WireError, InvalidTransaction, InvalidPsbt, PsbtTooLarge) as error:
            raise InvalidMessage(f"The signature is none of the form {variant}: {error}") from error

    def __str__(self) -> str:
        match self.content:
            case tuple():
                raw = with_count(self.content)
            case Transaction():
                raw = self.content.serialize()
            case Psbt():
                raw = self.content.to_bytes()
        return self.variant + base64.b64encode(raw).decode("ascii")


# The header of a signature of BIP-137, and of the one before it.
_LEGACY_HEADERS = range(27, 43)
_LEGACY_CHARACTERS = 88
LEGACY = "This is a signature of 65 bytes, of the kind before BIP-322 (BIP-137), which is not read here."


def is_legacy(text: str) -> bool:
    """Whether it is 65 bytes in base64, the first of which says how to recover the key."""
    if len(text) != _LEGACY_CHARACTERS:
        return False
    with contextlib.suppress(ValueError):
        raw = base64.b64decode(text, validate=True)
        return len(raw) == 65 and raw[0] in _LEGACY_HEADERS
    return False


def _decoded(text: str) -> bytes:
    try:
        raw = base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError) as error:
        raise InvalidMessage("The signature is not base64 behind one of smp, ful and pof.") from error
    # The last character may have bits that stand for nothing: one signature has one text.
    if base64.b64encode(raw).decode("ascii") != text:
        raise InvalidMessage("The signature is not written as base64 writes it.")
    return raw


def _content(variant: Variant, raw: bytes) -> tuple[bytes, ...] | Transaction | Psbt:
    match variant:
        case Variant.FUNDS:
            return Psbt.parse(raw)
        case Variant.FULL:
            if len(raw) > _MAX_FULL_BYTES:
                raise WireError(f"it has more than {_MAX_FULL_BYTES} bytes")
            return Transaction.parse(raw)
        case Variant.SIMPLE:
            return read_witness_stack(raw)
