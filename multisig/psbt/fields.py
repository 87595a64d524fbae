"""The maps of a PSBT: their fields, the lengths of key data and values, the limits, and the parsed values.

The reader checks every count before it uses it. It refuses what two readers could parse differently: a key
given twice, a length not in its shortest form, bytes left over.

Sources: BIP-174 (version 0), BIP-370 (fields of version 2 only), BIP-371 (taproot), BIP-322 (messages). A
field of an unknown type is skipped and not kept (see `multisig.psbt`).
"""

import sys
from collections.abc import Container, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field

from multisig.errors import InvalidPsbt, MultisigError, PsbtTooLarge
from multisig.keys import KeyOrigin
from multisig.shown import ByMember
from multisig.transaction import OutPoint, Transaction, TxOut
from multisig.units import Sats
from multisig.wire import Reader, WireError, with_length

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
    """The size that a PSBT may have, checked before it is parsed."""

    max_bytes: int = MAX_BYTES
    max_inputs: int = MAX_INPUTS
    max_outputs: int = MAX_OUTPUTS
    max_fields_per_map: int = MAX_FIELDS_PER_MAP


@contextmanager
def malformed() -> Iterator[None]:
    """What values raise, as InvalidPsbt; PsbtTooLarge stays."""
    try:
        yield
    except (InvalidPsbt, PsbtTooLarge):
        raise
    except (MultisigError, WireError) as error:
        reason = str(error).removesuffix(".")
        raise InvalidPsbt(f"A value in the PSBT is malformed: {reason}.") from error


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


# Global map.
GLOBAL_UNSIGNED_TX = 0x00
GLOBAL_XPUB = 0x01
GLOBAL_GENERIC_SIGNED_MESSAGE = 0x09
GLOBAL_VERSION = 0xFB

# Input maps.
IN_NON_WITNESS_UTXO = 0x00
IN_WITNESS_UTXO = 0x01
IN_PARTIAL_SIG = 0x02
IN_SIGHASH_TYPE = 0x03
IN_REDEEM_SCRIPT = 0x04
IN_WITNESS_SCRIPT = 0x05
IN_BIP32_DERIVATION = 0x06
IN_FINAL_SCRIPTSIG = 0x07
IN_FINAL_SCRIPTWITNESS = 0x08

# Output maps.
OUT_REDEEM_SCRIPT = 0x00
OUT_WITNESS_SCRIPT = 0x01
OUT_BIP32_DERIVATION = 0x02

Lengths = Container[int]


@dataclass(frozen=True, slots=True)
class FieldRule:
    """The name of a field in the BIP, and the lengths its key data and its value may have."""

    name: str
    key_data: Lengths
    value: Lengths


def _one_of(*allowed: int) -> Lengths:
    return frozenset(allowed)


# How long a PSBT may be as a whole is bounded elsewhere.
_ANY = range(sys.maxsize)
_NOTHING = _one_of(0)
_PUBLIC_KEY = _one_of(33, 65)
_X_ONLY = _one_of(32)
_SCHNORR = _one_of(64, 65)
# A fingerprint and at most 255 steps (BIP-32: depth is one byte), four bytes each.
_ORIGIN = range(4, 4 * 256 + 1, 4)
# BIP-322 recommends "a few kilobytes" at most.
_MESSAGE = range(4096 + 1)
# BIP-341: a leaf version, an internal key, at most 128 hashes.
_CONTROL_BLOCK = range(33, 33 + 32 * 128 + 1, 32)

GLOBAL_FIELDS: Mapping[int, FieldRule] = {
    GLOBAL_UNSIGNED_TX: FieldRule("PSBT_GLOBAL_UNSIGNED_TX", _NOTHING, _ANY),
    GLOBAL_XPUB: FieldRule("PSBT_GLOBAL_XPUB", _one_of(78), _ORIGIN),
    GLOBAL_GENERIC_SIGNED_MESSAGE: FieldRule("PSBT_GLOBAL_GENERIC_SIGNED_MESSAGE", _NOTHING, _MESSAGE),
    GLOBAL_VERSION: FieldRule("PSBT_GLOBAL_VERSION", _NOTHING, _one_of(4)),
}

