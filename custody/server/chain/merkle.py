"""The tree that a block's header commits to its transactions by. Hashes have 32 bytes and are in wire order."""

from collections.abc import Iterator, Sequence

from multisig.hashes import sha256d


def merkle_root(hashes: Sequence[bytes]) -> bytes:
    """An odd one out is paired with itself."""
    *_, top = _levels(hashes)
    return top[0]


def unmistakable_root(hashes: Sequence[bytes]) -> bytes | None:
    """The root; None where another list has it, too, because this one repeats its own end (CVE-2012-2459).

    Neighbours are equal by their own hashes then, and not by the padding: what Bitcoin Core calls a mutated block.
    """
    top = b""
    for level in _levels(hashes):
        if any(left == right for left, right in zip(level[::2], level[1::2], strict=False)):
            return None
        top = level[0]
    return top


def _levels(hashes: Sequence[bytes]) -> Iterator[list[bytes]]:
    """From the leaves to the root, each before it is padded."""
    level = list(hashes)
    yield level
    while len(level) > 1:
        padded = level + level[-1:] * (len(level) % 2)
        level = [sha256d(left + right) for left, right in zip(padded[::2], padded[1::2], strict=True)]
        yield level
