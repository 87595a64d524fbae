"""The coins of the watched scripts, followed block by block through raw blocks, undone at a reorganisation;
and the transactions of the node's mempool that pay them.

`ScannedHistory` is pure data and holds the watched coins only. `BlockFollower` reads the last few blocks
whole and scans the long past by its filters. It keeps the hashes of the last blocks, so a later look reads
new blocks alone and notices a reorganisation. New scripts are read from the beginning beside the others, and
join them at the tip.

`MempoolView` asks for the list of txids at each call and fetches only new ones. For a transaction that is not
ours a hash of each output's script is kept, so that a script which is added later is found among them.
"""

from collections.abc import Callable, Iterable
from dataclasses import replace
from itertools import islice

from custody.server.chain.backend import BlockRef, FoundOutput, SpendingTransaction, outputs_of
from custody.server.chain.core.node import TRANSACTIONS_PER_CALL, ChainChanged, Node
from custody.server.chain.raw_blocks import RawBlock
from custody.server.errors import ChainUnavailable


class ScannedHistory:
    """The coins of `scripts` as of block `next` - 1, whose hash is `anchor`; None before the first one is
    read.
    """

    def __init__(self, scripts: frozenset[bytes], first: int) -> None:
        self.scripts = scripts
        self.next = first
        self.anchor: str | None = None
        # By the outpoint's bytes, as a block has them.
        self._coins: dict[bytes, FoundOutput] = {}

    @property
    def coins(self) -> Iterable[FoundOutput]:
        return self._coins.values()

    def connect(self, height: int, block: RawBlock) -> None:
        """Blocks come in ascending order; those that do not touch the scripts may be left out."""
        ref = BlockRef(height, block.header.hash, block.header.time)
        for position, raw in enumerate(block.transactions):
            for place in raw.spent if position else ():
                coin = self._coins.get(place)
                if coin is not None:
                    self._coins[place] = replace(coin, spent=SpendingTransaction(raw.txid, ref))
            if not self.scripts.isdisjoint(raw.scripts):
                paid = outputs_of(raw.parse(), ref, self.scripts, coinbase=position == 0)
                self._coins |= {coin.outpoint.serialize(): coin for coin in paid}
        self.read_to(height, block.header.hash)

    def read_to(self, height: int, block_hash: str) -> None:
        """Everything up to that block is known."""
        self.next, self.anchor = height + 1, block_hash

    def rollback(self, height: int, block_hash: str) -> None:
        """Rolls back to that block: removes later coins, and marks coins that were spent later as unspent."""
        self._coins = {
            place: replace(coin, spent=None) if coin.touched_since(height + 1) else coin
            for place, coin in self._coins.items()
            if coin.block is not None and coin.block.height <= height
        }
        self.read_to(height, block_hash)

    def merge(self, other: "ScannedHistory") -> None:
        """Add other scripts, which were read to the same block."""
        self.scripts |= other.scripts
        self._coins |= {coin.outpoint.serialize(): coin for coin in other.coins}


# Up to so many blocks are read whole; more are scanned by their filters first.
SHORT = 24
# A scan stops short of the tip: the filter index may be a moment behind the blocks.
UNSETTLED = 6
BLOCKS_PER_SCAN = 10_000
# Hashes kept to find where a reorganisation began; after a deeper one everything is read again.
KEPT_HASHES = 144
# A call stops after this long, and the next one goes on from there.
LOOK_SECONDS = 60.0


