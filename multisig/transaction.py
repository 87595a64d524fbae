"""Transactions: strict parsing, serialisation, ids, sizes, and the segwit v0 signature hash; and those of a
block, read without an object for each part.

Sources: BIP-141 and BIP-144 (format, weight), BIP-143 (signature hash).
"""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from functools import cached_property
from typing import NamedTuple, Self

from multisig.errors import InvalidAmount, InvalidTransaction
from multisig.hashes import sha256d
from multisig.shown import AsWritten, ByMember
from multisig.units import Sats, sats
from multisig.wire import Reader, WireError, compact_size, with_count, with_length

# Consensus: a block weighs at most four million units, and a byte of a transaction at least one.
MAX_TRANSACTION_BYTES = 4_000_000
MAX_UINT32 = 0xFFFF_FFFF
# Consensus, IsFinalTx: below it nLockTime is a height, from it on a Unix time.
LOCKTIME_THRESHOLD = 500_000_000
SEQUENCE_FINAL = 0xFFFF_FFFF
TRUC_VERSION = 3
# For people, of the versions that have a name; and what follows from it.
VERSION_NAMES = {TRUC_VERSION: "version 3 (TRUC, BIP-431)"}
VERSION_RULES = {TRUC_VERSION: "a transaction that spends from it unconfirmed has 1,000 vB at most"}

SIGHASH_ALL = 0x01
SIGHASH_NONE = 0x02
SIGHASH_SINGLE = 0x03
SIGHASH_ANYONECANPAY = 0x80

LEAST_INPUT_BYTES = 41
LEAST_OUTPUT_BYTES = 9
# Version, the two counts, an input and locktime.
LEAST_TRANSACTION_BYTES = 10 + LEAST_INPUT_BYTES
SEGWIT_MARKER = b"\x00\x01"
_TXID = re.compile(r"[0-9a-f]{64}", re.ASCII)
_ZEROS = bytes(32)


@dataclass(frozen=True, order=True, repr=False)
class OutPoint(AsWritten):
    """An output of a transaction: its txid in display order (reversed), lower-case hex, and its place."""

    txid: str
    vout: int

    def __post_init__(self) -> None:
        if not _TXID.fullmatch(self.txid):
            raise InvalidTransaction("A transaction id has 64 lower-case hexadecimal digits.")
        _require_uint32(self.vout, "place of an output")

    def serialize(self) -> bytes:
        return bytes.fromhex(self.txid)[::-1] + self.vout.to_bytes(4, "little")

    def __str__(self) -> str:
        return f"{self.txid}:{self.vout}"


@dataclass(frozen=True, repr=False)
class TxIn(ByMember):
    """An input; `witness` is empty where there is none."""

    outpoint: OutPoint
    sequence: int
    script_sig: bytes = b""
    witness: tuple[bytes, ...] = ()

    def __post_init__(self) -> None:
        _require_uint32(self.sequence, "sequence")


@dataclass(frozen=True, repr=False)
class TxOut(ByMember):
    """An output. Raises InvalidAmount."""

    amount: Sats
    script_pubkey: bytes

    def __post_init__(self) -> None:
        sats(self.amount)

    def serialize(self) -> bytes:
        return self.amount.to_bytes(8, "little") + with_length(self.script_pubkey)


