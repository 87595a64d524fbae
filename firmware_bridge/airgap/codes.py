"""QR codes: files as series of texts, their pictures, and the scanner that reads a device's screen."""

from collections.abc import Callable, Iterable
from enum import StrEnum, unique
from io import BytesIO, StringIO
from itertools import islice
from typing import Any, Final

from firmware_bridge.airgap import bbqr, handoff, ur
from firmware_bridge.airgap.transfer import (
    MAX_PARTS,
    MAX_TEXT,
    Assembler,
    BadTransfer,
    Content,
    OtherTransfer,
    Received,
    TooMuchForCodes,
    Transfer,
)

# BBQr.md, "ECC Levels": the lowest level holds the most, and a screen has no dirt.
_LEVEL: Final = "L"


@unique
class PictureFormat(StrEnum):
    SVG = "svg"
    PNG = "png"
    TERMINAL = "txt"
    """Half blocks in UTF-8, two dots per character, for light and dark terminals."""


def draw(
    text: str, picture: PictureFormat = PictureFormat.SVG, *, scale: int = 4, version: int | None = None
) -> bytes:
    """A QR code with `scale` dots per module. A fixed `version` keeps a series at one size.

    :raises ValueError: the text does not fit.
    """
    code = _make(text, version)
    if picture is PictureFormat.TERMINAL:
        drawn = StringIO()
        code.terminal(drawn, compact=True)
        return drawn.getvalue().encode()
    content = BytesIO()
    code.save(content, kind=picture.value, scale=scale, dark="black", light="white")
    return content.getvalue()


def version_of(texts: Iterable[str]) -> int:
    """The smallest QR version that holds each text of a series, to draw it at one size.

    The texts of a series have one alphabet, so that the longest takes the most room.

    :raises ValueError: there are no texts, or one does not fit.
    """
    return int(_make(max(texts, key=len), None).version)


def _make(text: str, version: int | None) -> Any:
    import segno  # Here: a daemon that draws no code does not load it.

    return segno.make(text, error=_LEVEL, version=version, micro=False, boost_error=False)


@unique
class CodeSeries(StrEnum):
    """How a file becomes a series of QR codes."""

    BBQR = "bbqr"
    """Coldcard Q, and programs that follow it."""
    UR = "ur"
    """UR 2: Jade, Keystone, Passport, SeedSigner."""


# As many mixed parts of the fountain as plain ones: they make up for what a camera missed, without a second
# round.
_UR_ROUNDS: Final = 2
# The header and checksum of a UR's part take this many characters at most, and each byte two.
_UR_HEADER: Final = 100


def series_of(data: bytes, content: Content, series: CodeSeries, max_characters: int) -> tuple[str, ...]:
    """One round of a file's series, each text of at most `max_characters`: show it in a loop.

    :raises TooMuchForCodes: it takes more parts than a series has.
    """
    try:
        if series is CodeSeries.BBQR:
            return bbqr.split(data, content, max_characters=max_characters)
        fragment = max(10, (max_characters - _UR_HEADER) // 2)
        # UR has no type for text and JSON: they travel as plain bytes.
        kind = content if content is Content.PSBT else Content.BINARY
        parts = -(-(len(data) + 5) // fragment)
        # What fits into one part is one text, repeated.
        texts = islice(ur.split(data, kind, max_fragment=fragment), _UR_ROUNDS * parts)
        return tuple(dict.fromkeys(texts))
    except ValueError as error:
        raise TooMuchForCodes(detail=str(error)) from error


_FORMATS: Final[dict[str, Callable[[], Assembler]]] = {
    bbqr.PREFIX: bbqr.BbqrAssembler,
    ur.PREFIX: ur.UrAssembler,
}


class _Bare:
    """One QR code without a header, as a Coldcard Q shows a small PSBT."""

    def __init__(self, content: Content = Content.PSBT) -> None:
        self._content = content
        self.result: Transfer | None = None

    def add(self, text: str) -> Received:
        if len(text) > MAX_TEXT or not text.isascii():
            raise BadTransfer("The content of this QR code is not supported.")
        carried = text.encode("ascii")
        psbt = self._content is Content.PSBT
        transfer = Transfer(self._content, handoff.decode_psbt(carried) if psbt else carried)
        if self.result not in {None, transfer}:
            raise OtherTransfer("This QR code holds other content than the one before.")
        self.result = transfer
        return Received(1, 1)


class Scanner:
    """Reads one transfer: BBQr, UR, or one QR code without a header. The first valid text decides the format.

    A single code without a header holds a PSBT, or with `Content.TEXT` any text: a key, a signature.

    ::

        scanner = Scanner()
        while scanner.result is None:
            try:
                received = scanner.add(await camera.next_text())
            except BridgeError as error:
                show(str(error), error.hint)
    """

    def __init__(self, bare: Content = Content.PSBT) -> None:
        self._bare = bare
        self._make: Callable[[], Assembler] | None = None
        self._assembler: Assembler | None = None

    @property
    def result(self) -> Transfer | None:
        """The content, as soon as it is complete."""
        return None if self._assembler is None else self._assembler.result

    def add(self, text: str) -> Received:
        """:raises BadTransfer: not a valid part; `OtherTransfer` if it belongs to another series.
        :raises FinalTransaction: it is a complete transaction.
        """
        make = _format_of(text)
        if self._assembler is None:
            fresh = _Bare(self._bare) if make is _Bare else make()
            received = fresh.add(text)
            self._make, self._assembler = make, fresh
            return received
        if make is not self._make:
            raise OtherTransfer("This QR code is in another format than the ones before.")
        return self._assembler.add(text)


# A series in hexadecimal digits takes twice the bytes of a file, and a fountain's mixed parts come on top.
MAX_SCANNED: Final = 4 * handoff.MAX_CARRIED
# Each costs as much as a part, also where it repeats one.
MAX_LINES: Final = 2 * MAX_PARTS


def file_of(carried: bytes) -> bytes:
    """The file itself; if its lines are the texts of a series of QR codes, what the series carries.

    :raises BadTransfer: a line is not a part of its series, or parts are missing.
    """
    start = carried[:64].lstrip()[: len(ur.PREFIX)].upper()
    if not any(start.startswith(prefix.encode()) for prefix in _FORMATS):
        return carried
    if len(carried) > MAX_SCANNED:
        raise BadTransfer(f"This is too large for a series of QR codes: {MAX_SCANNED} bytes at most.")
    # What is beyond the last of them is one line, which is no part.
    lines = carried.decode("ascii", "replace").split(maxsplit=MAX_LINES)
    scanner, received = Scanner(), None
    for line in lines:
        received = scanner.add(line)
    if scanner.result is None:
        progress = "" if received is None else f": {received.seen} of {received.wanted} were read"
        raise BadTransfer(f"Parts of this series are missing{progress}.")
    return scanner.result.data


def _format_of(text: str) -> Callable[[], Assembler]:
    start = text[: len(ur.PREFIX)].upper()
    return next((make for prefix, make in _FORMATS.items() if start.startswith(prefix)), _Bare)
