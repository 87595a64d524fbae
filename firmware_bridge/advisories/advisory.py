"""What is known to be wrong with which firmware, and whether it concerns a device."""

from dataclasses import dataclass, field
from enum import StrEnum, unique

from firmware_bridge.advisories.version import MAIN, Version
from firmware_bridge.model import Device, Family


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
