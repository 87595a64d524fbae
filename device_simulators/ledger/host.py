"""The host as the app sees it: a store that is asked for pieces of what it has committed to, and never
believed.

Every preimage is hashed, and every Merkle proof is followed to its root. The maps of a PSBT are commitments
too: their keys, strictly in order, and the values that are asked for. Source: app-bitcoin-new, doc/merkle.md
and doc/bitcoin.md (client commands).
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import IntEnum
from hashlib import sha256
from itertools import pairwise
from typing import Self

from device_simulators.ledger.apdu import MAX_DATA_BYTES
from device_simulators.ledger.work import Work, incorrect_data
from multisig.wire import Reader, compact_size

HASH_BYTES = 32

_LEAF = b"\x00"
_NODE = b"\x01"


def leaf_preimage(element: bytes) -> bytes:
    """What a leaf is the SHA-256 of. The first byte keeps leaves and nodes apart."""
    return _LEAF + element


def node_hash(left: bytes, right: bytes) -> bytes:
    return sha256(_NODE + left + right).digest()


def is_right_child_at(size: int, index: int) -> list[bool]:
    """For each level from the leaf upwards: is it the right child? Their number is the length of the leaf's
    proof.

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


class ClientCommand(IntEnum):
    YIELD = 0x10
    GET_PREIMAGE = 0x40
    GET_MERKLE_LEAF_PROOF = 0x41
    GET_MORE_ELEMENTS = 0xA0


class Host:
    """Every method raises Refused where the host does not answer, or lies."""

    def __init__(self, work: Work) -> None:
        self._work = work

    async def take(self, result: bytes) -> None:
        """Give the host a result before the command is over."""
        await self._work.ask_host(bytes((ClientCommand.YIELD,)) + result)

    async def preimage(self, digest: bytes, limit: int) -> bytes:
        """The at most `limit` bytes whose SHA-256 this is."""
        answer = Reader(await self._work.ask_host(bytes((ClientCommand.GET_PREIMAGE, 0)) + digest))
        length = answer.compact_size()
        if length > limit:
            raise incorrect_data(f"{length} bytes where at most {limit} are taken")
        data = bytearray(answer.take(answer.uint(1)))
        answer.finish()
        while len(data) < length:
            data += await self._more(1)
        if len(data) != length or sha256(data).digest() != digest:
            raise incorrect_data("the host gave another preimage")
        return bytes(data)

    async def leaf(self, root: bytes, size: int, index: int) -> bytes:
        """The hash at this place of a committed list."""
        sides = is_right_child_at(size, index)
        place = compact_size(size) + compact_size(index)
        request = bytes((ClientCommand.GET_MERKLE_LEAF_PROOF,)) + root + place
        answer = Reader(await self._work.ask_host(request))
        leaf = answer.take(HASH_BYTES)
        if answer.uint(1) != len(sides):
            raise incorrect_data("the host gave a proof of another length")
        proof = bytearray(answer.take(answer.uint(1) * HASH_BYTES))
        answer.finish()
        while len(proof) < len(sides) * HASH_BYTES:
            proof += await self._more(HASH_BYTES)
        if len(proof) != len(sides) * HASH_BYTES:
            raise incorrect_data("the host gave a proof of another length")
        siblings = [bytes(proof[at : at + HASH_BYTES]) for at in range(0, len(proof), HASH_BYTES)]
        if root_of_proof(leaf, sides, siblings) != root:
            raise incorrect_data("the host's proof does not lead to the root")
        return leaf

    async def element(self, root: bytes, size: int, index: int, limit: int) -> bytes:
        """The element at this place of a committed list, of at most `limit` bytes."""
        return await self.element_of(await self.leaf(root, size, index), limit)

    async def element_of(self, leaf: bytes, limit: int) -> bytes:
        """The element behind a leaf that is proven already."""
        preimage = await self.preimage(leaf, limit + 1)
        if preimage[:1] != leaf_preimage(b""):
            raise incorrect_data("the host gave a node where a leaf was asked for")
        return preimage[1:]

    async def _more(self, element_bytes: int) -> bytes:
        """What did not fit into the last answer: some at least, so that a host which gives nothing is not
        asked for ever.
        """
        answer = Reader(await self._work.ask_host(bytes((ClientCommand.GET_MORE_ELEMENTS,))))
        count = answer.uint(1)
        if not count or answer.uint(1) != element_bytes or count * element_bytes > MAX_DATA_BYTES:
            raise incorrect_data("the host gave elements of another length, or none")
        data = answer.take(count * element_bytes)
        answer.finish()
        return data


MAX_KEY_BYTES = 34 + 32 * 8
"""The app's limit on a key: a control block below nine levels of scripts."""
MAX_FIELDS = 512
"""More than any map of a PSBT here can need; it bounds what a host can make the device read."""

_COMMITMENT_LIMIT = 9 + 2 * HASH_BYTES


@dataclass(frozen=True)
class Commitment:
    """How many fields a map has, and the roots of its keys and its values."""

    size: int
    keys_root: bytes
    values_root: bytes

    @classmethod
    def read(cls, reader: Reader) -> Self:
        size = reader.compact_size()
        if size > MAX_FIELDS:
            raise incorrect_data(f"a map of {size} fields")
        return cls(size, reader.take(HASH_BYTES), reader.take(HASH_BYTES))


class PsbtMap:
    """A committed map whose keys are read and checked. Values are fetched when they are asked for."""

    def __init__(self, host: Host, commitment: Commitment, places: dict[bytes, int]) -> None:
        self._host = host
        self._commitment = commitment
        self._places = places

    @classmethod
    async def open(cls, host: Host, commitment: Commitment) -> Self:
        """Read every key: only a map in strict order has one value for each.

        :raises Refused: a key is repeated or out of order.
        """
        size, root = commitment.size, commitment.keys_root
        keys = [await host.element(root, size, at, MAX_KEY_BYTES) for at in range(size)]
        if any(not key for key in keys) or any(a >= b for a, b in pairwise(keys)):
            raise incorrect_data("the keys of a map are not in strict order")
        return cls(host, commitment, {key: at for at, key in enumerate(keys)})

    def keys_of(self, kind: int) -> Iterator[bytes]:
        """The key data of every field of this kind, in order."""
        return (key[1:] for key in self._places if key[0] == kind)

    async def leaf(self, kind: int) -> bytes | None:
        """The proven hash of a value, by which it can be recognised; None where there is no such field."""
        place = self._places.get(bytes((kind,)))
        return None if place is None else await self._leaf(place)

    async def get(self, kind: int, limit: int, key_data: bytes = b"") -> bytes | None:
        """The value of a field, of at most `limit` bytes; None where there is none."""
        place = self._places.get(bytes((kind,)) + key_data)
        return None if place is None else await self._host.element_of(await self._leaf(place), limit)

    async def require(self, kind: int, length: int) -> bytes:
        """The value of a field that must be there, with exactly this length."""
        value = await self.get(kind, length)
        if value is None or len(value) != length:
            raise incorrect_data(f"field 0x{kind:02x} is missing or of a wrong length")
        return value

    async def _leaf(self, place: int) -> bytes:
        return await self._host.leaf(self._commitment.values_root, self._commitment.size, place)


async def open_map(host: Host, root: bytes, size: int, index: int) -> PsbtMap:
    """The map at this place of the committed list of inputs or outputs."""
    reader = Reader(await host.element(root, size, index, _COMMITMENT_LIMIT))
    commitment = Commitment.read(reader)
    reader.finish()
    return await PsbtMap.open(host, commitment)
