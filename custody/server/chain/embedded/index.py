"""The raw blocks and the mempool on disk, and the index of coins and transactions that is derived from them.

What is on disk survives a kill and is replayed into the engine at the next start. The index is in memory and
is undone block by block.
"""

import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median_high

from custody.server.chain import backend
from custody.server.errors import ChainUnavailable
from multisig.transaction import OutPoint, Transaction

SCHEMA = """
CREATE TABLE IF NOT EXISTS block (
    position INTEGER PRIMARY KEY,
    hash BLOB NOT NULL UNIQUE,
    raw BLOB NOT NULL
) STRICT;
CREATE TABLE IF NOT EXISTS mempool (
    position INTEGER PRIMARY KEY,
    raw BLOB NOT NULL
) STRICT;
"""


class BlockStore:
    """One SQLite file, open in one program at a time; the caller serialises its calls."""

    def __init__(self, path: Path) -> None:
        try:
            self._db = sqlite3.connect(path, timeout=1, isolation_level=None, check_same_thread=False)
            try:
                self._lock()
            except BaseException:
                self._db.close()
                raise
        except sqlite3.OperationalError as error:
            raise ChainUnavailable(
                f"The embedded chain in {path.parent} cannot be opened: {error}."
            ) from error

    def _lock(self) -> None:
        self._db.execute("PRAGMA locking_mode = EXCLUSIVE")
        self._db.execute("PRAGMA journal_mode = WAL")
        # A block that was announced must be there after a power cut.
        self._db.execute("PRAGMA synchronous = FULL")
        self._db.executescript(SCHEMA)
        self._db.execute("BEGIN EXCLUSIVE")
        self._db.execute("COMMIT")

    def close(self) -> None:
        self._db.close()

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """All of it or nothing, on disk when the block ends."""
        with self._db:
            self._db.execute("BEGIN IMMEDIATE")
            yield

    def add(self, block_hash: bytes, raw: bytes) -> None:
        """Append a block; its parent was appended before it."""
        self._db.execute("INSERT INTO block (hash, raw) VALUES (?, ?)", (block_hash, raw))

    def raw(self, block_hash: bytes) -> bytes:
        """A stored block by its hash in wire order."""
        row = self._db.execute("SELECT raw FROM block WHERE hash = ?", (block_hash,)).fetchone()
        if row is None:
            raise ChainUnavailable(f"The embedded chain's store lacks the block {block_hash[::-1].hex()}.")
        return bytes(row[0])

    def count(self) -> int:
        """How many blocks were ever stored, those of lost branches included."""
        return int(self._db.execute("SELECT count(*) FROM block").fetchone()[0])

    def blocks(self) -> Iterator[bytes]:
        """Every stored block, parents first."""
        for (raw,) in self._db.execute("SELECT raw FROM block ORDER BY position"):
            yield bytes(raw)

    def mempool(self) -> list[bytes]:
        """The waiting transactions, parents first."""
        return [bytes(raw) for (raw,) in self._db.execute("SELECT raw FROM mempool ORDER BY position")]

    def replace_mempool(self, transactions: Sequence[bytes]) -> None:
        """Store the mempool as it is now."""
        self._db.execute("DELETE FROM mempool")
        self._db.executemany("INSERT INTO mempool (raw) VALUES (?)", [(raw,) for raw in transactions])

    def append_to_mempool(self, raw: bytes) -> None:
        """Store one more waiting transaction."""
        self._db.execute("INSERT INTO mempool (raw) VALUES (?)", (raw,))


# Consensus.
COINBASE_MATURITY = 100


@dataclass(frozen=True)
class _Block:
    ref: backend.BlockRef
    transactions: tuple[Transaction, ...]


class CoinIndex:
    """Spent coins stay in it, so that a reorganisation only undoes its own marks."""

    def __init__(self) -> None:
        self._blocks: list[_Block] = []
        self._coins: dict[OutPoint, backend.FoundOutput] = {}
        self._by_script: dict[bytes, dict[OutPoint, None]] = {}
        self._spent: dict[OutPoint, backend.SpendingTransaction] = {}
        self._transactions: dict[str, backend.ChainTransaction] = {}

    @property
    def tip(self) -> backend.BlockRef:
        return self._blocks[-1].ref

    def block_at(self, height: int) -> backend.BlockRef | None:
        return self._blocks[height].ref if 0 <= height < len(self._blocks) else None

    def median_time(self, height: int) -> int:
        """The median time past that the block after `height` must exceed."""
        first = max(0, height + 1 - backend.MEDIAN_TIME_SPAN)
        return median_high(block.ref.time for block in self._blocks[first : height + 1])

    def connect(self, ref: backend.BlockRef, transactions: tuple[Transaction, ...]) -> None:
        """Add the block that follows the tip. The genesis block's coin cannot be spent and is left out."""
        self._blocks.append(_Block(ref, transactions))
        if ref.height == 0:
            return
        for position, transaction in enumerate(transactions):
            self._transactions[transaction.txid] = backend.ChainTransaction(transaction, ref)
            for txin in transaction.inputs if position else ():
                self._spent[txin.outpoint] = backend.SpendingTransaction(transaction.txid, ref)
            for coin in backend.outputs_of(transaction, ref, coinbase=position == 0):
                self._coins[coin.outpoint] = coin
                self._by_script.setdefault(coin.script_pubkey, {})[coin.outpoint] = None

    def disconnect_tip(self) -> tuple[Transaction, ...]:
        """Disconnect the tip; returns its transactions without the coinbase, which is deleted."""
        block = self._blocks.pop()
        for transaction in reversed(block.transactions):
            del self._transactions[transaction.txid]
            for coin in backend.outputs_of(transaction, block.ref):
                del self._coins[coin.outpoint]
                del self._by_script[coin.script_pubkey][coin.outpoint]
            for txin in transaction.inputs:
                self._spent.pop(txin.outpoint, None)
        return block.transactions[1:]

    def coin(self, outpoint: OutPoint) -> backend.FoundOutput | None:
        """As unspent: `spender` says whether it is."""
        return self._coins.get(outpoint)

    def coins(self, outpoints: Iterable[OutPoint]) -> list[backend.FoundOutput]:
        return [self._coins[each] for each in outpoints]

    def coins_of(self, script: bytes) -> Iterator[backend.FoundOutput]:
        """Every coin that pays the script, oldest first, spent or not, as unspent."""
        return (self._coins[outpoint] for outpoint in self._by_script.get(script, ()))

    def is_mature(self, coin: backend.FoundOutput) -> bool:
        """Whether the next block may spend it."""
        assert coin.block is not None, "it is in the index of blocks"
        return not coin.coinbase or self.tip.height + 1 - coin.block.height >= COINBASE_MATURITY

    def spender(self, outpoint: OutPoint) -> backend.SpendingTransaction | None:
        return self._spent.get(outpoint)

    def transaction(self, txid: str) -> backend.ChainTransaction | None:
        return self._transactions.get(txid)
