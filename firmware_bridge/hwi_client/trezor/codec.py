"""Trezor's messages as bytes, faster than HWI writes them: the same bytes, from a plan made once for each kind of message.

HWI's encoder walks every nested message twice at every level, to learn its length first, and looks each field's type up by name;
at 50 inputs that was four fifths of the host's time. What is read stays HWI's: it is short, and comes from a device.
"""

from collections.abc import Callable
from enum import IntEnum
from functools import cache
from typing import Any, Final

from hwilib.devices.trezorlib import messages, protobuf
from hwilib.devices.trezorlib.mapping import ProtobufMapping

_UNSIGNED_BITS: Final = {"uint32": 32, "uint64": 64}

_Write = Callable[[bytearray, Any], None]
_Step = tuple[str, bool, bytes, _Write]
"""One field: its name, whether it repeats, its key on the wire, and how a value of it is written."""


class Codec(ProtobufMapping):  # type: ignore[misc]  # HWI is untyped
    """trezorlib's table of messages with another encoder."""

    def encode(self, msg: Any) -> tuple[int, bytes]:
        number = msg.MESSAGE_WIRE_TYPE
        if number is None:
            raise ValueError("a message without a number of its own")
        return number, bytes(encode(msg))


def encode(message: Any) -> bytearray:
    """:raises ValueError: a value that its field cannot hold, or a required one that is missing."""
    out = bytearray()
    for name, repeated, key, write in _plan(message.__class__):
        value = getattr(message, name, None)
        if value is None:
            continue
        for item in value if repeated else (value,):
            out += key
            write(out, item)
    return out


@cache
def _plan(kind: type) -> tuple[_Step, ...]:
    return tuple(
        (field.name, field.repeated, _varint(tag << 3 | field.wire_type), _writer(field))
        for tag, field in kind.FIELDS.items()  # type: ignore[attr-defined]  # HWI is untyped
    )


def _writer(field: Any) -> _Write:
    if field.type in _UNSIGNED_BITS:
        return _number_writer(field.name, _UNSIGNED_BITS[field.type])
    if field.type in _PLAIN:
        return _PLAIN[field.type]
    kind = protobuf.get_field_type_object(field)
    if kind is None:
        # Signed numbers: of other coins only.
        return _refuse
    return _enum_writer(field.name, kind) if issubclass(kind, IntEnum) else _message_writer(field.name, kind)


def _varint(value: int) -> bytes:
    out = bytearray()
    _write_varint(out, value)
    return bytes(out)


def _write_varint(out: bytearray, value: int) -> None:
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)


def _number_writer(name: str, bits: int) -> _Write:
    def write(out: bytearray, value: int) -> None:
        if not 0 <= value < 1 << bits:
            raise ValueError(f"{name} does not fit into {bits} bits")
        _write_varint(out, value)

    return write


def _enum_writer(name: str, kind: type[IntEnum]) -> _Write:
    known = frozenset(kind)

    def write(out: bytearray, value: int) -> None:
        if value not in known:
            raise ValueError(f"{name} is no {kind.__name__}")
        _write_varint(out, value)

    return write


def _message_writer(name: str, kind: type) -> _Write:
    def write(out: bytearray, value: Any) -> None:
        if not isinstance(value, kind):
            raise ValueError(f"{name} is no {kind.__name__}")  # noqa: TRY004 - as HWI's encoder has it
        _write_bytes(out, encode(value))

    return write


def _write_bool(out: bytearray, value: object) -> None:
    out.append(bool(value))


def _write_bytes(out: bytearray, value: bytes | bytearray) -> None:
    if not isinstance(value, bytes | bytearray):
        raise ValueError("no bytes where bytes are due")  # noqa: TRY004 - REQUIRED_FIELD_PLACEHOLDER comes here, too
    _write_varint(out, len(value))
    out += value


def _write_text(out: bytearray, value: str) -> None:
    _write_bytes(out, value.encode())


def _refuse(_out: bytearray, _value: object) -> None:
    raise ValueError("a kind of number that is not in use here")


_PLAIN: Final[dict[str, _Write]] = {"bool": _write_bool, "bytes": _write_bytes, "string": _write_text}

CODEC: Final = Codec.from_module(messages)