INPUT_FIELDS: Mapping[int, FieldRule] = {
    IN_NON_WITNESS_UTXO: FieldRule("PSBT_IN_NON_WITNESS_UTXO", _NOTHING, _ANY),
    IN_WITNESS_UTXO: FieldRule("PSBT_IN_WITNESS_UTXO", _NOTHING, _ANY),
    IN_PARTIAL_SIG: FieldRule("PSBT_IN_PARTIAL_SIG", _PUBLIC_KEY, _ANY),
    IN_SIGHASH_TYPE: FieldRule("PSBT_IN_SIGHASH_TYPE", _NOTHING, _one_of(4)),
    IN_REDEEM_SCRIPT: FieldRule("PSBT_IN_REDEEM_SCRIPT", _NOTHING, _ANY),
    IN_WITNESS_SCRIPT: FieldRule("PSBT_IN_WITNESS_SCRIPT", _NOTHING, _ANY),
    IN_BIP32_DERIVATION: FieldRule("PSBT_IN_BIP32_DERIVATION", _PUBLIC_KEY, _ORIGIN),
    IN_FINAL_SCRIPTSIG: FieldRule("PSBT_IN_FINAL_SCRIPTSIG", _NOTHING, _ANY),
    IN_FINAL_SCRIPTWITNESS: FieldRule("PSBT_IN_FINAL_SCRIPTWITNESS", _NOTHING, _ANY),
    0x13: FieldRule("PSBT_IN_TAP_KEY_SIG", _NOTHING, _SCHNORR),
    0x14: FieldRule("PSBT_IN_TAP_SCRIPT_SIG", _one_of(64), _SCHNORR),
    0x15: FieldRule("PSBT_IN_TAP_LEAF_SCRIPT", _CONTROL_BLOCK, _ANY),
    0x16: FieldRule("PSBT_IN_TAP_BIP32_DERIVATION", _X_ONLY, _ANY),
    0x17: FieldRule("PSBT_IN_TAP_INTERNAL_KEY", _NOTHING, _X_ONLY),
    0x18: FieldRule("PSBT_IN_TAP_MERKLE_ROOT", _NOTHING, _one_of(32)),
}

OUTPUT_FIELDS: Mapping[int, FieldRule] = {
    OUT_REDEEM_SCRIPT: FieldRule("PSBT_OUT_REDEEM_SCRIPT", _NOTHING, _ANY),
    OUT_WITNESS_SCRIPT: FieldRule("PSBT_OUT_WITNESS_SCRIPT", _NOTHING, _ANY),
    OUT_BIP32_DERIVATION: FieldRule("PSBT_OUT_BIP32_DERIVATION", _PUBLIC_KEY, _ORIGIN),
    0x05: FieldRule("PSBT_OUT_TAP_INTERNAL_KEY", _NOTHING, _X_ONLY),
    0x06: FieldRule("PSBT_OUT_TAP_TREE", _NOTHING, _ANY),
    0x07: FieldRule("PSBT_OUT_TAP_BIP32_DERIVATION", _X_ONLY, _ANY),
}

# BIP-370: a version 0 PSBT must not carry these. A reader that lets them replace parts of the unsigned
# transaction (embit does) would sign another one.
GLOBAL_V2_ONLY = frozenset({0x02, 0x03, 0x04, 0x05, 0x06})
INPUT_V2_ONLY = frozenset({0x0E, 0x0F, 0x10, 0x11, 0x12})
OUTPUT_V2_ONLY = frozenset({0x03, 0x04})


def check_fields(
    fields: Mapping[bytes, bytes], rules: Mapping[int, FieldRule], v2_only: frozenset[int]
) -> None:
    """Raises InvalidPsbt for a field of a wrong length or of version 2."""
    for key, value in fields.items():
        kind = key[0]
        rule = rules.get(kind)
        if rule is None:
            if kind in v2_only:
                raise InvalidPsbt(f"The PSBT is of version 0 but carries the version 2 field 0x{kind:02x}.")
        elif len(key) - 1 not in rule.key_data:
            raise InvalidPsbt(f"The key of {rule.name} has a wrong length.")
        elif len(value) not in rule.value:
            raise InvalidPsbt(f"The value of {rule.name} has a wrong length.")


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class PsbtInput(ByMember):
    """Claims about one input. Nothing here is proven: `multisig.inspection` says what is.

    Public keys are serialised points of 33 (or, in PSBTs of other programs, 65) bytes; partial signatures
    are DER with the sighash byte at the end.
    """

    outpoint: OutPoint
    sequence: int
    witness_utxo: TxOut | None = None
    non_witness_utxo: Transaction | None = None
    witness_script: bytes | None = None
    redeem_script: bytes | None = None
    derivations: Mapping[bytes, KeyOrigin] = field(default_factory=dict)
    partial_signatures: Mapping[bytes, bytes] = field(default_factory=dict)
    sighash_type: int | None = None
    final_script_sig: bytes | None = None
    final_script_witness: tuple[bytes, ...] | None = None

    @property
    def is_final(self) -> bool:
        return self.final_script_sig is not None or self.final_script_witness is not None


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class PsbtOutput(ByMember):
    """Amount and script of one output of the unsigned transaction, and what is claimed about it."""

    amount: Sats
    script_pubkey: bytes
    witness_script: bytes | None = None
    redeem_script: bytes | None = None
    derivations: Mapping[bytes, KeyOrigin] = field(default_factory=dict)
