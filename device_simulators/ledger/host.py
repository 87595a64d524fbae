"""The host as the app sees it: a store that is asked for pieces of what it has committed to.

The app follows every Merkle proof to its root. Here proofs are fetched, piece by piece as by the app, and
believed: the host is HWI's own code. The maps of a PSBT are commitments too: their keys, in order, and the
values that are asked for. Source: app-bitcoin-new, doc/merkle.md and doc/bitcoin.md (client commands).
"""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import IntEnum
from typing import Self

from device_simulators.ledger.apdu import MAX_DATA_BYTES
from device_simulators.ledger.work import LedgerWork, incorrect_data
from multisig.wire import Reader, compact_size

HASH_BYTES = 32


class ClientCommand(IntEnum):
    YIELD = 0x10
    GET_PREIMAGE = 0x40
    GET_MERKLE_LEAF_PROOF = 0x41
    GET_MORE_ELEMENTS = 0xA0


class Host:
    """Every method raises Refused where the host gives more than the app takes, or nothing."""

    def __init__(self, work: LedgerWork) -> None:
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
        return bytes(data)

    async def leaf(self, root: bytes, size: int, index: int) -> bytes:
        """The hash at this place of a committed list."""
        place = compact_size(size) + compact_size(index)
        request = bytes((ClientCommand.GET_MERKLE_LEAF_PROOF,)) + root + place
        answer = Reader(await self._work.ask_host(request))
        leaf, length, given = answer.take(HASH_BYTES), answer.uint(1), answer.uint(1)
        while given < length:
            given += len(await self._more(HASH_BYTES)) // HASH_BYTES
        return leaf

    async def element(self, root: bytes, size: int, index: int, limit: int) -> bytes:
        """The element at this place of a committed list, of at most `limit` bytes."""
        return await self.element_of(await self.leaf(root, size, index), limit)

    async def element_of(self, leaf: bytes, limit: int) -> bytes:
        """The element behind a leaf. A first byte keeps leaves and nodes apart."""
        return (await self.preimage(leaf, limit + 1))[1:]

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
    """A committed map whose keys are read. Values are fetched when they are asked for."""

    def __init__(self, host: Host, commitment: Commitment, places: dict[bytes, int]) -> None:
        self._host = host
        self._commitment = commitment
        self._places = places

    @classmethod
    async def open(cls, host: Host, commitment: Commitment) -> Self:
        """Read every key."""
        size, root = commitment.size, commitment.keys_root
        keys = [await host.element(root, size, at, MAX_KEY_BYTES) for at in range(size)]
        return cls(host, commitment, {key: at for at, key in enumerate(keys)})

    def keys_of(self, kind: int) -> Iterator[bytes]:
        """The key data of every field of this kind, in order."""
        return (key[1:] for key in self._places if key[0] == kind)

    async def leaf(self, kind: int) -> bytes | None:
        """The hash of a value, by which it can be recognised; None where there is no such field."""
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
