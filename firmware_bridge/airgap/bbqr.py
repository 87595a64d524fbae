"""BBQr: a file as a series of QR codes (Coinkite's BBQr.md; public domain).

A text is `B$`, a letter for the encoding, one for the content, the number of parts and the part's number in
two base-36 digits each, and the data. The format has no checksum: a QR code has its own.
"""

import base64
import binascii
import re
import zlib
from dataclasses import dataclass
from enum import Enum, unique
from typing import Final, Self

from firmware_bridge.airgap.transfer import (
    MAX_BYTES,
    MAX_PARTS,
    MAX_TEXT,
    BadTransfer,
    Content,
    OtherTransfer,
    Received,
    Transfer,
)

PREFIX: Final = "B$"
HEADER: Final = 8
# What a QR code of version 27 holds at level L, as BBQr.md, "Optimizations", advises.
DEFAULT_CHARACTERS: Final = 2_132
# BBQr.md, "Advanced Encodings": fixed, so that small devices know the memory needed. Negative: no header.
_WINDOW_BITS: Final = -10
_BASE_36: Final = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"
_PART = re.compile(r"B\$([0-9A-Z])([0-9A-Z])([0-9A-Z]{2})([0-9A-Z]{2})([0-9A-Z]+)", re.ASCII)


@unique
class BbqrEncoding(Enum):
    """How bytes become text. Every part holds whole bytes: a multiple of `characters`."""

    HEX = "H"
    BASE32 = "2"
    ZLIB = "Z"
    """zlib, then base 32."""

    @property
    def characters(self) -> int:
        return 2 if self is BbqrEncoding.HEX else 8


