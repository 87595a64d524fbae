"""From bytes to a list of advisories: every field there, none too many, each of its kind. One fault refuses the whole list."""

import re
import tomllib
from collections.abc import Callable, Mapping
from functools import cache
from importlib.resources import files
from typing import Any, Final, TypeVar

from firmware_bridge.advisories.advisory import Advisories, Advisory, Severity, Span, lines_of, numbers
from firmware_bridge.model import Device, Family

# FOLDED from firmware_bridge/advisories/signed.py: A newer list from outside: taken only if whoever the caller trusts has signed these very bytes.
#
# Who that is, is the caller's to say: no key comes with the package. The signature is Ed25519 (RFC 8032) over the whole file,
# so that nothing is read of a file that is not theirs.


T = TypeVar("T")

PACKAGED: Final = "known_flaws.toml"
# The packaged list has 18 kB; ten times that is no list of flaws any more.
MAX_BYTES: Final = 200_000
MAX_ENTRIES: Final = 500
# One a second for a century fits; a serial that nothing can follow would be the last list ever taken.
MAX_SERIAL: Final = 2**32
_FORMAT: Final = 1
# It fits the loopback's ids, but for the dots, and one line of a terminal.
_ID: Final = re.compile(r"[A-Z0-9][A-Z0-9.-]{2,59}")
_SOURCE: Final = re.compile(r"https://[!-~]{4,300}")
_MAX_SENTENCE: Final = 300
_MAX_ITEMS: Final = 20
_TOP: Final = frozenset({"format", "serial", "advisory"})
_FIELDS: Final = frozenset({"id", "family", "models", "severity", "text", "advice", "sources", "affected"})
_SPAN: Final = frozenset({"line", "from", "below"})


class AdvisoryListError(Exception):
    """A list that is not taken. The one that was held before goes on."""


class MalformedList(AdvisoryListError):
    """It is not of the form of such a list."""


def parse_list(data: bytes) -> Advisories:
    """:raises MalformedList: the text says what is wrong, and where."""
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
        raise MalformedList(f"the list is no TOML: {error}") from error


def _require_distinct(entries: tuple[Advisory, ...]) -> None:
    seen: set[str] = set()
    for entry in entries:
        if entry.id in seen:
            raise MalformedList(f"{entry.id} is there twice")
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
        sources=_some(fields["sources"], f"{name}: sources", _source),
        models=tuple(
            _sentence(model, f"{name}: models") for model in _items(fields["models"], f"{name}: models")
        ),
        affected=tuple(_span(family, span, name) for span in _items(fields["affected"], f"{name}: affected")),
    )


def _span(family: Family, item: Any, name: str) -> Span:
    if not isinstance(item, dict) or not item.keys() <= _SPAN or "line" not in item:
        raise MalformedList(f"{name}: affected has line, from and below")
    if not isinstance(item["line"], str) or item["line"] not in lines_of(family):
        raise MalformedList(f"{name}: {family} has no line of releases of this name")
    start, end = (_bound(item.get(key), f"{name}: {key}") for key in ("from", "below"))
    if start is not None and end is not None and start >= end:
        raise MalformedList(f"{name}: no version is from {item['from']} and below {item['below']}")
    return Span(item["line"], start, end)


def _bound(value: Any, where: str) -> tuple[int, ...] | None:
    if value is None:
        return None
    found = numbers(value) if isinstance(value, str) else None
    if found is None:
        raise MalformedList(f"{where} is no version")
    return found


def _exactly(value: Any, keys: frozenset[str], where: str) -> Mapping[str, Any]:
    if not isinstance(value, dict) or value.keys() != keys:
        raise MalformedList(f"{where} has exactly these fields: {', '.join(sorted(keys))}")
    return value


def _items(value: Any, where: str, most: int = _MAX_ITEMS) -> list[Any]:
    if not isinstance(value, list) or len(value) > most:
        raise MalformedList(f"{where} is no list of up to {most}")
    return value


def _some(value: Any, where: str, read: Callable[[Any, str], T]) -> tuple[T, ...]:
    items = _items(value, where)
    if not items:
        raise MalformedList(f"{where} is empty")
    return tuple(read(item, where) for item in items)


def _integer(value: Any, where: str) -> int:
    if type(value) is not int:
        raise MalformedList(f"{where} is no whole number")
    return value


def _matching(value: Any, form: re.Pattern[str], where: str) -> str:
    if not isinstance(value, str) or not form.fullmatch(value):
        raise MalformedList(f"{where} is not of its form")
    return value


def _source(value: Any, where: str) -> str:
    return _matching(value, _SOURCE, where)


def _sentence(value: Any, where: str) -> str:
    """One line that moves no cursor (L8)."""
    if not isinstance(value, str) or not 0 < len(value) <= _MAX_SENTENCE or not value.isprintable():
        raise MalformedList(f"{where} is no line of up to {_MAX_SENTENCE} characters")
    return value


E = TypeVar("E", Family, Severity)


def _one_of(kind: type[E], value: Any, where: str) -> E:
    try:
        return kind(value)
    except ValueError:
        raise MalformedList(f"{where} is none of {', '.join(kind)}") from None


@cache
def packaged() -> Advisories:
    """The list that comes with the package, and needs no signature of its own."""
    return parse_list(files("firmware_bridge.advisories").joinpath(PACKAGED).read_bytes())


def known_flaws(device: Device, listed: Advisories | None = None) -> tuple[Advisory, ...]:
    """What is known to be wrong with this device's firmware, the worst first. Nothing is asked of the device or anybody else.

    None found is not none there: `firmware_known` tells whether its version could be looked up at all.
    """
    return (packaged() if listed is None else listed).about(device)


KEY_BYTES: Final = 32
SIGNATURE_BYTES: Final = 64


class BadListSignature(AdvisoryListError):
    """It is not signed by this key."""


class OlderList(AdvisoryListError):
    """It would take the place of a newer one: who can do that can hide a flaw that is known by now."""


def load_list(data: bytes, signature: bytes, public_key: bytes, held: Advisories | None = None) -> Advisories:
    """The list in `data`. `public_key` has 32 bytes, `signature` 64; `held` is the list that it replaces, else the packaged one.

    :raises ValueError: the key is none.
    :raises AdvisoryListError: too large, not signed by the key, malformed, or older than what is held.
    """
    if len(data) > MAX_BYTES:
        raise MalformedList(f"the list has {len(data)} bytes; {MAX_BYTES} is the most")
    _require_signature(data, signature, public_key)
    return _require_newer(parse_list(data), packaged() if held is None else held)


def _require_signature(data: bytes, signature: bytes, public_key: bytes) -> None:
    # Only who takes lists from outside pays for the import.
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
        raise OlderList(f"the list has the serial {listed.serial}, and {held.serial} is held")
    if listed.serial == held.serial and listed != held:
        raise OlderList(f"the list has the serial {listed.serial} of another one that is held")
    return listed
