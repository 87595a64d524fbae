"""The transactions of a block, read without an object for each part: txid, outpoints spent, output scripts.

A chain follower looks at every transaction and parses only a few in full. This is as strict as
`Transaction.parse`.
"""

from typing import NamedTuple

from multisig.hashes import sha256d
from multisig.transaction import (
    LEAST_INPUT_BYTES,
    LEAST_OUTPUT_BYTES,
    LEAST_TRANSACTION_BYTES,
    SEGWIT_MARKER,
    Transaction,
    reading,
)
from multisig.units import sats
from multisig.wire import Reader, WireError

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
