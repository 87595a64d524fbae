"""The maps of a PSBT as the host commits to them: their keys, strictly in order, and the values that are asked for."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Self

from device_simulators.ledger.errors import incorrect_data
from device_simulators.ledger.host import Host
from device_simulators.ledger.merkle import HASH_BYTES
from multisig.wire import Reader

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

        :raises Refused: a key stands twice or out of order.
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
        """The proven hash of a value, by which it can be known again; None where there is no such field."""
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
