"""Firmware versions, compared as numbers (5.10 is newer than 5.9), and ranges of them.

A maker is a word such as ``coldcard``.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Self

MAIN: Final = ""
# Release lines with their own numbering, by suffix: a Coldcard Q's 1.5.0Q is as new as an Mk4's 5.6.0, and
# X marks the previews ("Edge") of both, 6.x.
_LINES: Final[Mapping[str, frozenset[str]]] = {"coldcard": frozenset({MAIN, "Q", "X", "QX"})}
_ONE_LINE: Final = frozenset({MAIN})
_FORM: Final = re.compile(r"([0-9]{1,6}(?:\.[0-9]{1,6}){1,3})([A-Z]{0,2})")
_PARTS: Final = 4


def numbers(text: str) -> tuple[int, ...] | None:
    """Two to four numbers with dots, padded to four; None for anything else."""
    found = _FORM.fullmatch(text)
    return None if found is None or found[2] != MAIN else _padded(found[1])


def _padded(text: str) -> tuple[int, ...]:
    parts = [int(part) for part in text.split(".")]
    return (*parts, *[0] * (_PARTS - len(parts)))


@dataclass(frozen=True)
class Version:
    """One release: its line and its numbers."""

    line: str
    numbers: tuple[int, ...]

    @classmethod
    def parse(cls, maker: str, text: str | None) -> Self | None:
        """None if it is not comparable: not reported, a build between releases, or an unknown line."""
        found = None if text is None else _FORM.fullmatch(text)
        if found is None or found[2] not in _LINES.get(maker, _ONE_LINE):
            return None
        return cls(found[2], _padded(found[1]))


@dataclass(frozen=True)
class Span:
    """Versions of a line of releases, from `start` (included) to `end` (excluded); None means no bound."""

    line: str = MAIN
    start: tuple[int, ...] | None = None
    end: tuple[int, ...] | None = None

    def __contains__(self, version: Version) -> bool:
        return (
            version.line == self.line
            and (self.start is None or self.start <= version.numbers)
            and (self.end is None or version.numbers < self.end)
        )