def split(
    data: bytes,
    content: Content,
    *,
    encoding: BbqrEncoding = BbqrEncoding.ZLIB,
    max_characters: int = DEFAULT_CHARACTERS,
) -> tuple[str, ...]:
    """The texts of the series, of equal length except the last. Data that zlib does not shrink is not
    compressed.

    :raises ValueError: no data, too few characters per part, or too many parts.
    """
    if not data or not HEADER + 8 <= max_characters <= MAX_TEXT:
        raise ValueError(f"there must be data, and {HEADER + 8} to {MAX_TEXT} characters for each part")
    encoding, text = _encode(data, encoding)
    room = (max_characters - HEADER) // encoding.characters * encoding.characters
    # Parts of even length: a short last one would be a smaller picture.
    parts = -(-len(text) // room)
    length = -(-len(text) // (parts * encoding.characters)) * encoding.characters
    pieces = [text[start : start + length] for start in range(0, len(text), length)]
    if len(pieces) > MAX_PARTS:
        raise ValueError(
            f"{len(data)} bytes are too many for {MAX_PARTS} parts of {max_characters} characters"
        )
    head = f"{PREFIX}{encoding.value}{content.value}{_to_base_36(len(pieces))}"
    return tuple(f"{head}{_to_base_36(number)}{piece}" for number, piece in enumerate(pieces))


def _encode(data: bytes, encoding: BbqrEncoding) -> tuple[BbqrEncoding, str]:
    if encoding is BbqrEncoding.HEX:
        return encoding, data.hex().upper()
    if encoding is BbqrEncoding.ZLIB:
        deflate = zlib.compressobj(level=9, wbits=_WINDOW_BITS)
        compressed = deflate.compress(data) + deflate.flush()
        if len(compressed) < len(data):
            return encoding, _to_base32(compressed)
    return BbqrEncoding.BASE32, _to_base32(data)


def _to_base32(data: bytes) -> str:
    return base64.b32encode(data).decode("ascii").rstrip("=")


def _to_base_36(number: int) -> str:
    return _BASE_36[number // 36] + _BASE_36[number % 36]


@dataclass(frozen=True)
class _Series:
    """The header fields that all parts of a transfer share."""

    encoding: BbqrEncoding
    content: Content
    count: int


@dataclass(frozen=True)
class _Part:
    series: _Series
    number: int
    data: bytes

    @classmethod
    def parse(cls, text: str) -> Self:
        """:raises BadTransfer: not a part of a BBQr series."""
        match = _PART.fullmatch(text) if len(text) <= MAX_TEXT else None
        if match is None:
            raise BadTransfer("This QR code is not part of a BBQr series.")
        try:
            series = _Series(BbqrEncoding(match[1]), Content(match[2]), int(match[3], 36))
        except ValueError:
            raise BadTransfer("This kind of BBQr series is not supported.", detail=text[:HEADER]) from None
        number = int(match[4], 36)
        if number >= series.count:
            raise BadTransfer(f"This QR code says that it is part {number + 1} of {series.count}.")
        return cls(series, number, _decode(match[5], series.encoding))


def _decode(text: str, encoding: BbqrEncoding) -> bytes:
    try:
        if encoding is BbqrEncoding.HEX:
            return base64.b16decode(text)
        data = base64.b32decode(text + "=" * (-len(text) % 8))
    except (binascii.Error, ValueError):
        raise BadTransfer("A part of this BBQr series does not hold whole bytes.") from None
    if _to_base32(data) != text:
        raise BadTransfer("A part of this BBQr series does not hold whole bytes.")
    return data


class BbqrAssembler:
    """Assembles one BBQr series of at most `MAX_BYTES`."""

    def __init__(self) -> None:
        self._series: _Series | None = None
        self._parts: dict[int, bytes] = {}
        # Of each part but the last, once there is one.
        self._length: int | None = None
        self.result: Transfer | None = None

    def add(self, text: str) -> Received:
        """:raises BadTransfer: not a valid part; `OtherTransfer` if it belongs to another series."""
        part = _Part.parse(text)
        if self._series is not None:
            self._require_fitting(part, self._series)
        if part.number not in self._parts:
            length = self._length_with(part)
            if len(self._parts) + 1 == part.series.count:
                # Before the part is kept: if decompression fails, the last part can be scanned again.
                whole = _join({**self._parts, part.number: part.data}, part.series)
                self.result = Transfer(part.series.content, whole)
            self._series, self._length = part.series, length
            self._parts[part.number] = part.data
        return Received(len(self._parts), part.series.count)

    def _require_fitting(self, part: _Part, series: _Series) -> None:
        if part.series != series:
            raise OtherTransfer
        if self._parts.get(part.number, part.data) != part.data:
            raise OtherTransfer(f"Part {part.number + 1} came with two contents: two series are mixed up.")

    def _length_with(self, part: _Part) -> int | None:
        """All parts are equally long, except a shorter last one: the total length is known early.

        :raises OtherTransfer, BadTransfer: with this new part it is not so, or too much.
        """
        end = part.series.count - 1
        if part.number == end:
            length, last = self._length, len(part.data)
        else:
            length, last = len(part.data), len(self._parts.get(end, b""))
        if self._length not in {None, length} or (length is not None and last > length):
            raise OtherTransfer("The parts of this series have different lengths: two series are mixed up.")
        if (length or 0) * end + last > MAX_BYTES:
            raise BadTransfer(f"This series carries more than {MAX_BYTES} bytes.")
        return length


def _join(parts: dict[int, bytes], series: _Series) -> bytes:
    data = b"".join(parts[number] for number in range(series.count))
    return _inflate(data) if series.encoding is BbqrEncoding.ZLIB else data


def _inflate(data: bytes) -> bytes:
    inflate = zlib.decompressobj(wbits=_WINDOW_BITS)
    try:
        opened = inflate.decompress(data, MAX_BYTES + 1)
    except zlib.error as error:
        raise BadTransfer("The data of this series cannot be decompressed.", detail=str(error)) from None
    if len(opened) > MAX_BYTES:
        raise BadTransfer(f"This series carries more than {MAX_BYTES} bytes.")
    if not inflate.eof or inflate.unused_data:
        raise BadTransfer("The data of this series is cut off, or has trailing bytes.")
    return opened
