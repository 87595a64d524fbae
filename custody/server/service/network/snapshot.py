"""A snapshot of the chain: all that a backend reports about our scripts since the last shared block."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

from custody.server.chain.backend import BlockRef, ChainBackend, FoundOutput
from custody.server.domain.errors import ChainUnavailable
from multisig import OutPoint

# After a deeper reorganisation everything is read again.
KEPT_BLOCKS = 288
# How often a snapshot is begun again because the tip changed meanwhile.
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
    chain.

    `waiting` has the scripts of stored coins that are unconfirmed or whose spend is, by outpoint. Where the
    backend shows nothing new of them, they are read from the beginning too: they have left the mempool, or
    have been in an old block and an earlier answer was late. Raises ChainUnavailable.
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
    raise ChainUnavailable("The chain backend changes its tip during each read.")


def _require_not_behind(known_blocks: Mapping[int, str], tip: BlockRef) -> None:
    """Another process may have followed a node with more blocks. Blocks that this backend does not have yet
    are not disconnected. A tip below all stored blocks cannot be compared, so that has to wait too.
    """
    if not known_blocks or tip.height >= max(known_blocks):
        return
    if tip.height < min(known_blocks) or known_blocks.get(tip.height) == tip.hash:
        raise ChainUnavailable(
            f"The chain backend is behind: its tip is at {tip.height}, and blocks up to {max(known_blocks)} "
            "were seen before."
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
