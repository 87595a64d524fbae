"""Firmware versions, compared as numbers (5.10 is newer than 5.9), and ranges of them."""

import re
from dataclasses import dataclass
from typing import Final, Self

MAIN: Final = ""
_FORM: Final = re.compile(r"([0-9]{1,6}(?:\.[0-9]{1,6}){1,3})([A-Z]{0,2})")
_PARTS: Final = 4


@dataclass(frozen=True)
class FirmwareVersion:
    """One release: its line, and two to four numbers, padded to four.

    A line is a numbering of its own, by suffix: a Coldcard Q's 1.5.0Q is as new as an Mk4's 5.6.0.
    """

    line: str
    numbers: tuple[int, ...]

    @classmethod
    def parse(cls, text: str | None) -> Self | None:
        """None for anything but numbers with dots and a suffix."""
        match = None if text is None else _FORM.fullmatch(text)
        if match is None:
            return None
        parts = [int(part) for part in match[1].split(".")]
        return cls(match[2], (*parts, *[0] * (_PARTS - len(parts))))

    @classmethod
    def of(cls, text: str | None) -> Self:
        """:raises ValueError: it is no version."""
        version = cls.parse(text)
        if version is None:
            raise ValueError(f"no version: {text!r}")
        return version

    def __le__(self, other: "FirmwareVersion") -> bool:
        """Versions of two lines are not ordered."""
        return self.line == other.line and self.numbers <= other.numbers


@dataclass(frozen=True)
class Span:
    """Versions of a line of releases, from `start` (included) to `end` (excluded); None means no bound."""

    line: str = MAIN
    start: FirmwareVersion | None = None
    end: FirmwareVersion | None = None

    def __contains__(self, version: FirmwareVersion) -> bool:
        return (
            version.line == self.line
            and (self.start is None or self.start <= version)
            and (self.end is None or not self.end <= version)
        )
