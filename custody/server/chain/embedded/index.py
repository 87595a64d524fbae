"""The index of coins and transactions of the best chain: derived from the blocks, in memory, undone block by
block.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from custody.server.chain.backend import BlockRef, ChainTransaction, DataBlock, DataTransaction, Spend
from custody.server.chain.raw_blocks import carriers
from multisig.transaction import OutPoint, Transaction, TxOut

# BIP-113: the median of this many past block times.
MEDIAN_TIME_SPAN = 11
# What the genesis block names as its parent.
NO_BLOCK = "00" * 32


@dataclass(frozen=True)
class IndexedCoin:
    """An output on the best chain, spent or not."""

    outpoint: OutPoint
    output: TxOut
    block: BlockRef
    coinbase: bool


@dataclass(frozen=True)
class _Block:
    ref: BlockRef
    transactions: tuple[Transaction, ...]


class CoinIndex:
    """Nothing is forgotten when it is spent, so that a reorganisation only takes its own marks back."""

    def __init__(self) -> None:
        self._blocks: list[_Block] = []
        self._coins: dict[OutPoint, IndexedCoin] = {}
        self._by_script: dict[bytes, dict[OutPoint, None]] = {}
        self._spent: dict[OutPoint, Spend] = {}
        self._transactions: dict[str, ChainTransaction] = {}

    @property
    def tip(self) -> BlockRef:
        return self._blocks[-1].ref

    def block_at(self, height: int) -> BlockRef | None:
        return self._blocks[height].ref if 0 <= height < len(self._blocks) else None

    def median_time(self, height: int) -> int:
        """The median time past that the block after `height` must exceed."""
        times = sorted(
            block.ref.time for block in self._blocks[max(0, height + 1 - MEDIAN_TIME_SPAN) : height + 1]
        )
        return times[len(times) // 2]

    def connect(self, ref: BlockRef, transactions: tuple[Transaction, ...]) -> None:
        """Add the block that follows the tip. The genesis block's coin cannot be spent and is left out."""
        self._blocks.append(_Block(ref, transactions))
        if ref.height == 0:
            return
        for position, transaction in enumerate(transactions):
            self._add(ref, transaction, coinbase=position == 0)

    def _add(self, ref: BlockRef, transaction: Transaction, *, coinbase: bool) -> None:
        self._transactions[transaction.txid] = ChainTransaction(transaction, ref.height, ref.hash)
        if not coinbase:
            for txin in transaction.inputs:
                self._spent[txin.outpoint] = Spend(transaction.txid, ref.height)
        for vout, output in enumerate(transaction.outputs):
            outpoint = OutPoint(transaction.txid, vout)
            self._coins[outpoint] = IndexedCoin(outpoint, output, ref, coinbase)
            self._by_script.setdefault(output.script_pubkey, {})[outpoint] = None

    def disconnect_tip(self) -> tuple[Transaction, ...]:
        """Take the tip back; returns its transactions without the coinbase, which goes for good."""
        block = self._blocks.pop()
        for transaction in reversed(block.transactions):
            self._remove(transaction)
        return block.transactions[1:]

    def _remove(self, transaction: Transaction) -> None:
        del self._transactions[transaction.txid]
        for vout, output in enumerate(transaction.outputs):
            outpoint = OutPoint(transaction.txid, vout)
            del self._coins[outpoint]
            del self._by_script[output.script_pubkey][outpoint]
        for txin in transaction.inputs:
            self._spent.pop(txin.outpoint, None)

    def coin(self, outpoint: OutPoint) -> IndexedCoin | None:
        return self._coins.get(outpoint)

    def coins_of(self, script: bytes) -> Iterator[IndexedCoin]:
        """Every coin that pays the script, oldest first, spent or not."""
        return (self._coins[outpoint] for outpoint in self._by_script.get(script, ()))

    def spender(self, outpoint: OutPoint) -> Spend | None:
        return self._spent.get(outpoint)

    def transaction(self, txid: str) -> ChainTransaction | None:
        return self._transactions.get(txid)

    def data_at(self, height: int, prefix: bytes) -> DataBlock | None:
        """The block at that height, with its transactions that push such data."""
        if not 0 <= height < len(self._blocks):
            return None
        block = self._blocks[height]
        previous = self._blocks[height - 1].ref.hash if height else NO_BLOCK
        found = tuple(
            DataTransaction(position, transaction, self._caller(transaction))
            for position, transaction in carriers(block.transactions, prefix)
        )
        return DataBlock(block.ref, previous, found)

    def _caller(self, transaction: Transaction) -> bytes:
        return self._coins[transaction.inputs[0].outpoint].output.script_pubkey
