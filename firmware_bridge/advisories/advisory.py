"""Known flaws of firmware versions, and whether one concerns a device."""

from dataclasses import dataclass, field
from enum import StrEnum, unique

from firmware_bridge.model import Device, Family
from multisig.firmware import Span, Version


@unique
class Severity(StrEnum):
    """Worst first."""

    STOP_USING = "stop-using"
    """A computer or web page that an attacker controls is enough to take money or keys."""
    WARN = "warn"


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