class BlockFollower:
    """One thread at a time. `first` is the height below which no script of ours was paid."""

    def __init__(self, node: Node, clock: Callable[[], float], first: int = 0) -> None:
        self._node = node
        self._clock = clock
        self._first = first
        self._hashes: dict[int, str] = {}
        self._backfill: ScannedHistory | None = None
        self.history = ScannedHistory(frozenset(), first)

    def catch_up(self, tip: BlockRef, scripts: frozenset[bytes]) -> None:
        """Afterwards `history` is that of `scripts`, and those of earlier calls, as of `tip`.

        Raises ChainChanged where it is no longer the tip, and ChainUnavailable, also where there is more to
        read than one look may take: then the next one goes on.
        """
        if self._first > tip.height:
            raise ChainUnavailable(
                f"Addresses are to be looked for from block {self._first} on, and the node's last one is "
                f"{tip.height}: "
                "correct FIRST_HEIGHT."
            )
        deadline = self._clock() + LOOK_SECONDS
        self._settle(tip)
        self._advance(self.history, tip, deadline)
        while missing := scripts - self.history.scripts:
            self._backfill = self._backfill or ScannedHistory(missing, self._first)
            self._advance(self._backfill, tip, deadline)
            self.history.merge(self._backfill)
            self._backfill = None

    def _settle(self, tip: BlockRef) -> None:
        """Roll back to the last block that is still on the best chain, and read the hashes up to the tip."""
        last = max(self._hashes, default=None)
        if last == tip.height and self._hashes[last] == tip.hash:
            return
        kept = range(max(0, tip.height - KEPT_HASHES + 1), tip.height + 1)
        heights = sorted({*self._hashes, *kept})
        hashes = dict(zip(heights, self._node.hashes_at(heights), strict=True))
        if hashes[tip.height] != tip.hash:
            raise _moved()
        fork = max((height for height, each in self._hashes.items() if hashes[height] == each), default=None)
        if fork != last:
            self._undo(fork)
        self._hashes = {height: each for height in kept if (each := hashes[height]) is not None}

    def _undo(self, fork: int | None) -> None:
        if fork is None:
            self._hashes, self._backfill = {}, None
            self.history = ScannedHistory(frozenset(), self._first)
            return
        self._hashes = {height: each for height, each in self._hashes.items() if height <= fork}
        for history in (self.history, self._backfill):
            if history is not None and history.next > fork + 1:
                history.rollback(fork, self._hashes[fork])

    def _advance(self, history: ScannedHistory, tip: BlockRef, deadline: float) -> None:
        if not history.scripts and history.next <= tip.height:
            history.read_to(tip.height, tip.hash)
        while history.next <= tip.height:
            if self._clock() > deadline:
                raise ChainUnavailable(
                    f"The history of the watched addresses is still being read: block {history.next} of "
                    f"{tip.height}."
                )
            if tip.height - history.next < SHORT:
                self._read(history, self._hashes[history.next])
            else:
                self._scan(history, min(history.next + BLOCKS_PER_SCAN - 1, tip.height - UNSETTLED))

    def _read(self, history: ScannedHistory, block_hash: str) -> None:
        block = self._node.block(block_hash)
        if history.anchor is not None and block.header.previous != history.anchor:
            # The stored history is of another branch, and where they fork is unknown.
            self._undo(None)
            raise _moved()
        history.connect(history.next, block)

    def _scan(self, history: ScannedHistory, last: int) -> None:
        first = history.next
        anchor, relevant = self._node.scan(history.scripts, first, last)
        if self._hashes.get(last, anchor) != anchor:
            raise _moved()
        for block in sorted(map(self._node.header, relevant), key=lambda each: each.height):
            if not first <= block.height <= last:
                raise ChainUnavailable("The node's scan found a block outside of what it was asked to scan.")
            history.connect(block.height, self._node.block(block.hash))
        history.read_to(last, anchor)


def _moved() -> ChainChanged:
    return ChainChanged("The node's best chain changed while it was read.")


# Mainnet's mempool changes all the time. With this many transactions the list, which takes megabytes, is
# fetched only every few seconds, or at once after a new block or script.
MANY = 5_000
MANY_SECONDS = 5.0
# The first read of a full mempool takes longer, and the next call continues it.
FIRST_READ_SECONDS = 30.0


class MempoolView:
    """One thread at a time."""

    def __init__(self, node: Node, clock: Callable[[], float]) -> None:
        self._node = node
        self._clock = clock
        # Python's hash of each output's script. It has a random key in each process (SipHash), so an attacker
        # cannot construct collisions.
        self._examined: dict[str, frozenset[int]] = {}
        self._paying: dict[str, list[FoundOutput]] = {}
        self._scripts: frozenset[bytes] = frozenset()
        self._tip: str | None = None
        self._looked_at = 0.0

    def look(self, scripts: frozenset[bytes], tip: str) -> tuple[FoundOutput, ...]:
        """Outputs that pay one of the scripts, or one of an earlier call; `tip` is the hash of the last
        block.

        Raises ChainUnavailable.
        """
        now = self._clock()
        new = scripts - self._scripts
        recent = self._tip == tip and not new and now < self._looked_at + MANY_SECONDS
        if not (recent and len(self._examined) >= MANY):
            self._refresh(new, now + FIRST_READ_SECONDS)
            self._tip, self._looked_at = tip, now
        return tuple(output for outputs in self._paying.values() for output in outputs)

    def _refresh(self, new: frozenset[bytes], deadline: float) -> None:
        self._tip = None
        self._scripts |= new
        hashes = {hash(script) for script in new}
        # What may pay a new script is fetched again.
        for again in [txid for txid, kept in self._examined.items() if not hashes.isdisjoint(kept)]:
            del self._examined[again]
        waiting = self._node.mempool()
        for gone in self._examined.keys() - frozenset(waiting):
            del self._examined[gone]
            self._paying.pop(gone, None)
        unseen = (txid for txid in waiting if txid not in self._examined)
        while some := tuple(islice(unseen, TRANSACTIONS_PER_CALL)):
            if self._clock() > deadline:
                raise ChainUnavailable("The node's mempool is still being read.")
            self._examine(some)

    def _examine(self, txids: tuple[str, ...]) -> None:
        for txid, transaction in zip(txids, self._node.waiting(txids), strict=True):
            if transaction is None:
                continue
            self._examined[txid] = frozenset(hash(out.script_pubkey) for out in transaction.outputs)
            paying = outputs_of(transaction, None, self._scripts)
            if paying:
                self._paying[txid] = paying
