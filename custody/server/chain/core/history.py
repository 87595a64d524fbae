"""The coins of the watched scripts, followed block by block through raw blocks; undone at a reorganisation.

`History` is pure data and holds the watched coins only. `Follower` reads the last few blocks whole and scans
the long past by its filters. It keeps the hashes of the last blocks, so a later look reads new blocks alone
and notices a reorganisation. New scripts are read from the beginning beside the others, and join them at the
tip.
"""

from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import replace

from custody.server.chain.backend import BlockRef, FoundOutput, Spend
from custody.server.chain.core.node import ChainMoved, Node
from custody.server.chain.raw_blocks import Block
from custody.server.domain.errors import ChainUnavailable
from multisig.raw_transactions import RawTransaction
from multisig.transaction import OutPoint

# Deposits' bytes of this many blocks are kept for the caller, who stores them: a block has at most 4 MB.
RECENT_BLOCKS = 6


class History:
    """The coins of `scripts` as of block `next` - 1, whose hash is `anchor`; None before the first one is
    read.
    """

    def __init__(self, scripts: frozenset[bytes], first: int) -> None:
        self.scripts = scripts
        self.next = first
        self.anchor: str | None = None
        # By the outpoint's bytes, as a block has them.
        self._coins: dict[bytes, FoundOutput] = {}
        self._recent: deque[dict[str, bytes]] = deque(maxlen=RECENT_BLOCKS)
        self._asked: frozenset[bytes] | None = None

    @property
    def coins(self) -> Iterable[FoundOutput]:
        return self._coins.values()

    @property
    def recent(self) -> dict[str, bytes]:
        """The bytes of the transactions that created coins in the last blocks, by txid."""
        return {txid: raw for block in self._recent for txid, raw in block.items()}

    def lacks(self, scripts: frozenset[bytes]) -> frozenset[bytes]:
        """The scripts that it does not follow yet. Callers pass the same, possibly large set each time: it is
        not compared again.
        """
        if scripts is self._asked:
            return frozenset()
        missing = scripts - self.scripts
        self._asked = None if missing else scripts
        return missing

    def connect(self, height: int, block: Block) -> None:
        """Blocks come in ascending order; those that do not touch the scripts may be left out."""
        self._recent.append({})
        for position, raw in enumerate(block.transactions):
            if position:
                self._spend(raw, height)
            if not self.scripts.isdisjoint(raw.scripts):
                self._pay(raw, height, block.hash, coinbase=position == 0)
        self.read_to(height, block.hash)

    def read_to(self, height: int, block_hash: str) -> None:
        """Everything up to that block is known."""
        self.next, self.anchor = height + 1, block_hash

    def rollback(self, height: int, block_hash: str) -> None:
        """Rolls back to that block: removes later coins, and marks coins that were spent later as unspent."""
        self._coins = {
            place: _unspent_after(coin, height)
            for place, coin in self._coins.items()
            if coin.height is not None and coin.height <= height
        }
        self.read_to(height, block_hash)

    def merge(self, other: "History") -> None:
        """Add other scripts, which were read to the same block."""
        self.scripts |= other.scripts
        self._coins |= {coin.outpoint.serialize(): coin for coin in other.coins}

    def _spend(self, raw: RawTransaction, height: int) -> None:
        for place in raw.spent:
            coin = self._coins.get(place)
            if coin is not None:
                self._coins[place] = replace(coin, spent=Spend(raw.txid, height))

    def _pay(self, raw: RawTransaction, height: int, block_hash: str, *, coinbase: bool) -> None:
        transaction = raw.parse()
        self._recent[-1][transaction.txid] = raw.raw
        for vout, out in enumerate(transaction.outputs):
            if out.script_pubkey in self.scripts:
                outpoint = OutPoint(transaction.txid, vout)
                self._coins[outpoint.serialize()] = FoundOutput(
                    outpoint, out.amount, out.script_pubkey, height, block_hash, coinbase=coinbase, spent=None
                )


