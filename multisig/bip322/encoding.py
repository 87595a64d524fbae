"""The text of a signature: a prefix of three letters, and base64 (BIP-322, "Types of Signatures")."""

import base64
import binascii
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from multisig.errors import InvalidMessage, InvalidPsbt, InvalidTransaction, PsbtTooLarge
from multisig.psbt import Psbt
from multisig.psbt.fields import MAX_BYTES, MAX_WITNESS_ITEMS
from multisig.shown import ByMember
from multisig.transaction import Transaction
from multisig.wire import Reader, WireError, compact_size, with_length

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
        try:
            return cls(variant, _content(variant, raw))
        except (WireError, InvalidTransaction, InvalidPsbt, PsbtTooLarge) as error:
            raise InvalidMessage(f"The signature is none of the form {variant}: {error}") from error

    def __str__(self) -> str:
        match self.content:
            case tuple():
                items = [with_length(item) for item in self.content]
                raw = compact_size(len(items)) + b"".join(items)
            case Transaction():
                raw = self.content.serialize()
            case Psbt():
                raw = self.content.to_bytes()
        return self.variant + base64.b64encode(raw).decode("ascii")


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
            reader = Reader(raw)
            count = reader.count(1)
            if count > MAX_WITNESS_ITEMS:
                raise WireError(f"it has more than {MAX_WITNESS_ITEMS} items")
            stack = tuple(reader.sized() for _ in range(count))
            reader.finish()
            return stack
