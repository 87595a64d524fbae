"""CSV (RFC 4180) in UTF-8, safe to open in a spreadsheet.

A spreadsheet runs a cell that begins like a formula. A cell of words that does is written with an apostrophe
before it, and so is one that begins with an apostrophe itself: dropping one leading apostrophe always gives
the text back. Numbers, ids, hashes and times are ours, and are written as they are.
"""

import csv
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

# What OWASP names ("CSV Injection"), the full-width forms that spreadsheets of East Asia read alike, and the
# apostrophe, so that reading back has one meaning.
NEUTRALISED: Final = ("=", "+", "-", "@", "\uff1d", "\uff0b", "\uff0d", "\uff20", "\t", "\r", "\n", "'")


class _Line:
    """What ``csv`` writes to: it keeps the line that was written last."""

    def __init__(self) -> None:
        self.text = ""

    def write(self, text: str) -> None:
        self.text = text


def csv_lines(header: Sequence[str], rows: Iterable[Sequence[str]]) -> Iterator[str]:
    """The header and one line for each row as it comes, each ending in CRLF."""
    line = _Line()
    writer = csv.writer(line, lineterminator="\r\n")
    writer.writerow(header)
    yield line.text
    for cells in rows:
        writer.writerow(cells)
        yield line.text


def neutralise(text: str) -> str:
    return f"'{text}" if text.startswith(NEUTRALISED) else text
