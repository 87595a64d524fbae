"""The part of protobuf's encoding that Trezor's messages use, driven by the fields of a dataclass.

Varints, byte strings, text, nested messages, and lists of them. Fields that a message here does not name are skipped, as
protobuf asks. Source: protobuf's "Encoding" page.
"""

import dataclasses
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import Enum
from typing import Any, TypeVar

MAX_VARINT_BYTES = 10


class MalformedMessage(Exception):
    """Bytes that are no such message."""


class Kind(Enum):
    """How a value is written."""

    UINT32 = 32
    UINT64 = 64
    BOOL = 1
    BYTES = "bytes"
    TEXT = "text"


class Message:
    """Base of every message: a frozen dataclass whose fields were made with the helpers below."""


M = TypeVar("M", bound=Message)


@dataclass(frozen=True)
class _Field:
    tag: int
    kind: Kind | type[Message]
    repeated: bool
    required: bool
    name: str = ""


def optional(tag: int, kind: Kind | type[Message]) -> Any:
    """A field that may be absent: None."""
    return dataclasses.field(
        default=None, metadata={"wire": _Field(tag, kind, repeated=False, required=False)}
    )


def required(tag: int, kind: Kind | type[Message]) -> Any:
    """A field without which the message is malformed."""
    return dataclasses.field(metadata={"wire": _Field(tag, kind, repeated=False, required=True)})


def repeated(tag: int, kind: Kind | type[Message]) -> Any:
    """A tuple, perhaps empty."""
    return dataclasses.field(default=(), metadata={"wire": _Field(tag, kind, repeated=True, required=False)})


_tables: dict[type[Message], dict[int, _Field]] = {}


def _fields(cls: type[Message]) -> dict[int, _Field]:
    """By tag; made once for each class."""
    table = _tables.get(cls)
    if table is None:
        named = (
            dataclasses.replace(field.metadata["wire"], name=field.name)
            for field in dataclasses.fields(cls)  # type: ignore[arg-type]  # every Message is a dataclass
        )
        table = _tables[cls] = {field.tag: field for field in named}
    return table


def encode(message: Message) -> bytes:
    """The bytes of a message, fields in the order of their numbers."""
    fields = _fields(type(message))
    return b"".join(_encode_field(fields[tag], getattr(message, fields[tag].name)) for tag in sorted(fields))


def decode(cls: type[M], data: bytes) -> M:
    """The message that these bytes are.

    :raises MalformedMessage: truncated, a value of the wrong kind or out of range, or a required field is missing.
    """
    fields = _fields(cls)
    values: dict[str, Any] = {field.name: () for field in fields.values() if field.repeated}
    for tag, raw in _raw_fields(data):
        field = fields.get(tag)
        if field is None:
            continue
        if field.repeated:
            values[field.name] += tuple(_decode_items(field, raw))
        else:
            values[field.name] = _decode_value(field.kind, raw)
    missing = [field.name for field in fields.values() if field.required and field.name not in values]
    if missing:
        raise MalformedMessage(f"{cls.__name__} lacks {', '.join(missing)}")
    return cls(**values)


def _encode_field(field: _Field, value: Any) -> bytes:
    if value is None:
        return b""
    values: Iterable[Any] = value if field.repeated else (value,)
    return b"".join(_encode_value(field, item) for item in values)


def _encode_value(field: _Field, value: Any) -> bytes:
    if field.kind in {Kind.UINT32, Kind.UINT64, Kind.BOOL}:
        return _encode_varint(field.tag << 3) + _encode_varint(int(value))
    if isinstance(value, Message):
        value = encode(value)
    elif isinstance(value, str):
        value = value.encode()
    return _encode_varint(field.tag << 3 | 2) + _encode_varint(len(value)) + bytes(value)


def _encode_varint(value: int) -> bytes:
    if value < 0:
        raise ValueError("these messages know no negative numbers")
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def _decode_varint(data: bytes, at: int) -> tuple[int, int]:
    value = 0
    for count, byte in enumerate(data[at : at + MAX_VARINT_BYTES]):
        value |= (byte & 0x7F) << (7 * count)
        if byte < 0x80:
            return value, at + count + 1
    raise MalformedMessage("a number that does not end")


def _raw_fields(data: bytes) -> Iterator[tuple[int, int | bytes]]:
    """(tag, number or bytes) of each field, in the order they come."""
    at = 0
    while at < len(data):
        key, at = _decode_varint(data, at)
        match key & 7:
            case 0:
                number, at = _decode_varint(data, at)
                yield key >> 3, number
            case 2:
                length, at = _decode_varint(data, at)
                if at + length > len(data):
                    raise MalformedMessage("a field longer than its message")
                yield key >> 3, data[at : at + length]
                at += length
            case wire_type:
                raise MalformedMessage(f"wire type {wire_type} is not in use here")


def _decode_items(field: _Field, raw: int | bytes) -> Iterator[Any]:
    if isinstance(raw, int) or field.kind not in {Kind.UINT32, Kind.UINT64, Kind.BOOL}:
        yield _decode_value(field.kind, raw)
        return
    at = 0  # packed: numbers without tags between them
    while at < len(raw):
        number, at = _decode_varint(raw, at)
        yield _decode_value(field.kind, number)


def _decode_value(kind: Kind | type[Message], raw: int | bytes) -> Any:
    if isinstance(raw, int):
        return _decode_number(kind, raw)
    match kind:
        case Kind.BYTES:
            return raw
        case Kind.TEXT:
            return _decode_text(raw)
        case Kind():
            raise MalformedMessage("bytes where a number is due")
        case _:
            return decode(kind, raw)


def _decode_number(kind: Kind | type[Message], number: int) -> int | bool:
    match kind:
        case Kind.BOOL:
            return bool(number)
        case Kind.UINT32 | Kind.UINT64:
            if number >> kind.value:
                raise MalformedMessage(f"{number} does not fit into {kind.value} bits")
            return number
        case _:
            raise MalformedMessage("a number where bytes are due")


def _decode_text(raw: bytes) -> str:
    try:
        return raw.decode()
    except UnicodeDecodeError:
        raise MalformedMessage("text that is not UTF-8") from None