def _unspent_after(coin: FoundOutput, height: int) -> FoundOutput:
    later = coin.spent is not None and coin.spent.height is not None and coin.spent.height > height
    return replace(coin, spent=None) if later else coin


# Up to so many blocks are read whole; more are scanned by their filters first.
SHORT = 24
# A scan stops short of the tip: the filter index may be a moment behind the blocks.
UNSETTLED = 6
BLOCKS_PER_SCAN = 10_000
# Hashes kept to find where a reorganisation began; after a deeper one everything is read again.
KEPT_HASHES = 144
# A call stops after this long, and the next one goes on from there.
LOOK_SECONDS = 60.0


class Follower:
    """One thread at a time. `first` is the height below which no script of ours was paid."""

    def __init__(self, node: Node, clock: Callable[[], float], first: int = 0) -> None:
        self._node = node
        self._clock = clock
        self._first = first
        self._hashes: dict[int, str] = {}
        self._backfill: History | None = None
        self.history = History(frozenset(), first)

    def catch_up(self, tip: BlockRef, scripts: frozenset[bytes]) -> None:
        """Afterwards `history` is that of `scripts`, and those of earlier calls, as of `tip`.

        Raises ChainMoved where it is no longer the tip, and ChainUnavailable, also where there is more to
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
        while missing := self.history.lacks(scripts):
            self._backfill = self._backfill or History(missing, self._first)
            self._advance(self._backfill, tip, deadline)
            self.history.merge(self._backfill)
            self._backfill = None

    def _settle(self, tip: BlockRef) -> None:
        """Roll back to the last block that is still on the best chain, and read the hashes up to the tip."""
        if self._hashes and (max(self._hashes) > tip.height or self._hashes.get(tip.height) != tip.hash):
            self._undo(self._fork())
        self._remember(tip)

    def _fork(self) -> int | None:
        heights = sorted(self._hashes, reverse=True)
        both = zip(heights, self._node.hashes_at(heights), strict=True)
        return next((height for height, found in both if found == self._hashes[height]), None)

    def _undo(self, fork: int | None) -> None:
        if fork is None:
            self._hashes, self._backfill = {}, None
            self.history = History(frozenset(), self._first)
            return
        self._hashes = {height: each for height, each in self._hashes.items() if height <= fork}
        for history in (self.history, self._backfill):
            if history is not None and history.next > fork + 1:
                history.rollback(fork, self._hashes[fork])

    def _remember(self, tip: BlockRef) -> None:
        kept = range(max(0, tip.height - KEPT_HASHES + 1), tip.height + 1)
        new = [height for height in kept if height not in self._hashes]
        if new:
            # The last known block first and the tip last: if both are right, so is every one between.
            known = [max(self._hashes)] if self._hashes else []
            found = self._node.hashes_at([*known, *new])
            if found[-1] != tip.hash or [self._hashes[height] for height in known] != list(
                found[: len(known)]
            ):
                raise _moved()
            self._hashes |= {
                height: each
                for height, each in zip(new, found[len(known) :], strict=True)
                if each is not None
            }
        self._hashes = {height: self._hashes[height] for height in kept}

    def _advance(self, history: History, tip: BlockRef, deadline: float) -> None:
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

    def _read(self, history: History, block_hash: str) -> None:
        block = self._node.block(block_hash)
        if history.anchor is not None and block.previous != history.anchor:
            # The stored history is of another branch, and where they fork is unknown.
            self._undo(None)
            raise _moved()
        history.connect(history.next, block)

    def _scan(self, history: History, last: int) -> None:
        first = history.next
        anchor, relevant = self._node.scan(history.scripts, first, last)
        if self._hashes.get(last, anchor) != anchor:
            raise _moved()
        for height, block_hash in sorted((self._node.header(each)[0], each) for each in relevant):
            if not first <= height <= last:
                raise ChainUnavailable("The node's scan found a block outside of what it was asked to scan.")
            history.connect(height, self._node.block(block_hash))
        history.read_to(last, anchor)


def _moved() -> ChainMoved:
    return ChainMoved("The node's best chain changed while it was read.")
