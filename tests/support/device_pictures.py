"""docs/assets/devices: the screens of each device for the guides, drawn from the virtual devices.
``python -m tests.support.device_pictures`` redraws them.

A picture has the device's words and buttons on a plain screen, without the maker's fonts and icons. The
conformance suite compares the words with the transcripts.
"""

import asyncio
import re
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from textwrap import wrap
from xml.sax.saxutils import escape

from tests.conformance.situations import play
from tests.conformance.transcripts import Screen, Transcript, load_all
from tests.support.pages import DOCS

FOLDER = DOCS / "assets" / "devices"
SITUATIONS = {"enrol": "asks about a vault", "address": "shows an address", "sign-1": "asks about a payment"}
# The newest firmware of each model.
SHOWN = {transcript.model: transcript for transcript in load_all()}
COLUMNS, LETTER, LINE, EDGE, GAP = 30, 8.4, 19, 14, 16
WIDTH = round(COLUMNS * LETTER + 2 * EDGE)


def screens(transcript: Transcript, situation: str) -> list[Screen]:
    """What the virtual device of this model shows in the situation."""
    if not transcript.entries[situation].screens:
        return []
    with tempfile.TemporaryDirectory(prefix="d") as folder:
        played = asyncio.run(play(transcript, situation, Path(folder)))
    assert played is not None
    return [screen for screen in played[0][-1].screens if screen.lines]


def words(transcript: Transcript, situation: str, shown: list[Screen]) -> str:
    """The alternative text of the picture; addresses and keys are shortened."""
    said = ". Then: ".join(" ".join(line.strip() for line in screen.lines) for screen in shown)
    said = re.sub(r"(tb1\w{6}|tpub\w{6})\w+", r"\1…", re.sub(r"[\[\]]", "", said))
    return f"{transcript.model} {transcript.firmware} {SITUATIONS[situation]}: {said}"


def picture(title: str, shown: list[Screen]) -> str:
    """SVG: the screens beside each other, in order."""
    texts = [[part for line in screen.lines for part in wrapped(line)] for screen in shown]
    height = max(map(len, texts)) * LINE + 2 * EDGE
    rows = 1 if all(len(screen.no + screen.yes) < COLUMNS - 1 for screen in shown) else 2
    whole = height + rows * LINE + EDGE
    drawn = [
        "\n".join(one_screen(index * (WIDTH + GAP), (height, whole), screen, lines))
        for index, (screen, lines) in enumerate(zip(shown, texts, strict=True))
    ]
    width = len(shown) * (WIDTH + GAP) - GAP
    size = f'width="{width}" height="{whole}" viewBox="0 0 {width} {whole}"'
    opening = (
        f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="img" font-family="monospace" font-size="14">'
    )
    return "\n".join([opening, f"<title>{escape(title)}</title>", *drawn, "</svg>\n"])


def one_screen(left: int, heights: tuple[int, int], screen: Screen, lines: list[str]) -> Iterator[str]:
    """``heights``: of the screen alone, and with the rows of buttons below."""
    height, whole = heights
    yield f'<rect x="{left}" width="{WIDTH}" height="{whole}" rx="12" fill="#3a403d"/>'
    yield f'<rect x="{left + 6}" y="6" width="{WIDTH - 12}" height="{height - 6}" rx="6" fill="#101312"/>'
    for number, line in enumerate(lines):
        yield text(left + EDGE, EDGE + 14 + number * LINE, line, "start")
    if not screen.notice:
        yield text(left + EDGE, height + LINE, screen.no, "start")
        yield text(left + WIDTH - EDGE, whole - EDGE, screen.yes, "end")


def text(x: int, y: int, said: str, anchor: str) -> str:
    at = f'x="{x}" y="{y}" fill="#f4f7f5" text-anchor="{anchor}" xml:space="preserve"'
    return f"<text {at}>{escape(said)}</text>"


def wrapped(line: str) -> list[str]:
    indent = " " * (len(line) - len(line.lstrip()))
    return wrap(line.strip(), COLUMNS - len(indent), initial_indent=indent, subsequent_indent=indent) or [""]


def pictures() -> Iterator[tuple[Path, str, str]]:
    """The path of each, the SVG, and the Markdown that shows it."""
    for transcript in SHOWN.values():
        for situation in SITUATIONS:
            if shown := screens(transcript, situation):
                title = words(transcript, situation, shown)
                model = transcript.name.removesuffix(f"-{transcript.firmware}")
                yield (
                    FOLDER / f"{model}-{situation}.svg",
                    picture(title, shown),
                    link(model, situation, title),
                )


def link(model: str, situation: str, title: str) -> str:
    """The Markdown image, for a page in a folder of `docs`."""
    return f"![{title}](../assets/devices/{model}-{situation}.svg)"


if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    for path, drawn, said in pictures():
        path.write_text(drawn, encoding="utf-8")
        sys.stdout.write(f"{said}\n")
