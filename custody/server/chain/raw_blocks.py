"""Parsing of raw blocks, with a check of the hash and the merkle root; transactions that carry data; genesis
hashes.
"""

import struct
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Self

from custody.server.chain.backend import BlockRef, DataBlock, DataTransaction, FoundOutput
from custody.server.chain.engine import HEADER_BYTES, MAX_BLOCK_BYTES
from custody.server.errors import ChainUnavailable
from multisig.errors import InvalidTransaction
from multisig.hashes import sha256d
from multisig.network import Network
from multisig.script import parse_op_return
from multisig.transaction import OutPoint, RawTransaction, TxOut, read_transactions


def merkle_root(hashes: Sequence[bytes]) -> bytes:
    """The last hash of an odd number is paired with itself."""
    *_, top = _levels(hashes)
    return top[0]


def unmistakable_root(hashes: Sequence[bytes]) -> bytes | None:
    """The root; None where another list has the same root, because this one repeats its end (CVE-2012-2459):
    neighbours are then equal before the padding. Bitcoin Core calls it a mutated block.
    """
    top = b""
    for level in _levels(hashes):
        if any(left == right for left, right in zip(level[::2], level[1::2], strict=False)):
            return None
        top = level[0]
    return top


def _levels(hashes: Sequence[bytes]) -> Iterator[list[bytes]]:
    """From the leaves to the root, each before it is padded."""
    level = list(hashes)
    yield level
    while len(level) > 1:
        padded = level + level[-1:] * (len(level) % 2)
        level = [sha256d(left + right) for left, right in zip(padded[::2], padded[1::2], strict=True)]
        yield level


@dataclass(frozen=True)
class BlockHeader:
    """A block's header: hashes in display order, the root as on the wire, the time in Unix seconds."""

    hash: str
    previous: str
    merkle_root: bytes
    time: int
    bits: int

    @classmethod
    def parse(cls, raw: bytes) -> Self:
        """From the beginning of a block, its 80 bytes."""
        raw = raw[:HEADER_BYTES]
        _, previous, root, time, bits, _ = struct.unpack("<I32s32sIII", raw)
        return cls(sha256d(raw)[::-1].hex(), previous[::-1].hex(), root, time, bits)

    @property
    def target(self) -> int:
        """What the hash must not exceed; 0 where the compact form is none (negative, or too large)."""
        exponent, mantissa = self.bits >> 24, self.bits & 0x7FFFFF
        if self.bits & 0x800000 or exponent > 32:
            return 0
        return mantissa << 8 * (exponent - 3) if exponent >= 3 else mantissa >> 8 * (3 - exponent)


# The outputs at these outpoints, in their order.
FindOutputs = Callable[[Sequence[OutPoint]], Sequence[TxOut | FoundOutput]]


@dataclass(frozen=True)
class RawBlock:
    """The coinbase comes first."""

    header: BlockHeader
    transactions: tuple[RawTransaction, ...]

    def data_at(self, height: int, prefix: bytes, outputs: FindOutputs) -> DataBlock:
        """As the block at that height. The coinbase is left out: it spends no output, so it has no caller."""
        carriers = [
            (position, raw.parse())
            for position, raw in enumerate(self.transactions)
            if position and any((parse_op_return(each) or b"").startswith(prefix) for each in raw.scripts)
        ]
        callers = outputs([transaction.inputs[0].outpoint for _, transaction in carriers])
        return DataBlock(
            BlockRef(height, self.header.hash, self.header.time),
            self.header.previous,
            tuple(
                DataTransaction(position, transaction, caller.script_pubkey)
                for (position, transaction), caller in zip(carriers, callers, strict=True)
            ),
        )


def read_block(raw: bytes, expected: str) -> RawBlock:
    """The block with that hash. Raises ChainUnavailable where these bytes are not it."""
    header = BlockHeader.parse(raw) if HEADER_BYTES < len(raw) <= MAX_BLOCK_BYTES else None
    if header is None or header.hash != expected:
        raise ChainUnavailable(f"The bytes that came are not those of block {expected}.")
    try:
        transactions = read_transactions(raw[HEADER_BYTES:])
    except InvalidTransaction as error:
        raise ChainUnavailable(f"Block {expected} cannot be read.") from error
    if not transactions or unmistakable_root([each.hash for each in transactions]) != header.merkle_root:
        raise ChainUnavailable(f"Block {expected} does not carry what its header commits to.")
    return RawBlock(header, transactions)


# Bitcoin Core, kernel/chainparams.cpp; testnet4 also in BIP-94. Every signet has the same one, whatever its
# challenge.
GENESIS_HASH = {
    Network.MAINNET: "000000000019d6689c085ae165831e934ff763ae46a2a6c172b3f1b60a8ce26f",
    Network.TESTNET4: "00000000da84f2bafbbc53dee25a72ae507ff4914b867c565be350b0da8bf043",
    Network.SIGNET: "00000008819873e925422c1ff0f99f7cc9bbb232af63a077a480a3633bee1ef6",
    Network.REGTEST: "0f9188f13cb7b2c71f2a335e3a4fc328bf5beb436012afca590b1a11466e2206",
}
