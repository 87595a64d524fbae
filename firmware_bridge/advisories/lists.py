"""Known flaws of firmware versions, whether one concerns a device, and reading lists of them.

One malformed field refuses the whole list. The packaged list needs no signature; a list from outside is taken
only with an Ed25519 signature (RFC 8032) over the whole file, by a key that the caller trusts. No key comes
with the package.
"""

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum, unique
from functools import cache
from importlib.resources import files
from typing import Any, Final, TypeVar

from firmware_bridge.model import Device, Family
from multisig.firmware import Span, Version, lines_of, numbers


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


PACKAGED: Final = "known_flaws.toml"
# The packaged list has 18 kB.
MAX_BYTES: Final = 200_000
MAX_ENTRIES: Final = 500
# A bound leaves room above every serial: no list could follow one with the highest.
MAX_SERIAL: Final = 2**32
_FORMAT: Final = 1
# Letters, digits, hyphens and dots: it fits into one line of a terminal.
_ID: Final = re.compile(r"[A-Z0-9][A-Z0-9.-]{2,59}")
_SOURCE: Final = re.compile(r"https://[!-~]{4,300}")
_MAX_SENTENCE: Final = 300
_MAX_ITEMS: Final = 20
_TOP: Final = frozenset({"format", "serial", "advisory"})
_FIELDS: Final = frozenset({"id", "family", "models", "severity", "text", "advice", "sources", "affected"})
_SPAN: Final = frozenset({"line", "from", "below"})


class AdvisoryListError(Exception):
    """The list was refused; the one held before stays in use."""


class MalformedList(AdvisoryListError):
    """It does not have the form of a list of advisories."""


def parse_list(data: bytes) -> Advisories:
    """:raises MalformedList: with what is wrong, and where."""
    top = _exactly(_tables(data), _TOP, "the list")
    if _integer(top["format"], "format") != _FORMAT:
        raise MalformedList(f"the list is of format {top['format']}; this program knows {_FORMAT}")
    serial = _integer(top["serial"], "serial")
    if not 0 < serial <= MAX_SERIAL:
        raise MalformedList("the serial is out of range")
    entries = tuple(_entry(item) for item in _items(top["advisory"], "advisory", MAX_ENTRIES))
    _require_distinct(entries)
    return Advisories(serial, entries)


def _tables(data: bytes) -> Any:
    if len(data) > MAX_BYTES:
        raise MalformedList(f"the list has {len(data)} bytes; {MAX_BYTES} is the most")
    try:
        return tomllib.loads(data.decode())
    except (ValueError, RecursionError) as error:
        raise MalformedList(f"the list is not TOML: {error}") from error


def _require_distinct(entries: tuple[Advisory, ...]) -> None:
    seen: set[str] = set()
    for entry in entries:
        if entry.id in seen:
            raise MalformedList(f"{entry.id} appears twice")
        seen.add(entry.id)


def _entry(item: Any) -> Advisory:
    fields = _exactly(item, _FIELDS, "an advisory")
    name = _matching(fields["id"], _ID, "id")
    family = _one_of(Family, fields["family"], f"{name}: family")
    return Advisory(
        id=name,
        family=family,
        severity=_one_of(Severity, fields["severity"], f"{name}: severity"),
        text=_sentence(fields["text"], f"{name}: text"),
        advice=_sentence(fields["advice"], f"{name}: advice"),
        sources=_sources(fields["sources"], f"{name}: sources"),
        models=tuple(
            _sentence(model, f"{name}: models") for model in _items(fields["models"], f"{name}: models")
        ),
        affected=tuple(_span(family, span, name) for span in _items(fields["affected"], f"{name}: affected")),
    )


def _span(family: Family, item: Any, name: str) -> Span:
    if not isinstance(item, dict) or not item.keys() <= _SPAN or "line" not in item:
        raise MalformedList(f"{name}: affected has line, from and below")
    if not isinstance(item["line"], str) or item["line"] not in lines_of(family):
        raise MalformedList(f"{name}: {family} has no release line of this name")
    start, end = (_bound(item.get(key), f"{name}: {key}") for key in ("from", "below"))
    if start is not None and end is not None and start >= end:
        raise MalformedList(f"{name}: no version is from {item['from']} and below {item['below']}")
    return Span(item["line"], start, end)