@dataclass(frozen=True, repr=False)
class Transaction(ByMember):
    """A transaction, signed or not; `version`, `locktime` and sequences are unsigned 32-bit numbers."""

    version: int
    inputs: tuple[TxIn, ...]
    outputs: tuple[TxOut, ...]
    locktime: int

    def __post_init__(self) -> None:
        _require_uint32(self.version, "version")
        _require_uint32(self.locktime, "locktime")

    @classmethod
    def parse(cls, data: bytes, *, witness: bool = True) -> Self:
        """From exactly these bytes.

        With `witness=False` they are read in the form without witnesses, as the unsigned transaction of a
        PSBT is (BIP-174), which alone may have no inputs. Raises InvalidTransaction.
        """
        if len(data) > MAX_TRANSACTION_BYTES:
            raise InvalidTransaction("The transaction is larger than a block.")
        with reading(data, "a transaction") as reader:
            return cls._read(reader, witness=witness)

    @classmethod
    def _read(cls, reader: Reader, *, witness: bool) -> Self:
        version = reader.uint(4)
        segwit = witness and reader.peek(2) == SEGWIT_MARKER
        if segwit:
            reader.take(2)
        inputs = [_read_input(reader) for _ in range(reader.count(LEAST_INPUT_BYTES))]
        if witness and not inputs:
            raise WireError("it has no inputs")
        outputs = tuple(_read_output(reader) for _ in range(reader.count(LEAST_OUTPUT_BYTES)))
        if segwit:
            inputs = _read_witnesses(reader, inputs)
        return cls(version, tuple(inputs), outputs, reader.uint(4))

    @property
    def locktime_holds(self) -> bool:
        """Whether nLockTime has an effect: not if it is 0, or every input is final (consensus, IsFinalTx)."""
        return self.locktime != 0 and any(item.sequence != SEQUENCE_FINAL for item in self.inputs)

    def serialize(self, *, include_witness: bool = True) -> bytes:
        """The bytes on the wire; without witnesses those that the txid is the hash of."""
        return self._whole if include_witness and self.has_witness else self._stripped

    # Cached: encoding a PSBT, ids and sizes use the same bytes.
    @cached_property
    def _whole(self) -> bytes:
        version, middle, locktime = self._stripped[:4], self._stripped[4:-4], self._stripped[-4:]
        witnesses = [with_count(txin.witness) for txin in self.inputs]
        return b"".join((version, SEGWIT_MARKER, middle, *witnesses, locktime))

    @cached_property
    def _stripped(self) -> bytes:
        return b"".join((
            self.version.to_bytes(4, "little"),
            compact_size(len(self.inputs)),
            *[_serialize_input(txin) for txin in self.inputs],
            compact_size(len(self.outputs)),
            *[out.serialize() for out in self.outputs],
            self.locktime.to_bytes(4, "little"),
        ))  # fmt: skip

    @property
    def has_witness(self) -> bool:
        return any(txin.witness for txin in self.inputs)

    @cached_property
    def txid(self) -> str:
        """In display order; it does not change when the transaction is signed, as long as all inputs are
        segwit.
        """
        return sha256d(self.serialize(include_witness=False))[::-1].hex()

    @cached_property
    def wtxid(self) -> str:
        """In display order; it covers the witnesses (BIP-141)."""
        return sha256d(self.serialize())[::-1].hex()

    @cached_property
    def weight(self) -> int:
        """Weight units: three times the size without witnesses plus the size with them (BIP-141)."""
        return 3 * len(self.serialize(include_witness=False)) + len(self.serialize())

    @property
    def vsize(self) -> int:
        """Virtual bytes: a quarter of the weight, rounded up."""
        return -(-self.weight // 4)


def _require_uint32(number: int, what: str) -> None:
    if type(number) is not int or not 0 <= number <= MAX_UINT32:
        raise InvalidTransaction(f"The {what} is not a number of 32 bits.")


@contextmanager
def reading(data: bytes, what: str) -> Iterator[Reader]:
    """A reader whose bytes must all be read in the block. Raises InvalidTransaction for malformed ones."""
    reader = Reader(data)
    try:
        yield reader
        reader.finish()
    except (WireError, InvalidAmount) as error:
        raise InvalidTransaction(f"This is not {what}: {error}.") from error


def _read_input(reader: Reader) -> TxIn:
    txid, vout = reader.take(32)[::-1].hex(), reader.uint(4)
    script_sig = reader.sized()
    return TxIn(OutPoint(txid, vout), reader.uint(4), script_sig)


def _read_output(reader: Reader) -> TxOut:
    amount = reader.uint(8)
    return TxOut(sats(amount), reader.sized())


def _read_witnesses(reader: Reader, inputs: list[TxIn]) -> list[TxIn]:
    signed = [TxIn(txin.outpoint, txin.sequence, txin.script_sig, _read_witness(reader)) for txin in inputs]
    if not any(txin.witness for txin in signed):
        # BIP-144 has one form for each transaction: without the marker where no input has a witness.
        raise WireError("it announces witnesses and has none")
    return signed


def _read_witness(reader: Reader) -> tuple[bytes, ...]:
    return tuple(reader.sized() for _ in range(reader.count(1)))


def _serialize_input(txin: TxIn) -> bytes:
    return txin.outpoint.serialize() + with_length(txin.script_sig) + txin.sequence.to_bytes(4, "little")


@dataclass(frozen=True)
class SighashCache:
    """Signature hashes of one transaction. The parts that all inputs share are hashed once: the cost is
    linear in the inputs (BIP-143).
    """

    transaction: Transaction

    def segwit_v0(
        self, input_index: int, script_code: bytes, amount: Sats, sighash_type: int = SIGHASH_ALL
    ) -> bytes:
        """The 32-byte digest that a key signs.

        `script_code` is the witness script (P2WSH), or the P2PKH script of the key (P2WPKH), without its
        length; `amount` that of the output spent. Raises InvalidTransaction.
        """
        if not 0 <= input_index < len(self.transaction.inputs):
            raise InvalidTransaction(f"There is no input {input_index}.")
        anyone = bool(sighash_type & SIGHASH_ANYONECANPAY)
        base = sighash_type & 0x1F
        txin = self.transaction.inputs[input_index]
        all_outputs = base not in {SIGHASH_NONE, SIGHASH_SINGLE}
        return sha256d(
            b"".join(
                (
                    self.transaction.version.to_bytes(4, "little"),
                    _ZEROS if anyone else self._prevouts,
                    self._sequences if all_outputs and not anyone else _ZEROS,
                    txin.outpoint.serialize(),
                    with_length(script_code),
                    sats(amount).to_bytes(8, "little"),
                    txin.sequence.to_bytes(4, "little"),
                    self._outputs if all_outputs else self._single(base, input_index),
                    self.transaction.locktime.to_bytes(4, "little"),
                    sighash_type.to_bytes(4, "little"),
                )
            )
        )

    def _single(self, base: int, input_index: int) -> bytes:
        outputs = self.transaction.outputs
        if base == SIGHASH_SINGLE and input_index < len(outputs):
            return sha256d(outputs[input_index].serialize())
        return _ZEROS

    @cached_property
    def _prevouts(self) -> bytes:
        return sha256d(b"".join(txin.outpoint.serialize() for txin in self.transaction.inputs))

    @cached_property
    def _sequences(self) -> bytes:
        return sha256d(b"".join(txin.sequence.to_bytes(4, "little") for txin in self.transaction.inputs))

    @cached_property
    def _outputs(self) -> bytes:
        return sha256d(b"".join(out.serialize() for out in self.transaction.outputs))


_DISABLED = 1 << 31
_IN_TIME = 1 << 22
_VALUE = 0xFFFF
# Versions are unsigned here: the rule counts from 2 on.
_FIRST_VERSION = 2
UNIT = timedelta(seconds=512)


@dataclass(frozen=True, slots=True)
class RelativeLock:
    """A number of blocks on top of the coin's own, or of units of 512 seconds after it; the other is 0."""

    blocks: int = 0
    units: int = 0

    @property
    def time(self) -> timedelta:
        return self.units * UNIT

    def __str__(self) -> str:
        if self.blocks:
            return f"{self.blocks:,} blocks" if self.blocks > 1 else "1 block"
        hours = self.time.total_seconds() / 3600
        return f"{hours:,.1f} hours ({self.units:,} units of 512 s)"


def relative_lock(sequence: int, version: int) -> RelativeLock | None:
    """The relative lock of an input's sequence (BIP-68); None where it has none."""
    value = sequence & _VALUE
    if version < _FIRST_VERSION or sequence & _DISABLED or not value:
        return None
    return RelativeLock(units=value) if sequence & _IN_TIME else RelativeLock(blocks=value)


_OUTPOINT_BYTES = 36


class RawTransaction(NamedTuple):
    """`hash`: the txid in wire order, 32 bytes. `spent`: for each input the outpoint as
    `OutPoint.serialize` gives it. `scripts`: the outputs' scripts. Both in the transaction's order.
    """

    raw: bytes
    hash: bytes
    spent: tuple[bytes, ...]
    scripts: tuple[bytes, ...]

    @property
    def txid(self) -> str:
        """In display order."""
        return self.hash[::-1].hex()

    def parse(self) -> Transaction:
        return Transaction.parse(self.raw)


def read_transactions(data: bytes) -> tuple[RawTransaction, ...]:
    """The transactions of a block. `data` is what follows the header: a count, then each transaction. Raises
    InvalidTransaction.
    """
    with reading(data, "a list of transactions") as reader:
        number = reader.count(LEAST_TRANSACTION_BYTES)
        return tuple(_read(reader, data) for _ in range(number))


def _read(reader: Reader, data: bytes) -> RawTransaction:
    start = reader.offset
    version = reader.take(4)
    is_segwit = reader.peek(2) == SEGWIT_MARKER
    if is_segwit:
        reader.take(2)
    body = reader.offset
    spent = tuple(_read_spent(reader) for _ in range(reader.count(LEAST_INPUT_BYTES)))
    if not spent:
        raise WireError("it has no inputs")
    scripts = tuple(_read_script(reader) for _ in range(reader.count(LEAST_OUTPUT_BYTES)))
    end = reader.offset
    if is_segwit:
        _skip_witnesses(reader, len(spent))
    # BIP-141: the txid leaves marker and witnesses out.
    stripped = version + data[body:end] + reader.take(4)
    return RawTransaction(data[start : reader.offset], sha256d(stripped), spent, scripts)


def _read_spent(reader: Reader) -> bytes:
    outpoint = reader.take(_OUTPOINT_BYTES)
    reader.sized()
    reader.take(4)
    return outpoint


def _read_script(reader: Reader) -> bytes:
    sats(reader.uint(8))
    return reader.sized()


def _skip_witnesses(reader: Reader, inputs: int) -> None:
    items = 0
    for _ in range(inputs):
        number = reader.count(1)
        for _ in range(number):
            reader.sized()
        items += number
    if not items:
        raise WireError("it announces witnesses and has none")
