"""S23: how a sound PSBT is damaged, by rule: what would be large or many is made here, and not
kept in files.
"""

from collections.abc import Callable, Mapping

from multisig.wire import compact_size, with_length

_MAGIC = 5
Maps = list[list[tuple[bytes, bytes]]]


def damaged(psbt: bytes, rule: str, amount: int = 0) -> bytes:
    """``amount`` is what the rule makes of it: a position, a number of bytes or of fields."""
    return RULES[rule](psbt, amount)


def _truncated(psbt: bytes, left_out: int) -> bytes:
    return psbt[:-left_out]


def _cut(psbt: bytes, kept: int) -> bytes:
    return psbt[:kept]


def _followed(psbt: bytes, more: int) -> bytes:
    return psbt + bytes(more)


def _flipped(psbt: bytes, bit: int) -> bytes:
    changed = bytearray(psbt)
    changed[bit // 8] ^= 1 << bit % 8
    return bytes(changed)


def _padded(psbt: bytes, size: int) -> bytes:
    """With an unknown field of so many bytes in the global map."""
    return _with_globals(psbt, [(b"\xfc\x00", bytes(size))])


def _many_fields(psbt: bytes, count: int) -> bytes:
    """Unknown fields in the first input's map."""
    maps = _maps(psbt)
    maps[1] += [(b"\xfc" + number.to_bytes(4), b"") for number in range(count)]
    return _joined(maps)


def _repeated(psbt: bytes, which: int) -> bytes:
    """The first field of this map once more, with another value: readers differ in which of the two they
    take.
    """
    maps = _maps(psbt)
    key, value = maps[which][0]
    maps[which].append((key, value[:-1] + bytes((value[-1] ^ 1,))))
    return _joined(maps)


def _again(psbt: bytes, which: int) -> bytes:
    """The first field of this map once more, the same."""
    maps = _maps(psbt)
    maps[which].append(maps[which][0])
    return _joined(maps)


def _long_form(psbt: bytes, _amount: int) -> bytes:
    """The first key's length in three bytes instead of one."""
    return psbt[:_MAGIC] + b"\xfd" + psbt[_MAGIC : _MAGIC + 1] + b"\x00" + psbt[_MAGIC + 1 :]


def _announced(psbt: bytes, bytes_to_come: int) -> bytes:
    """A first key of an absurd length."""
    return psbt[:_MAGIC] + compact_size(bytes_to_come) + psbt[_MAGIC + 1 :]


def _version(psbt: bytes, number: int) -> bytes:
    return _with_globals(psbt, [(b"\xfb", number.to_bytes(4, "little"))])


def _of_version_2(psbt: bytes, _amount: int) -> bytes:
    """A version 2 field that some readers let replace the transaction's output."""
    maps = _maps(psbt)
    maps[-1].append((b"\x03", (12_345).to_bytes(8, "little")))
    return _joined(maps)


def _deep(psbt: bytes, steps: int) -> bytes:
    """An account key whose path has so many steps."""
    maps = _maps(psbt)
    account = next(i for i, (key, _value) in enumerate(maps[0]) if key[0] == 1)
    key, value = maps[0][account]
    maps[0][account] = (key, value[:4] + bytes(4 * steps))
    return _joined(maps)


def _without_maps(psbt: bytes, count: int) -> bytes:
    """Fewer maps than the transaction has outputs."""
    return _joined(_maps(psbt)[:-count])


def _with_globals(psbt: bytes, fields: list[tuple[bytes, bytes]]) -> bytes:
    maps = _maps(psbt)
    maps[0] += fields
    return _joined(maps)


def _maps(psbt: bytes) -> Maps:
    """Its maps, by a reader of their own: no length in a sound PSBT of the corpus has more than
    three bytes.
    """
    maps: Maps = [[]]
    at = _MAGIC
    while at < len(psbt):
        key, at = _sized(psbt, at)
        if not key:
            maps.append([])
            continue
        value, at = _sized(psbt, at)
        maps[-1].append((key, value))
    return maps[:-1]


def _sized(data: bytes, at: int) -> tuple[bytes, int]:
    length, start = data[at], at + 1
    if length == 0xFD:
        length, start = int.from_bytes(data[start : start + 2], "little"), start + 2
    return data[start : start + length], start + length


def _joined(maps: Maps) -> bytes:
    parts = [b"psbt\xff"]
    for fields in maps:
        parts += [with_length(key) + with_length(value) for key, value in fields]
        parts.append(b"\x00")
    return b"".join(parts)


RULES: Mapping[str, Callable[[bytes, int], bytes]] = {
    "again": _again,
    "announced": _announced,
    "cut": _cut,
    "deep": _deep,
    "flipped": _flipped,
    "followed": _followed,
    "long-form": _long_form,
    "many-fields": _many_fields,
    "of-version-2": _of_version_2,
    "padded": _padded,
    "repeated": _repeated,
    "truncated": _truncated,
    "version": _version,
    "without-maps": _without_maps,
}
