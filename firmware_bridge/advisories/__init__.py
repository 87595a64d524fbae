"""Firmware with known flaws (S22), from the list that comes with the package, and which firmware proves its
nonces (S20). They guarantee nothing, and a device may lie about its version: see docs/build/devices.md.
"""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum, unique
from functools import cache
from importlib.resources import files
from typing import Annotated, NamedTuple

from pydantic import BeforeValidator, TypeAdapter

from firmware_bridge.makers import MAKERS
from firmware_bridge.makers.versions import FirmwareVersion, Span
from firmware_bridge.model import Device, Family


@unique
class FlawSeverity(StrEnum):
    """Worst first."""

    STOP_USING = "stop-using"
    """A computer or web page that an attacker controls is enough to take money or keys."""
    WARN = "warn"


_Day = Annotated[str, BeforeValidator(str)]


def _span(item: Mapping[str, str]) -> Span:
    """As the list has it."""
    line = item["line"]
    start, end = (
        FirmwareVersion.of(item[bound] + line) if bound in item else None for bound in ("from", "below")
    )
    return Span(line, start, end)


@dataclass(frozen=True)
class Advisory:
    """`text` says what is wrong, `advice` what to do; `sources` are web pages, `date` is that of disclosure.

    `models`: empty means the whole family. `affected`: empty means every version.
    """

    id: str
    date: _Day
    family: Family
    severity: FlawSeverity
    text: str
    advice: str
    sources: tuple[str, ...]
    models: tuple[str, ...] = ()
    affected: tuple[Annotated[Span, BeforeValidator(_span)], ...] = ()

    def concerns(self, device: Device) -> bool:
        """Whether it concerns the device. An unknown version is concerned only by flaws of every version."""
        if device.family != self.family or (self.models and device.model not in self.models):
            return False
        version = _version(device)
        return not self.affected or (version is not None and any(version in span for span in self.affected))


def _version(device: Device) -> FirmwareVersion | None:
    return MAKERS[device.family].version(device.firmware)


def firmware_known(device: Device) -> bool:
    """Whether the device reported a version that can be compared."""
    return _version(device) is not None


class FlawList(NamedTuple):
    """`read_on`: how new the sources were when they were last read."""

    read_on: _Day
    advisory: tuple[Advisory, ...]


@cache
def packaged() -> FlawList:
    """The list that comes with the package."""
    text = files("firmware_bridge.advisories").joinpath("known_flaws.toml").read_text(encoding="utf-8")
    return TypeAdapter(FlawList).validate_python(tomllib.loads(text))


def known_flaws(device: Device) -> tuple[Advisory, ...]:
    """Known flaws of this device's firmware, the worst first. Neither the device nor the network is asked.

    An empty answer proves nothing: see `firmware_known` for whether the version could be compared at all.
    """
    flaws = [entry for entry in packaged().advisory if entry.concerns(device)]
    return tuple(sorted(flaws, key=lambda entry: list(FlawSeverity).index(entry.severity)))


def has_anti_exfil(device: Device) -> bool:
    """Whether every signature's nonce is proven to include the host's part, so that it was not chosen to leak
    the key ("Dark Skippy", 2024). It counts only where our drivers, with HWI 3.2.0, verify it: the protocols
    of Trezor, Coldcard and Ledger have no message for it. False for unknown firmware.
    """
    first, version = MAKERS[device.family].proves_nonces, _version(device)
    return first is not None and version is not None and FirmwareVersion.of(first) <= version
