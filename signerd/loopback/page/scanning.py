"""What the camera of a page reads: the texts of a device's codes are brought singly and put together here.
The whole comes back as the text that a form of the page takes. The form judges it, as what a person pastes.
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
# Each holds two megabytes at most; a person has one camera before one screen.
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
    """Those that are not whole yet, by ids that nothing else knows: two tabs are not mixed up."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._found: dict[str, _Scan] = {}

    def of(self, scan_id: str, kind: str) -> tuple[str, "Scanner"]:
        """The one of this id, or a new one, where it is over or of another kind; with its id."""
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
    """One text more. A code of something else is told, and changes nothing: a camera sees what lies about.

    Raises InvalidRequest.
    """
    from firmware_bridge.errors import BridgeError

    fields, scans = await asked.fields(), asked.request.app.state.scans
    kind, text = fields.one("kind"), fields.one("text")
    if kind not in KINDS:
        raise InvalidRequest("kind: a PSBT is read, or text")
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
    """As a form takes it. Raises BridgeError."""
    from firmware_bridge.airgap import Unreadable
    from firmware_bridge.airgap.handoff import decode_psbt

    if kind == "psbt":
        return b64encode(decode_psbt(found.data)).decode("ascii")
    try:
        return found.data.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise Unreadable("This is no text, and neither keys nor a signature.") from None


ROWS = (Row("POST", SCANS, scan),)
