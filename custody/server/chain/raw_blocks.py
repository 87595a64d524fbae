"""A raw block, believed only as far as it hangs together: its hash, and that its header commits to what it carries."""

import struct
from dataclasses import dataclass

from custody.server.chain.embedded.mining import header_time
from custody.server.chain.engine import HEADER_BYTES, MAX_BLOCK_BYTES, InvalidBlock, block_hash, split_block
from custody.server.chain.merkle import unmistakable_root
from custody.server.domain.errors import ChainUnavailable
from multisig.errors import InvalidTransaction
from multisig.transaction import Transaction


@dataclass(frozen=True)
class Block:
    """Hashes in display order; the coinbase comes first."""

    hash: str
    previous: str
    time: int
    transactions: tuple[Transaction, ...]


def read_block(raw: bytes, expected: str) -> Block:
    """The block with that hash. Raises ChainUnavailable where these bytes are not it."""
    if not HEADER_BYTES < len(raw) <= MAX_BLOCK_BYTES or block_hash(raw)[::-1].hex() != expected:
        raise ChainUnavailable(f"The chain gives other bytes than those of block {expected}.")
    previous, root = struct.unpack_from("<4x32s32s", raw)
    try:
        transactions = split_block(raw)
    except (InvalidBlock, InvalidTransaction) as error:
        raise ChainUnavailable(f"Block {expected} cannot be read.") from error
    if not transactions or _root_of(transactions) != root:
        raise ChainUnavailable(f"Block {expected} does not carry what its header commits to.")
    return Block(expected, previous[::-1].hex(), header_time(raw), transactions)


def _root_of(transactions: tuple[Transaction, ...]) -> bytes | None:
    return unmistakable_root([bytes.fromhex(transaction.txid)[::-1] for transaction in transactions])