def _bound(value: Any, where: str) -> tuple[int, ...] | None:
    if value is None:
        return None
    found = numbers(value) if isinstance(value, str) else None
    if found is None:
        raise MalformedList(f"{where} is not a version")
    return found


def _exactly(value: Any, keys: frozenset[str], where: str) -> Mapping[str, Any]:
    if not isinstance(value, dict) or value.keys() != keys:
        raise MalformedList(f"{where} has exactly these fields: {', '.join(sorted(keys))}")
    return value


def _items(value: Any, where: str, most: int = _MAX_ITEMS) -> list[Any]:
    if not isinstance(value, list) or len(value) > most:
        raise MalformedList(f"{where} is not a list of at most {most}")
    return value


def _sources(value: Any, where: str) -> tuple[str, ...]:
    items = _items(value, where)
    if not items:
        raise MalformedList(f"{where} is empty")
    return tuple(_matching(item, _SOURCE, where) for item in items)


def _integer(value: Any, where: str) -> int:
    if type(value) is not int:
        raise MalformedList(f"{where} is not an integer")
    return value


def _matching(value: Any, form: re.Pattern[str], where: str) -> str:
    if not isinstance(value, str) or not form.fullmatch(value):
        raise MalformedList(f"{where} is malformed")
    return value


def _sentence(value: Any, where: str) -> str:
    """One line that moves no cursor (L8)."""
    if not isinstance(value, str) or not 0 < len(value) <= _MAX_SENTENCE or not value.isprintable():
        raise MalformedList(f"{where} is not one line of at most {_MAX_SENTENCE} characters")
    return value


E = TypeVar("E", Family, Severity)


def _one_of(kind: type[E], value: Any, where: str) -> E:
    try:
        return kind(value)
    except ValueError:
        raise MalformedList(f"{where} is not one of {', '.join(kind)}") from None


@cache
def packaged() -> Advisories:
    """The list that comes with the package."""
    return parse_list(files("firmware_bridge.advisories").joinpath(PACKAGED).read_bytes())


def known_flaws(device: Device, listed: Advisories | None = None) -> tuple[Advisory, ...]:
    """Known flaws of this device's firmware, the worst first. Neither the device nor the network is asked.

    An empty answer proves nothing: see `firmware_known` for whether the version could be compared at all.
    """
    return (packaged() if listed is None else listed).about(device)


KEY_BYTES: Final = 32


class BadListSignature(AdvisoryListError):
    """The list is not signed by this key."""


class OlderList(AdvisoryListError):
    """The list is older than the one held. Taking it could hide a flaw that is known by now."""


def load_list(data: bytes, signature: bytes, public_key: bytes, held: Advisories | None = None) -> Advisories:
    """Verify and read a list. `public_key` has 32 bytes, `signature` 64; `held` is the list that it replaces,
    by default the packaged one.

    :raises ValueError: the key has another length.
    :raises AdvisoryListError: too large, not signed by the key, malformed, or older than what is held.
    """
    if len(data) > MAX_BYTES:
        raise MalformedList(f"the list has {len(data)} bytes; {MAX_BYTES} is the most")
    _require_signature(data, signature, public_key)
    return _require_newer(parse_list(data), packaged() if held is None else held)


def _require_signature(data: bytes, signature: bytes, public_key: bytes) -> None:
    # Imported only when needed.
    from cryptography.exceptions import InvalidSignature
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

    if len(public_key) != KEY_BYTES:
        raise ValueError(f"an Ed25519 key has {KEY_BYTES} bytes, not {len(public_key)}")
    try:
        Ed25519PublicKey.from_public_bytes(public_key).verify(signature, data)
    except InvalidSignature as error:
        raise BadListSignature("the list is not signed by this key") from error


def _require_newer(listed: Advisories, held: Advisories) -> Advisories:
    if listed.serial < held.serial:
        raise OlderList(f"the list has serial {listed.serial}, and the one held has {held.serial}")
    if listed.serial == held.serial and listed != held:
        raise OlderList(f"another list of serial {listed.serial} is held")
    return listed
