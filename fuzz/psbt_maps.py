"""A PSBT's outer form only: maps of keys and values, which a strict reader may refuse."""

from collections.abc import Sequence

from multisig.wire import Reader, WireError, with_length

MAGIC = b"psbt\xff"
Field = tuple[bytes, bytes]
Map = list[Field]


def take_apart(data: bytes) -> list[Map] | None:
    """The maps that can be read; None where it does not begin like a PSBT. Truncated or trailing bytes are
    dropped.
    """
    if not data.startswith(MAGIC):
        return None
    reader, maps = Reader(data[len(MAGIC) :]), []
    try:
        while reader.remaining:
            fields: Map = []
            maps.append(fields)
            while key := reader.sized():
                fields.append((key, reader.sized()))
    except WireError:
        pass
    return maps


def put_together(maps: Sequence[Map]) -> bytes:
    parts = [MAGIC]
    for fields in maps:
        parts += [with_length(key) + with_length(value) for key, value in fields]
        parts.append(b"\x00")
    return b"".join(parts)
