"""The best chain as the explorer shows it, and proofs of a confirmation.

Headers are checked, linked where they are neighbours, and remembered. A proof is a header's proof of work and
a merkle branch from the transaction to the header. A forged block on top of a known one costs a real block's
work; one that links to no known block costs the work of the least difficulty below.
"""

import struct
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from custody.server.chain.backend import BlockRef
from custody.server.chain.esplora.shapes import Block, read, read_hash
from custody.server.chain.esplora.wire import RequestPace, Wire
from custody.server.chain.raw_blocks import GENESIS_HASH, BlockHeader
from custody.server.errors import ChainUnavailable
from multisig.hashes import sha256d
from multisig.network import Network
from multisig.transaction import Transaction

# The target of difficulty 1.
DIFFICULTY_1 = 0xFFFF << 208
# Core's consensus.powLimit: no header of the network may be easier.
POW_LIMIT = {
    Network.MAINNET: (1 << 224) - 1,
    Network.TESTNET4: (1 << 224) - 1,
    Network.SIGNET: 0x377AE << 216,
    Network.REGTEST: (1 << 255) - 1,
}
# Mainnet's first block under BIP-141: no coin of ours can be older.
SEGWIT_HEIGHT = 481_824
# Mainnet's difficulty was never again below these from these heights on.
MAINNET_LEAST_DIFFICULTY = ((700_000, 10**13), (520_000, 10**12), (SEGWIT_HEIGHT, 5 * 10**11))
# Where the difficulty changes only at every 2016th block, by a factor of four at most.
RETARGETING = frozenset({Network.MAINNET, Network.SIGNET})
RETARGET_BLOCKS, RETARGET_FACTOR = 2_016, 4
# A transaction of this size may be the two halves of an inner node of the tree instead (CVE-2017-12842).
AMBIGUOUS_BYTES = 64


