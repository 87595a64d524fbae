"""A Trezor's wire: the part of protobuf's encoding that its messages use, and messages in 64-byte chunks
(protocol version 1).

Protobuf is driven by the fields of a dataclass: varints, byte strings, text, nested messages, and lists of
them. Fields that a message here does not name are skipped, as protobuf asks. Source: protobuf's "Encoding"
page.

The first chunk is `?##`, the message number (16 bits), its length (32 bits, both big-endian) and data; every
further one is `?` and 63 bytes of data. The last is padded with zeros.
"""

import dataclasses
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, TypeVar

MAX_VARINT_BYTES = 10


class MalformedMessage(Exception):
    """Bytes that are not such a message."""


class FieldKind(Enum):
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
    kind: FieldKind | type[Message]
    repeated: bool
    required: bool
    name: str = ""


def optional(tag: int, kind: FieldKind | type[Message]) -> Any:
    """A field that may be absent: None."""
    return dataclasses.field(
        default=None, metadata={"wire": _Field(tag, kind, repeated=False, required=False)}
    )


def required(tag: int, kind: FieldKind | type[Message]) -> Any:
    """A field without which the message is malformed."""
    return dataclasses.field(metadata={"wire": _Field(tag, kind, repeated=False, required=True)})


def repeated(tag: int, kind: FieldKind | type[Message]) -> Any:
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
    """The message that these bytes encode.

    :raises MalformedMessage: truncated, a value of the wrong kind or out of range, or a required field is
    missing.
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
    if field.kind in {FieldKind.UINT32, FieldKind.UINT64, FieldKind.BOOL}:
        return _encode_varint(field.tag << 3) + _encode_varint(int(value))
    if isinstance(value, Message):
        value = encode(value)
    elif isinstance(value, str):
        value = value.encode()
    return _encode_varint(field.tag << 3 | 2) + _encode_varint(len(value)) + bytes(value)


def _encode_varint(value: int) -> bytes:
    if value < 0:
        raise ValueError("these messages have no negative numbers")
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
                raise MalformedMessage(f"wire type {wire_type} is not supported")


def _decode_items(field: _Field, raw: int | bytes) -> Iterator[Any]:
    if isinstance(raw, int) or field.kind not in {FieldKind.UINT32, FieldKind.UINT64, FieldKind.BOOL}:
        yield _decode_value(field.kind, raw)
        return
    at = 0  # packed: numbers without tags between them
    while at < len(raw):
        number, at = _decode_varint(raw, at)
        yield _decode_value(field.kind, number)


def _decode_value(kind: FieldKind | type[Message], raw: int | bytes) -> Any:
    if isinstance(raw, int):
        return _decode_number(kind, raw)
    match kind:
        case FieldKind.BYTES:
            return raw
        case FieldKind.TEXT:
            return _decode_text(raw)
        case FieldKind():
            raise MalformedMessage("bytes where a number is expected")
        case _:
            return decode(kind, raw)


def _decode_number(kind: FieldKind | type[Message], number: int) -> int | bool:
    match kind:
        case FieldKind.BOOL:
            return bool(number)
        case FieldKind.UINT32 | FieldKind.UINT64:
            if number >> kind.value:
                raise MalformedMessage(f"{number} does not fit into {kind.value} bits")
            return number
        case _:
            raise MalformedMessage("a number where bytes are expected")


def _decode_text(raw: bytes) -> str:
    try:
        return raw.decode()
    except UnicodeDecodeError:
        raise MalformedMessage("text that is not UTF-8") from None


CHUNK = 64
PING = b"PINGPING"
"""What a host sends to a UDP port to learn whether an emulator listens there; the answer is `PONG`."""
PONG = b"PONGPONG"

MAX_MESSAGE = 64 * 1024
"""Bytes. Firmware 1.14 takes 15 KiB; the largest message of a transaction here, a 15-key input, is under 3
KiB.
"""

_MAGIC = b"?##"
_HEADER = len(_MAGIC) + 2 + 4


class MalformedFrame(Exception):
    """A chunk that is not a part of a message."""


def to_chunks(number: int, payload: bytes) -> list[bytes]:
    """The chunks of one message, each of 64 bytes."""
    stream = b"##" + number.to_bytes(2, "big") + len(payload).to_bytes(4, "big") + payload
    step = CHUNK - 1
    return [(b"?" + stream[at : at + step]).ljust(CHUNK, b"\0") for at in range(0, len(stream), step)]


@dataclass
class Reassembler:
    """Collects one host's chunks into messages."""

    _number: int = 0
    _missing: int = 0
    _parts: list[bytes] = field(default_factory=list)

    def feed(self, chunk: bytes) -> tuple[int, bytes] | None:
        """The message (number, payload) that this chunk completes, if it does.

        :raises MalformedFrame: not 64 bytes, no magic, or too long a message. What was collected is dropped.
        """
        if len(chunk) != CHUNK:
            raise self._malformed(f"a chunk of {len(chunk)} bytes")
        # A host that starts over has given up what it began; so does the firmware.
        data = self._begin(chunk) if chunk.startswith(_MAGIC) else self._continue(chunk)
        taken = data[: self._missing]
        self._parts.append(taken)
        self._missing -= len(taken)
        if self._missing:
            return None
        payload = b"".join(self._parts)
        self._parts = []
        return self._number, payload

    def _begin(self, chunk: bytes) -> bytes:
        self._parts = []
        self._number = int.from_bytes(chunk[3:5], "big")
        self._missing = int.from_bytes(chunk[5:_HEADER], "big")
        if self._missing > MAX_MESSAGE:
            raise self._malformed(f"a message of {self._missing} bytes")
        return chunk[_HEADER:]

    def _continue(self, chunk: bytes) -> bytes:
        if chunk[:1] != b"?" or not self._missing:
            raise self._malformed("a chunk that continues nothing")
        return chunk[1:]

    def _malformed(self, what: str) -> MalformedFrame:
        self._parts = []
        self._missing = 0
        return MalformedFrame(what)
