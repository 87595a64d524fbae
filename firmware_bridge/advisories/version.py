"""Versions as the makers spell them, compared as numbers: 5.10 is newer than 5.9."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Self

from firmware_bridge.model import Family

MAIN: Final = ""
# A maker with several lines of releases tells them apart by letters behind the numbers, and counts each by itself: a
# Coldcard Q's 1.5.0Q is as new as an Mk4's 5.6.0, and 6.x belongs to the previews ("Edge") of both.
_LINES: Final[Mapping[Family, frozenset[str]]] = {Family.COLDCARD: frozenset({MAIN, "Q", "X", "QX"})}
_ONE_LINE: Final = frozenset({MAIN})
_FORM: Final = re.compile(r"([0-9]{1,6}(?:\.[0-9]{1,6}){1,3})([A-Z]{0,2})")
_PARTS: Final = 4


def lines_of(family: Family) -> frozenset[str]:
    return _LINES.get(family, _ONE_LINE)


def numbers(text: str) -> tuple[int, ...] | None:
    """Two to four numbers with dots, as four; None for anything else."""
    found = _FORM.fullmatch(text)
    return None if found is None or found[2] != MAIN else _padded(found[1])


def _padded(text: str) -> tuple[int, ...]:
    parts = [int(part) for part in text.split(".")]
    return (*parts, *[0] * (_PARTS - len(parts)))


@dataclass(frozen=True)
class Version:
    """One release: which line it belongs to, and its place there."""

    line: str
    numbers: tuple[int, ...]

    @classmethod
    def parse(cls, family: Family, text: str | None) -> Self | None:
        """None where it cannot be placed: not told, a build between releases, a line that this maker does not have."""
        found = None if text is None else _FORM.fullmatch(text)
        if found is None or found[2] not in lines_of(family):
            return None
        return cls(found[2], _padded(found[1]))
