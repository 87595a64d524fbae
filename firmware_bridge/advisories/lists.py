"""Known flaws of firmware versions, from the list that comes with the package, and whether one concerns a
device.
"""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum, unique
from functools import cache
from importlib.resources import files
from typing import Any, Final

from firmware_bridge.model import Device, Family
from multisig.firmware import Span, Version, numbers


@unique
class Severity(StrEnum):
    """Worst first."""

    STOP_USING = "stop-using"
    """A computer or web page that an attacker controls is enough to take money or keys."""
    WARN = "warn"


_WORST_FIRST: Final = list(Severity)


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
        if device.family != self.family or (self.models and not device.model.startswith(self.models)):
            return False
        version = Version.parse(device.family, device.firmware)
        return not self.affected or (version is not None and any(version in span for span in self.affected))


def firmware_known(device: Device) -> bool:
    """Whether the device reported a version that can be compared."""
    return Version.parse(device.family, device.firmware) is not None


@cache
def packaged() -> tuple[Advisory, ...]:
    """The list that comes with the package."""
    text = files("firmware_bridge.advisories").joinpath("known_flaws.toml").read_text(encoding="utf-8")
    return tuple(_advisory(item) for item in tomllib.loads(text)["advisory"])


def _advisory(item: Mapping[str, Any]) -> Advisory:
    return Advisory(
        id=item["id"],
        family=Family(item["family"]),
        severity=Severity(item["severity"]),
        text=item["text"],
        advice=item["advice"],
        sources=tuple(item["sources"]),
        models=tuple(item["models"]),
        affected=tuple(
            Span(span["line"], *(numbers(span[end]) if end in span else None for end in ("from", "below")))
            for span in item["affected"]
        ),
    )


def known_flaws(device: Device) -> tuple[Advisory, ...]:
    """Known flaws of this device's firmware, the worst first. Neither the device nor the network is asked.

    An empty answer proves nothing: see `firmware_known` for whether the version could be compared at all.
    """
    found = [entry for entry in packaged() if entry.concerns(device)]
    return tuple(sorted(found, key=lambda entry: _WORST_FIRST.index(entry.severity)))