def has_work(header: BlockHeader, network: Network, height: int) -> bool:
    """Whether it meets its own target, and the target is not easier than the network allows at that
    height.
    """
    limit = POW_LIMIT[network]
    if network is Network.MAINNET:
        least = next((least for first, least in MAINNET_LEAST_DIFFICULTY if height >= first), 1)
        limit = min(limit, DIFFICULTY_1 // least)
    return int(header.hash, 16) <= header.target <= limit


def could_hold_ours(network: Network, height: int) -> bool:
    """Whether a block at that height could hold a coin of ours."""
    return network is not Network.MAINNET or height >= SEGWIT_HEIGHT


def follows(header: BlockHeader, before: BlockHeader, network: Network, height: int) -> bool:
    """Whether the header at `height` may follow `before`: it names it, and keeps the rules of difficulty."""
    if header.previous != before.hash:
        return False
    if network not in RETARGETING:
        return True
    if height % RETARGET_BLOCKS:
        return header.bits == before.bits
    return header.target <= RETARGET_FACTOR * before.target


def merkle_root(txid: str, branch: Sequence[str], position: int) -> bytes | None:
    """The root to which the branch leads, as on the wire; None where the position is not in a tree of that
    depth.

    None also where it is in what the tree only repeats: a node pads its level to its right, never to its left
    (CVE-2012-2459).
    """
    if not 0 <= position < 1 << len(branch):
        return None
    node = bytes.fromhex(txid)[::-1]
    for sibling in branch:
        other = bytes.fromhex(sibling)[::-1]
        if position & 1 and other == node:
            return None
        node = sha256d(other + node) if position & 1 else sha256d(node + other)
        position >>= 1
    return node


def is_ambiguous(transaction: Transaction) -> bool:
    """Whether its bytes could be those of an inner node, so that a branch proves nothing."""
    return len(transaction.serialize(include_witness=False)) == AMBIGUOUS_BYTES


# Esplora's BLOCK_LIMIT; others show a few more.
PAGE = 10
# A new tip is followed back this far to known headers; after a longer absence they are requested again.
MAX_LINKS = 20


class ChainInconsistent(ChainUnavailable):
    """The explorer contradicts itself: its chain moved while it was read, or it lies. Reading again
    may help.
    """


@dataclass
class _View:
    """What is known of the chain below one tip."""

    tip: BlockRef
    headers: dict[int, BlockHeader] = field(default_factory=dict)


class BestChain:
    """Raises ChainUnavailable; ChainInconsistent where two answers cannot both be true."""

    def __init__(self, network: Network, wire: Wire, pace: RequestPace, clock: Callable[[], float]) -> None:
        self.network = network
        self._wire = wire
        self._pace = pace
        self._clock = clock
        self._view: _View | None = None
        self._asked_at = 0.0
        self._lock = threading.RLock()

    def tip(self) -> BlockRef:
        """At most `pace.tip_seconds` old."""
        return self._recent().tip

    def refresh(self) -> BlockRef:
        """As it is now."""
        with self._lock:
            return self._follow().tip

    def block_at(self, height: int) -> BlockRef | None:
        """None above the tip."""
        header = self.header_at(height)
        return None if header is None else BlockRef(height, header.hash, header.time)

    def header_at(self, height: int) -> BlockHeader | None:
        view = self._recent()
        if not 0 <= height <= view.tip.height:
            return None
        known = view.headers.get(height)
        if known is not None:
            return known
        batch = self._ask_around(height, view.tip.height)
        with self._lock:
            if not self._fits(view, batch):
                # Any of them may be false: only the tip is kept, and everything is linked to it again.
                view.headers = {view.tip.height: view.headers[view.tip.height]}
                raise ChainInconsistent(
                    f"The explorer's blocks around height {height} do not follow each other."
                )
            view.headers |= batch
        return batch[height]

    def _recent(self) -> _View:
        with self._lock:
            if self._view is None or self._clock() - self._asked_at >= self._pace.tip_seconds:
                return self._follow()
            return self._view

    def _follow(self) -> _View:
        tip_hash = read_hash(self._wire.get("/blocks/tip/hash"))
        if self._view is None or self._view.tip.hash != tip_hash:
            self._view = self._look_at(tip_hash)
        self._asked_at = self._clock()
        return self._view

    def _look_at(self, tip_hash: str) -> _View:
        if self._view is None:
            self._require_network()
        height, header = self._named(tip_hash)
        if self._view is not None and height <= self._view.tip.height:
            # A better chain is longer: any other comes from a server that lags behind.
            raise ChainUnavailable("The explorer is behind what it showed before.")
        tip = BlockRef(height, header.hash, header.time)
        known = {} if self._view is None else self._view.headers
        return _View(tip, self._link(height, header, known))

    def _link(self, height: int, tip: BlockHeader, known: dict[int, BlockHeader]) -> dict[int, BlockHeader]:
        """The headers down from the tip to the first one known before, and all known below it."""
        headers, header = {height: tip}, tip
        while known and height > min(known) and len(headers) <= MAX_LINKS:
            height -= 1
            before = known.get(height)
            if before is not None and follows(header, before, self.network, height + 1):
                return {at: each for at, each in known.items() if at <= height} | headers
            at, before = self._named(header.previous)
            if at != height:
                raise ChainInconsistent("The explorer gives a block another height than its neighbours have.")
            if not follows(header, before, self.network, height + 1):
                raise ChainUnavailable(
                    "The explorer shows a header that is easier than the one before allows."
                )
            header = headers[height] = before
        if known:
            # No known header is left: another explorer may answer now.
            self._require_network()
        return headers

    def _require_network(self) -> None:
        genesis = read_hash(self._wire.get("/block-height/0"))
        if genesis != GENESIS_HASH[self.network]:
            raise ChainUnavailable(f"The explorer shows another network than {self.network.value}.")

    def _ask_around(self, height: int, tip: int) -> dict[int, BlockHeader]:
        """The block at that height and those above, ten in one answer: a starting process asks for hundreds
        in turn.
        """
        first = min(height + PAGE - 1, tip)
        body = self._wire.find(f"/blocks/{first}")
        if body is None:
            raise ChainInconsistent(f"The explorer lacks block {first} below its tip.")
        headers = {block.height: self._checked(block) for block in read(body, list[Block])}
        if height not in headers:
            raise ChainInconsistent(f"The explorer lacks block {height} below its tip.")
        return {at: header for at, header in headers.items() if height <= at <= first}

    def _named(self, block_hash: str) -> tuple[int, BlockHeader]:
        """The height and the header of a block that the explorer has named."""
        body = self._wire.find(f"/block/{block_hash}")
        if body is None:
            raise ChainInconsistent("The explorer does not know a block that it names.")
        block = read(body, Block)
        if block.id != block_hash:
            raise ChainUnavailable("The explorer shows another block than the one asked for.")
        return block.height, self._checked(block)

    def _checked(self, block: Block) -> BlockHeader:
        parent, root = (
            bytes.fromhex(each or "00" * 32)[::-1] for each in (block.previousblockhash, block.merkle_root)
        )
        fields = block.version & 0xFFFF_FFFF, parent, root, block.timestamp, block.bits, block.nonce
        header = BlockHeader.parse(struct.pack("<I32s32sIII", *fields))
        if header.hash != block.id:
            raise ChainUnavailable("The explorer shows a header that is not its block's.")
        if not has_work(header, self.network, block.height):
            raise ChainUnavailable("The explorer shows a header without its proof of work.")
        return header

    def _fits(self, view: _View, headers: dict[int, BlockHeader]) -> bool:
        together = view.headers | headers
        same = all(view.headers.get(at, header) == header for at, header in headers.items())
        above = (
            at for at in {*headers, *(at + 1 for at in headers)} if at in together and at - 1 in together
        )
        return same and all(follows(together[at], together[at - 1], self.network, at) for at in above)
