"""A film of a device's QR codes, which Chromium uses in place of a camera."""

from collections.abc import Sequence
from pathlib import Path

import segno

WIDE, HIGH = 640, 480
# Side of the code in pixels, at most.
_FILLED = 440
_SECONDS = 4
_WHITE, _GREY = 235, 128


def film(path: Path, texts: Sequence[str]) -> None:
    """Uncompressed (YUV4MPEG2, 4:2:0), a quarter of a second for each text."""
    colours = bytes([_GREY]) * (WIDE * HIGH // 2)
    with path.open("wb") as file:
        file.write(f"YUV4MPEG2 W{WIDE} H{HIGH} F{_SECONDS}:1 Ip A1:1 C420\n".encode())
        for text in texts:
            file.write(b"FRAME\n" + _picture(text) + colours)


def _picture(text: str) -> bytes:
    """The code in the middle of a grey picture, as brightness."""
    modules = [bytes(row) for row in segno.make(text, error="L", micro=False).matrix_iter(border=4)]
    scale = _FILLED // len(modules)
    side = scale * len(modules)
    left, above = (WIDE - side) // 2, (HIGH - side) // 2
    wall = bytes([_GREY])
    rows = [wall * WIDE] * above
    for modules_of_row in modules:
        row = b"".join((b"\x10" if dark else bytes([_WHITE])) * scale for dark in modules_of_row)
        rows += [wall * left + row + wall * (WIDE - left - side)] * scale
    rows += [wall * WIDE] * (HIGH - len(rows))
    return b"".join(rows)
