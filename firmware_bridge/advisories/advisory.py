"""What is known to be wrong with which firmware, and whether it concerns a device."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum, unique
from typing import Final, Self

from firmware_bridge.model import Device, Family

# FOLDED from firmware_bridge/advisories/version.py: Versions as the makers spell them, compared as numbers: 5.10 is newer than 5.9.


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


@unique
class Severity(StrEnum):
    """Worst first."""

    STOP_USING = "stop-using"
    """A computer or web page under somebody else's control is enough to take money or keys."""
    WARN = "warn"


@dataclass(frozen=True)
class Span:
    """Versions of one line of releases, from `start` (included) to `end` (not included); None is without a bound."""

    line: str = MAIN
    start: tuple[int, ...] | None = None
    end: tuple[int, ...] | None = None

    def __contains__(self, version: Version) -> bool:
        return (
            version.line == self.line
            and (self.start is None or self.start <= version.numbers)
            and (self.end is None or version.numbers < self.end)
        )


@dataclass(frozen=True)
class Advisory:
    """`text` says to the person what is wrong, `advice` what to do; `sources` are the pages where it was read.

    `models`: beginnings of model names; none means the whole family. `affected`: none means every version.
    """

    id: str
    family: Family
    severity: Severity
    text: str
    advice: str
    sources: tuple[str, ...]
    models: tuple[str, ...] = ()
    affected: tuple[Span, ...] = ()

    def concerns(self, device: Device) -> bool:
        """Of a version that cannot be placed, only what is wrong with every version is said."""
        if device.family != self.family or not self._names(device.model):
            return False
        version = Version.parse(device.family, device.firmware)
        return not self.affected or (version is not None and any(version in span for span in self.affected))

    def _names(self, model: str) -> bool:
        return not self.models or model.startswith(self.models)


@dataclass(frozen=True)
class Advisories:
    """A whole list. `serial` grows with every change."""

    serial: int
    entries: tuple[Advisory, ...] = field(repr=False)

    def about(self, device: Device) -> tuple[Advisory, ...]:
        """The worst first, else in the list's order."""
        order = list(Severity)
        found = [entry for entry in self.entries if entry.concerns(device)]
        return tuple(sorted(found, key=lambda entry: order.index(entry.severity)))


def firmware_known(device: Device) -> bool:
    """Whether the device told a version that the list can place."""
    return Version.parse(device.family, device.firmware) is not None
