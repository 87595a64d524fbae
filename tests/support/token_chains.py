"""Chains of token transactions without a node: a backend for the indexer, and reorganisations."""

import hashlib
from dataclasses import dataclass, field, replace
from types import SimpleNamespace

from custody.server.chain.backend import BlockRef, DataBlock, DataTransaction
from custody.server.tokens.indexer import token_block
from multisig.errors import InvalidToken
from multisig.network import Network
from multisig.tokens import Deploy, decode_payload, parse_bytecode
from multisig.tokens.machine import GENESIS_STATE, TokenCells, TokenTransaction, judge_block
from multisig.transaction import TxOut
from multisig.units import Sats
from tests.multisig.tokens.machine.histories import KNOWN, Story, Tape

CODES = {bytes.fromhex(name): parse_bytecode(blob) for name, blob in KNOWN.items()}
# One deployment in four, and every one of unknown bytecode, is a stranger's: no workspace here proposed it.
STRANGERS = tuple("048c")


def pushed(data: bytes) -> TxOut:
    length = bytes((len(data),)) if len(data) < 76 else bytes((76, len(data)))
    return TxOut(Sats(0), b"\x6a" + length + data)


def block_of(height: int, block_hash: bytes, previous: str, transactions) -> DataBlock:
    """``transactions``: txid, caller in hex, data; data is None for a transaction with two data outputs."""
    found = []
    for position, (txid, caller, data) in enumerate(transactions):
        outputs = (pushed(b"CPT"), pushed(b"CPT")) if data is None else (pushed(data),)
        transaction = SimpleNamespace(txid=txid, outputs=outputs)
        found.append(DataTransaction(position, transaction, bytes.fromhex(caller)))
    return DataBlock(BlockRef(height, block_hash.hex(), 1_700_000_000 + height), previous, tuple(found))


def is_ours(transaction: TokenTransaction) -> bool | None:
    """None where the transaction deploys nothing."""
    try:
        payload = decode_payload(transaction.data or b"")
    except InvalidToken:
        return None
    if not isinstance(payload, Deploy):
        return None
    return payload.bytecode_hash in CODES and not transaction.txid.startswith(STRANGERS)


@dataclass
class Chain:
    """A backend of the given blocks, the first at height 1. ``told``: how many blocks were read."""

    blocks: list[DataBlock] = field(default_factory=list)
    told: int = 0
    network: Network = Network.REGTEST

    def tip(self) -> BlockRef:
        return self.blocks[-1].ref

    def block_at(self, height: int) -> BlockRef | None:
        return self.blocks[height - 1].ref if 1 <= height <= len(self.blocks) else None

    def data_at(self, height: int, _prefix: bytes) -> DataBlock | None:
        self.told += 1
        return self.blocks[height - 1] if 1 <= height <= len(self.blocks) else None

    def proposed(self, _db, _chain, txids) -> set[str]:
        """The proposed deployments, for an indexer."""
        return set(txids) & {
            each.txid for block in self.blocks for each in token_block(block).transactions if is_ours(each)
        }

    def replayed(self) -> tuple[dict, list[bytes]]:
        """Every cell, and the state hash after each block, replayed without the deployments of strangers."""
        state, hashes = TokenCells(), [GENESIS_STATE]
        for block in map(token_block, self.blocks):
            kept = tuple(each for each in block.transactions if is_ours(each) is not False)
            done = judge_block(replace(block, transactions=kept), state, CODES.get, hashes[-1])
            state.apply(done.effects)
            hashes.append(done.state)
        return state.cells, hashes[1:]


@dataclass
class Turning:
    """A chain that grows and reorganises, driven by a string of bytes."""

    tape: Tape
    chain: Chain = field(default_factory=Chain)
    stories: list[Story] = field(default_factory=list)
    branches: int = 0

    def grow(self, count: int) -> None:
        """A block follows from those below it, so that a branch continues where it forked."""
        for _ in range(count):
            before = self.stories[-1] if self.stories else Story(self.tape)
            story = Story(self.tape, str(self.branches), before.state, before.tip, before.written)
            height, block_hash, transactions = story.block()
            previous = self.chain.blocks[-1].ref.hash if self.chain.blocks else "00" * 32
            # The name depends on the branch and on the parent.
            block_hash = hashlib.sha256(block_hash + bytes.fromhex(previous)).digest()
            self.chain.blocks.append(block_of(height, block_hash, previous, transactions))
            self.stories.append(story)

    def turn(self, depth: int) -> None:
        """Replaces the last blocks by one more."""
        depth = min(depth, len(self.chain.blocks))
        if depth:
            del self.chain.blocks[-depth:], self.stories[-depth:]
        self.branches += 1
        self.grow(depth + 1)
