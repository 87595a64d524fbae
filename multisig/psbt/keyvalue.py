"""The outer form of a PSBT: magic, then maps of key-value pairs (BIP-174, "Specification").

This reader only slices bytes. It bounds every count before it keeps anything, and refuses what two readers
could understand differently: a key given twice, a length not in its shortest form, bytes left over.
"""

from dataclasses import dataclass

from multisig.errors import InvalidPsbt, PsbtTooLarge
from multisig.wire import Reader, with_length

MAGIC = b"psbt\xff"
SEPARATOR = b"\x00"

# Coldcard Mk4 takes 2 MiB (its MAX_TXN_LEN), the largest of the makers we drive.
MAX_BYTES = 2 * 1024 * 1024
# A standard transaction weighs at most 400,000 (Bitcoin Core, MAX_STANDARD_TX_WEIGHT): room for about
# 950 inputs of a 2-of-3 vault or 3,200 outputs of 31 bytes.
MAX_INPUTS = 1_000
MAX_OUTPUTS = 3_200
# Fifteen cosigners fill an input with 15 origins, 15 signatures and half a dozen single fields.
MAX_FIELDS_PER_MAP = 100

# Bitcoin Core passes on no P2WSH spend with more items (MAX_STANDARD_P2WSH_STACK_ITEMS) beside its script.
MAX_WITNESS_ITEMS = 101


@dataclass(frozen=True, slots=True)
class PsbtLimits:
    """How large a PSBT may be before anything in it is looked at."""

    max_bytes: int = MAX_BYTES
    max_inputs: int = MAX_INPUTS
    max_outputs: int = MAX_OUTPUTS
    max_fields_per_map: int = MAX_FIELDS_PER_MAP


def read_map(reader: Reader, max_fields: int) -> dict[bytes, bytes]:
    """The fields up to and with the next separator, by key.

    Raises InvalidPsbt for a key given twice, PsbtTooLarge for too many fields, WireError for truncated ones.
    """
    fields: dict[bytes, bytes] = {}
    while key := reader.sized():
        if key in fields:
            raise InvalidPsbt(f"The PSBT gives the key {_shown(key)} twice in one map.")
        if len(fields) == max_fields:
            raise PsbtTooLarge(f"A map of the PSBT has more than {max_fields} fields.")
        fields[key] = reader.sized()
    return fields


def _shown(key: bytes) -> str:
    return key[:8].hex() + ("…" if len(key) > 8 else "")


def write_field(kind: int, key_data: bytes, value: bytes) -> bytes:
    return with_length(bytes((kind,)) + key_data) + with_length(value)
