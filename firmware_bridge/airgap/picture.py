"""Draws the texts of a transfer as QR codes. The only module that knows segno."""

from collections.abc import Iterable
from enum import StrEnum, unique
from io import BytesIO, StringIO
from typing import Final

import segno

# BBQr.md, "ECC Levels": a screen is perfect, so the lowest level, which holds the most.
_LEVEL: Final = "L"


@unique
class Picture(StrEnum):
    SVG = "svg"
    PNG = "png"
    TERMINAL = "txt"
    """Half blocks in UTF-8, two dots in one character; for dark letters on a light ground and the reverse."""


def draw(text: str, picture: Picture = Picture.SVG, *, scale: int = 4, version: int | None = None) -> bytes:
    """A QR code; `scale` dots wide for each of its squares. `version` keeps a series at one size.

    :raises ValueError: the text does not fit.
    """
    code = _make(text, version)
    if picture is Picture.TERMINAL:
        drawn = StringIO()
        code.terminal(drawn, compact=True)
        return drawn.getvalue().encode()
    content = BytesIO()
    code.save(content, kind=picture.value, scale=scale, dark="black", light="white")
    return content.getvalue()


def version_of(texts: Iterable[str]) -> int:
    """The smallest version that holds each of the texts; a picture that changes its size is hard to follow.

    :raises ValueError: there are no texts, or one does not fit.
    """
    return max(int(_make(text, None).version) for text in texts)


def _make(text: str, version: int | None) -> segno.QRCode:
    return segno.make(text, error=_LEVEL, version=version, micro=False, boost_error=False)
