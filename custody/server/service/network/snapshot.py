"""One look at the chain: all that a backend says about our scripts since the last block in common."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

from custody.server.chain.backend import BlockRef, ChainBackend, FoundOutput
from custody.server.domain.errors import ChainUnavailable
from multisig import OutPoint

# A reorganisation deeper than this is met by reading everything again.
KEPT_BLOCKS = 288
# A backend that moves on faster than it can be read three times in a row is not following a Bitcoin chain.
MAX_READS = 3


@dataclass(frozen=True)
class Snapshot:
    """`fork` is the height of the last shared block, -1 where there is none; `blocks` are those above it."""

    tip: BlockRef
    fork: int
    blocks: tuple[BlockRef, ...]
    outputs: tuple[FoundOutput, ...]
    hash_at: Mapping[int, str]


def take_snapshot(
    backend: ChainBackend,
    known_blocks: Mapping[int, str],
    known: Iterable[bytes],
    new: Iterable[bytes],
    waiting: Mapping[OutPoint, bytes],
) -> Snapshot:
    """Reads until the tip is the same before and after. `new` scripts are read from the beginning of the
    chain. So are those of `waiting`, the stored coins that wait or whose spending waits, by their outpoints,
    where nothing new is shown of them: they have left the mempool, or were in an old block all along and an
    answer was late.

    Raises ChainUnavailable.
    """
    known, new = frozenset(known), frozenset(new)
    for _ in range(MAX_READS):
        tip = backend.tip()
        _require_not_behind(known_blocks, tip)
        fork = _fork(backend, known_blocks, tip)
        outputs = _outputs(backend, known, new, fork)
        outputs += _settled(backend, waiting, {found.outpoint for found in outputs})
        blocks = _blocks_above(backend, fork, tip)
        hash_at = _spending_blocks(backend, outputs)
        if backend.tip() == tip:
            return Snapshot(tip, fork, blocks, outputs, hash_at)
    raise ChainUnavailable("The chain backend changes its tip at every look.")


def _require_not_behind(known_blocks: Mapping[int, str], tip: BlockRef) -> None:
    """Another process may have followed a node that had more blocks. Blocks that this backend does not have
    yet were not taken back, and neither were the deposits and payments in them. A tip below all kept blocks
    cannot be judged: that is waited out, too.
    """
    if not known_blocks or tip.height >= max(known_blocks):
        return
    if tip.height < min(known_blocks) or known_blocks.get(tip.height) == tip.hash:
        raise ChainUnavailable(
            f"The chain backend is behind: it has {tip.height} blocks of the {max(known_blocks)} that were "
            "seen before."
        )


def _fork(backend: ChainBackend, known_blocks: Mapping[int, str], tip: BlockRef) -> int:
    for height in sorted(known_blocks, reverse=True):
        block = tip if height == tip.height else backend.block_at(height)
        if block is not None and block.hash == known_blocks[height]:
            return height
    return -1


def _outputs(
    backend: ChainBackend, known: frozenset[bytes], new: frozenset[bytes], fork: int
) -> tuple[FoundOutput, ...]:
    if fork < 0:
        return backend.outputs_to(known | new)
    return (*backend.outputs_to(known, since_height=fork + 1), *backend.outputs_to(new - known))


def _settled(
    backend: ChainBackend, waiting: Mapping[OutPoint, bytes], shown: Collection[OutPoint]
) -> tuple[FoundOutput, ...]:
    lost = {outpoint: script for outpoint, script in waiting.items() if outpoint not in shown}
    if not lost:
        return ()
    found = backend.outputs_to(frozenset(lost.values()))
    return tuple(each for each in found if each.outpoint in lost)


def _blocks_above(backend: ChainBackend, fork: int, tip: BlockRef) -> tuple[BlockRef, ...]:
    first = max(fork + 1, tip.height - KEPT_BLOCKS + 1)
    blocks = (backend.block_at(height) for height in range(first, tip.height + 1))
    return tuple(block for block in blocks if block is not None)


def _spending_blocks(backend: ChainBackend, outputs: Iterable[FoundOutput]) -> dict[int, str]:
    heights = {found.spent.height for found in outputs if found.spent is not None}
    blocks = (backend.block_at(height) for height in heights if height is not None)
    return {block.height: block.hash for block in blocks if block is not None}
