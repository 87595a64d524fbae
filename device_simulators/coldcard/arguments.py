"""What the host's commands carry after their four letters, parsed and bounded.

Numbers are little-endian. Source: hwilib `ckcc/protocol.py`, `CCProtocolPacker`.
"""

from dataclasses import dataclass
from struct import Struct, calcsize, unpack_from
from typing import Any

from device_simulators.coldcard.errors import CommandRefused
from device_simulators.coldcard.limits import MAX_COSIGNERS, MAX_PATH_DEPTH
from multisig import DerivationPath, Fingerprint, InvalidPath, KeyOrigin

SCRIPT_SIZES = range(30, 521)


@dataclass(frozen=True)
class FileMark:
    """An uploaded file by its length and SHA-256. `flags` only comes with a transaction."""

    length: int
    digest: bytes
    flags: int = 0


@dataclass(frozen=True)
class TextToSign:
    address_format: int
    path: str
    text: bytes


@dataclass(frozen=True)
class ScriptToShow:
    """A multisig address to show: each cosigner's fingerprint and path, in the order of the script's keys."""

    address_format: int
    threshold: int
    origins: tuple[KeyOrigin, ...]
    script: bytes


def unpack(layout: str, arguments: bytes, *, exact: bool = True) -> tuple[Any, ...]:
    """Read fixed fields; with `exact` nothing may follow. Raises CommandRefused("badlen")."""
    fields = Struct("<" + layout)
    if len(arguments) < fields.size or (exact and len(arguments) != fields.size):
        raise CommandRefused("badlen")
    return fields.unpack_from(arguments)


def transaction_mark(arguments: bytes) -> FileMark:
    length, flags, digest = unpack("II32s", arguments)
    return FileMark(length, digest, flags)


def enrolment_mark(arguments: bytes) -> FileMark:
    length, digest = unpack("I32s", arguments)
    return FileMark(length, digest)


def text_to_sign(arguments: bytes) -> TextToSign:
    address_format, path_length, text_length = unpack("III", arguments, exact=False)
    rest = arguments[12:]
    if len(rest) != path_length + text_length:
        raise CommandRefused("badlen")
    return TextToSign(address_format, ascii_text(rest[:path_length]), rest[path_length:])


def ascii_text(data: bytes) -> str:
    """Printable ASCII or nothing: the screen has no other letters."""
    text = data.decode("ascii", "replace")
    if not text.isascii() or (text and not text.isprintable()):
        raise CommandRefused("must be ascii printable")
    return text


def path(text: str) -> DerivationPath:
    """A path as hosts write it: with or without m/, hardened by ' or h or p, at most 12 deep."""
    normal = text.strip().lower().replace("p", "h") or "m"
    try:
        parsed = DerivationPath.parse(normal)
    except InvalidPath as error:
        raise CommandRefused("invalid characters in path") from error
    if len(parsed) > MAX_PATH_DEPTH:
        raise CommandRefused("too deep")
    return parsed


def script_to_show(arguments: bytes) -> ScriptToShow:
    address_format, threshold, count, script_length = unpack("IBBH", arguments, exact=False)
    if not 1 <= threshold <= count <= MAX_COSIGNERS or script_length not in SCRIPT_SIZES:
        raise CommandRefused("badlen")
    at = calcsize("<IBBH") + script_length
    script = arguments[at - script_length : at]
    origins = []
    for _ in range(count):
        origin, at = _origin(arguments, at)
        origins.append(origin)
    if len(script) != script_length or at != len(arguments):
        raise CommandRefused("badlen")
    return ScriptToShow(address_format, threshold, tuple(origins), script)


def _origin(arguments: bytes, at: int) -> tuple[KeyOrigin, int]:
    """One cosigner: a count, the fingerprint, then the steps of the path."""
    count = arguments[at] if at < len(arguments) else 0
    end = at + 1 + 4 * count
    if not 1 <= count <= MAX_PATH_DEPTH + 1 or end > len(arguments):
        raise CommandRefused("badlen")
    fingerprint = Fingerprint(arguments[at + 1 : at + 5])
    steps = unpack_from(f"<{count - 1}I", arguments, at + 5)
    return KeyOrigin(fingerprint, DerivationPath(steps)), end
