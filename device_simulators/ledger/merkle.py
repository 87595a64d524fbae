"""Merkle trees as the app commits to lists (app-bitcoin-new, doc/merkle.md): the device knows a root, the host the rest."""

from collections.abc import Sequence
from hashlib import sha256

HASH_BYTES = 32
EMPTY_ROOT = bytes(HASH_BYTES)
"""The root of the list without elements."""

_LEAF = b"\x00"
_NODE = b"\x01"


def leaf_preimage(element: bytes) -> bytes:
    """What a leaf is the SHA-256 of. The first byte keeps leaves and nodes apart."""
    return _LEAF + element


def leaf_hash(element: bytes) -> bytes:
    return sha256(leaf_preimage(element)).digest()


def node_hash(left: bytes, right: bytes) -> bytes:
    return sha256(_NODE + left + right).digest()


def is_right_child_at(size: int, index: int) -> list[bool]:
    """For each level from the leaf upwards: is it the right child? Their number is the length of the leaf's proof.

    Of a tree's n > 1 leaves the left branch holds the largest power of two below n.
    """
    sides = []
    while size > 1:
        left = 1 << ((size - 1).bit_length() - 1)
        sides.append(index >= left)
        size, index = (size - left, index - left) if index >= left else (left, index)
    return sides[::-1]


def root_of_proof(leaf: bytes, sides: Sequence[bool], siblings: Sequence[bytes]) -> bytes:
    """The root that a leaf and its siblings, from the leaf upwards, lead to."""
    node = leaf
    for is_right, sibling in zip(sides, siblings, strict=True):
        node = node_hash(sibling, node) if is_right else node_hash(node, sibling)
    return node
