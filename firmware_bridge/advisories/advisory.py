"""Known flaws of firmware versions, and whether one concerns a device."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum, unique
from typing import Final, Self

from firmware_bridge.model import Device, Family

MAIN: Final = ""
# Lines of releases with numbers of their own are marked by letters: a Coldcard Q's 1.5.0Q is as new as an
# Mk4's 5.6.0, and 6.x are the previews ("Edge") of both.
_LINES: Final[Mapping[Family, frozenset[str]]] = {Family.COLDCARD: frozenset({MAIN, "Q", "X", "QX"})}
_ONE_LINE: Final = frozenset({MAIN})
_FORM: Final = re.compile(r"([0-9]{1,6}(?:\.[0-9]{1,6}){1,3})([A-Z]{0,2})")
_PARTS: Final = 4


def lines_of(family: Family) -> frozenset[str]:
    return _LINES.get(family, _ONE_LINE)


def numbers(text: str) -> tuple[int, ...] | None:
    """Two to four numbers with dots, padded to four; None for anything else."""
    found = _FORM.fullmatch(text)
    return None if found is None or found[2] != MAIN else _padded(found[1])


def _padded(text: str) -> tuple[int, ...]:
    parts = [int(part) for part in text.split(".")]
    return (*parts, *[0] * (_PARTS - len(parts)))


@dataclass(frozen=True)
class Version:
    """One release: its line and its numbers, compared as numbers (5.10 is newer than 5.9)."""

    line: str
    numbers: tuple[int, ...]

    @classmethod
    def parse(cls, family: Family, text: str | None) -> Self | None:
        """None if it cannot be compared: not reported, a build between releases, or an unknown line."""
        found = None if text is None else _FORM.fullmatch(text)
        if found is None or found[2] not in lines_of(family):
            return None
        return cls(found[2], _padded(found[1]))


@unique
class Severity(StrEnum):
    """Worst first."""

    STOP_USING = "stop-using"
    """A computer or web page that an attacker controls is enough to take money or keys."""
    WARN = "warn"


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


@dataclass(frozen=True)
class Advisory:
    """`text` tells the person what is wrong, `advice` what to do; `sources` are web pages.

    `models`: beginnings of model names; empty means the whole family. `affected`: empty means every version.
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
        """Whether it concerns the device. An unknown version is concerned only by flaws of every version."""
        if device.family != self.family or not self._names(device.model):
            return False
        version = Version.parse(device.family, device.firmware)
        return not self.affected or (version is not None and any(version in span for span in self.affected))

    def _names(self, model: str) -> bool:
        return not self.models or model.startswith(self.models)


@dataclass(frozen=True)
class Advisories:
    """A list of advisories. `serial` grows with every change."""

    serial: int
    entries: tuple[Advisory, ...] = field(repr=False)

    def about(self, device: Device) -> tuple[Advisory, ...]:
        """Those that concern the device, the worst first."""
        order = list(Severity)
        found = [entry for entry in self.entries if entry.concerns(device)]
        return tuple(sorted(found, key=lambda entry: order.index(entry.severity)))


def firmware_known(device: Device) -> bool:
    """Whether the device reported a version that can be compared."""
    return Version.parse(device.family, device.firmware) is not None
