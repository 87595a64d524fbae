"""What became of some scripts' coins, block by block: derived from raw blocks, undone at a reorganisation.

Pure data. Only coins of the scripts asked about are kept, so that its size is that of our own history.
"""

from collections.abc import Iterable
from dataclasses import replace

from custody.server.chain.backend import FoundOutput, Spend
from custody.server.chain.raw_blocks import Block
from multisig.transaction import OutPoint, Transaction


class History:
    """The coins of `scripts` as of block `next` - 1, whose hash is `anchor`; None before the first one is read."""

    def __init__(self, scripts: frozenset[bytes], first: int) -> None:
        self.scripts = scripts
        self.next = first
        self.anchor: str | None = None
        self._coins: dict[OutPoint, FoundOutput] = {}

    @property
    def coins(self) -> Iterable[FoundOutput]:
        return self._coins.values()

    def connect(self, height: int, block: Block) -> None:
        """A block in ascending order; those between may be left out where they do not touch the scripts."""
        for position, transaction in enumerate(block.transactions):
            if position:
                self._spend(transaction, height)
            self._pay(transaction, height, block.hash, coinbase=position == 0)
        self.read_to(height, block.hash)

    def read_to(self, height: int, block_hash: str) -> None:
        """Everything up to that block is known."""
        self.next, self.anchor = height + 1, block_hash

    def rollback(self, height: int, block_hash: str) -> None:
        """Back to that block: later coins never were, and later spends free their coins."""
        kept = (coin for coin in self._coins.values() if coin.height is not None and coin.height <= height)
        self._coins = {coin.outpoint: _unspent_after(coin, height) for coin in kept}
        self.read_to(height, block_hash)

    def merge(self, other: "History") -> None:
        """Take over other scripts, which were read to the same block."""
        self.scripts |= other.scripts
        self._coins |= {coin.outpoint: coin for coin in other.coins}

    def _spend(self, transaction: Transaction, height: int) -> None:
        for txin in transaction.inputs:
            coin = self._coins.get(txin.outpoint)
            if coin is not None:
                self._coins[txin.outpoint] = replace(coin, spent=Spend(transaction.txid, height))

    def _pay(self, transaction: Transaction, height: int, block_hash: str, *, coinbase: bool) -> None:
        for vout, out in enumerate(transaction.outputs):
            if out.script_pubkey in self.scripts:
                outpoint = OutPoint(transaction.txid, vout)
                self._coins[outpoint] = FoundOutput(
                    outpoint, out.amount, out.script_pubkey, height, block_hash, coinbase=coinbase, spent=None
                )


def _unspent_after(coin: FoundOutput, height: int) -> FoundOutput:
    later = coin.spent is not None and coin.spent.height is not None and coin.spent.height > height
    return replace(coin, spent=None) if later else coin
