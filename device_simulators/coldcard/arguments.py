"""What the host's commands carry after their four letters, parsed and bounded; and the two areas of memory
that files pass through: what the host sent, and what it may fetch.

Numbers are little-endian. Source: hwilib `ckcc/protocol.py`, `CCProtocolPacker`.
"""

from dataclasses import dataclass
from hashlib import sha256
from struct import Struct, calcsize, unpack_from
from typing import Any

from device_simulators.coldcard.replies import CommandRefused
from device_simulators.coldcard.wire import (
    BLOCK_ALIGNMENT,
    MAX_BLOCK,
    MAX_COSIGNERS,
    MAX_PATH_DEPTH,
    MAX_PSBT,
    MAX_UPLOAD,
)
from multisig import DerivationPath, Fingerprint, InvalidPath, KeyOrigin

SCRIPT_SIZES = range(30, 521)


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


class Staging:
    """`upld`, `sha2` and `dwld`. Nothing but a result is given out, and that only on the link on which it was
    made, until the next upload.
    """

    def __init__(self) -> None:
        self._leased = False
        self._uploaded = bytearray()
        self._total = 0
        self._running = sha256()
        self._result = b""

    @property
    def checksum(self) -> bytes:
        """SHA-256 of what has been uploaded so far, 32 bytes."""
        return self._running.digest()

    def end_lease(self) -> None:
        """Another link, or another transaction: the last result is dropped."""
        self._leased = False

    def still_holds(self, content: bytes) -> bool:
        """Whether no upload has written anything else over this one."""
        return content.startswith(self._uploaded)

    def receive(self, offset: int, total: int, data: bytes) -> int:
        """Store one block and return its offset. Blocks come in order from 0, aligned to 256 bytes."""
        if offset % BLOCK_ALIGNMENT:
            raise CommandRefused("alignment")
        if total > MAX_UPLOAD or offset + len(data) > total:
            raise CommandRefused("long")
        if offset == 0:
            self._uploaded, self._running, self._total = bytearray(), sha256(), total
        if offset != len(self._uploaded) or total != self._total:
            raise CommandRefused("offset")
        self.end_lease()
        self._uploaded += data
        self._running.update(data)
        return offset

    def take(self, length: int, digest: bytes) -> bytes:
        """The uploaded file, if it is whole and the one the host means. Raises CommandRefused("Checksum")."""
        if length != len(self._uploaded) or digest != self.checksum:
            raise CommandRefused("Checksum")
        return bytes(self._uploaded)

    def offer(self, result: bytes) -> tuple[int, bytes]:
        """Put a result where the host can fetch it; returns its length and its SHA-256."""
        self._result = result
        self._leased = True
        return len(result), sha256(result).digest()

    def send(self, offset: int, length: int, file_number: int) -> bytes:
        """One block of the result, which is file number 1."""
        if file_number not in {0, 1}:
            raise CommandRefused("bad fnum")
        if offset > MAX_PSBT:
            raise CommandRefused("bad offset")
        if length < 1:
            raise CommandRefused("len")
        end = offset + min(length, MAX_BLOCK)
        if not self._leased or file_number != 1 or end > len(self._result):
            raise CommandRefused("not allowed")
        return self._result[offset:end]
