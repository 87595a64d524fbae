"""The host as the device sees it: a store that is asked for pieces of what it has committed to, and never believed.

Client commands of app-bitcoin-new, doc/bitcoin.md. Every preimage is hashed and every proof followed to its root.
"""

from enum import IntEnum
from hashlib import sha256

from device_simulators.ledger.apdu import MAX_DATA_BYTES
from device_simulators.ledger.errors import incorrect_data
from device_simulators.ledger.merkle import HASH_BYTES, is_right_child_at, leaf_preimage, root_of_proof
from device_simulators.ledger.work import Work
from multisig.wire import Reader, compact_size


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
        """What did not fit into the last answer: some at least, so that a host which gives nothing is not asked for ever."""
        answer = Reader(await self._work.ask_host(bytes((ClientCommand.GET_MORE_ELEMENTS,))))
        count = answer.uint(1)
        if not count or answer.uint(1) != element_bytes or count * element_bytes > MAX_DATA_BYTES:
            raise incorrect_data("the host gave elements of another length, or none")
        data = answer.take(count * element_bytes)
        answer.finish()
        return data
