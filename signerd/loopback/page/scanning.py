"""Scanning with the page's camera: it sends the text of each QR code, and the series is assembled here. The
result is returned as text for a form of the page, which validates it like pasted text.
"""

import secrets
import time
from base64 import b64encode
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from starlette.responses import JSONResponse, Response

from custody.pages.headers import HEADERS
from signerd.errors import InvalidRequest
from signerd.loopback.page.rendering import PageRequest, Row

if TYPE_CHECKING:
    from firmware_bridge.airgap import Scanner, Transfer

SCANS: Final = "/scans"
# Each holds two megabytes at most; a person uses one camera at a time.
MOST_SCANS: Final = 4
# Twice the longest series at four codes a second.
SCAN_SECONDS: Final = 600.0
KINDS: Final = frozenset({"psbt", "text"})


@dataclass
class _Scan:
    kind: str
    scanner: "Scanner"
    began: float


class Scans:
    """The unfinished scans by random ids, so that two tabs do not mix theirs."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._found: dict[str, _Scan] = {}

    def of(self, scan_id: str, kind: str) -> tuple[str, "Scanner"]:
        """The scan of this id, or a new one where it has expired or is of another kind; with its id."""
        from firmware_bridge.airgap import Content, Scanner

        known = self._found.get(scan_id)
        if known is not None and known.kind == kind and self._clock() - known.began < SCAN_SECONDS:
            return scan_id, known.scanner
        self.end(scan_id)
        while len(self._found) >= MOST_SCANS:
            del self._found[next(iter(self._found))]
        fresh = secrets.token_urlsafe(16)
        scanner = Scanner(Content.PSBT if kind == "psbt" else Content.TEXT)
        self._found[fresh] = _Scan(kind, scanner, self._clock())
        return fresh, scanner

    def end(self, scan_id: str) -> None:
        self._found.pop(scan_id, None)


async def scan(asked: PageRequest) -> Response:
    """Add one text. An unrelated code is reported and changes nothing. Raises InvalidRequest."""
    from firmware_bridge.errors import BridgeError

    fields, scans = await asked.fields(), asked.request.app.state.scans
    kind, text = fields.one("kind"), fields.one("text")
    if kind not in KINDS:
        raise InvalidRequest("kind: must be 'psbt' or 'text'")
    scan_id, scanner = scans.of(fields.one("scan"), kind)
    told: dict[str, object] = {"scan": scan_id}
    try:
        received = scanner.add(text)
        told |= {"seen": received.seen, "wanted": received.wanted}
        if scanner.result is not None:
            scans.end(scan_id)
            told["whole"] = _text_of(scanner.result, kind)
    except BridgeError as error:
        told["said"] = f"{error} {error.hint}".strip()
    return JSONResponse(told, headers=dict(HEADERS))


def _text_of(found: "Transfer", kind: str) -> str:
    """As the form takes it. Raises BridgeError."""
    from firmware_bridge.airgap import Unreadable
    from firmware_bridge.airgap.handoff import decode_psbt

    if kind == "psbt":
        return b64encode(decode_psbt(found.data)).decode("ascii")
    try:
        return found.data.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise Unreadable("This is not text, and so neither keys nor a signature.") from None


ROWS = (Row("POST", SCANS, scan),)
