"""A device without a cable: a proposal's QR codes and file, and the device's answer; registering its keys,
with the challenge that it signs; and scanning with the page's camera.

No state is kept between the steps of a registration: each form carries the keys and the digest of what was
shown. The camera's page sends the text of each QR code, and the series is assembled here. The result is
returned as text for a form of the page, which validates it like pasted text.
"""

import asyncio
import base64
import secrets
import time
from base64 import b64encode
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final

from starlette.responses import JSONResponse, Response

from custody.common.pages.rendering import Fields
from custody.common.pages.serving import HEADERS
from firmware_bridge import BridgeError
from firmware_bridge.airgap import (
    BadTransfer,
    CodeSeries,
    Content,
    Scanner,
    TooMuchForCodes,
    Transfer,
    draw,
    series_of,
    version_of,
)
from firmware_bridge.airgap.handoff import decode_psbt
from signerd.api.devices import DevicesApi
from signerd.api.proposals import ProposalsApi
from signerd.core.states import APPROVED
from signerd.daemon.airgap import carried_psbt
from signerd.endpoint import ANSWERS
from signerd.errors import AnswerRefused, InvalidRequest
from signerd.loopback.page.rendering import PageRequest, PageRoute, fragment, page
from signerd.shapes.limits import MAX_PSBT_TEXT

# A QR code of version 15: more than three pixels per module on a screen of 360 pixels.
CHARACTERS = 758
# Half a minute of codes; a larger PSBT goes by file.
MOST_FRAMES = 120


async def _without_cable(request: PageRequest) -> dict[str, Any]:
    view = await request.call(ProposalsApi.proposal)
    return {
        "title": f"Proposal {view.psbt_id} without a cable",
        "view": view,
        "approved": view.state in APPROVED,
        "most": MAX_PSBT_TEXT,
        "answers": ANSWERS,
    }


async def export(request: PageRequest) -> Response:
    series = (await request.fields()).one("series")
    if series not in {"bbqr", "ur"}:
        raise InvalidRequest("series: choose one of the two kinds of codes")
    given = await request.call(ProposalsApi.export_psbt)
    # Many codes take seconds to draw, so not on the event loop.
    frames = await asyncio.to_thread(pictures, base64.b64decode(given.psbt), series, psbt=True)
    return fragment("proposals/exported.html", given=given, frames=frames)


def pictures(data: bytes, series: str, *, psbt: bool = False) -> tuple[str, ...]:
    """A series of QR codes as data URLs; none where they would be too many."""
    try:
        content = Content.PSBT if psbt else Content.TEXT
        texts = series_of(data, content, CodeSeries(series), CHARACTERS)
    except TooMuchForCodes:
        return ()
    if len(texts) > MOST_FRAMES:
        return ()
    version = version_of(texts)
    return tuple(as_address(draw(text, version=version)) for text in texts)


def as_address(svg: bytes) -> str:
    return f"data:image/svg+xml;base64,{base64.b64encode(svg).decode('ascii')}"


async def bring(request: PageRequest) -> Response:
    text = (await request.fields()).one("answer")
    if not text.strip():
        hint = "Choose the file that the device wrote, or paste its text."
        raise AnswerRefused("there is no answer", hint=hint)
    # A series of QR codes may take seconds to put together, so not on the event loop.
    psbt = await asyncio.to_thread(carried_psbt, text.encode())
    line = await request.call(ProposalsApi.import_answer, psbt=psbt)
    return fragment("proposals/answered.html", line=line)


REGISTER = "/airgap/register"
# The limits of ``shapes.Exports`` and ``shapes.SignatureText``.
MOST = {"export": 16_384, "signature": 4_096}


def _exports(fields: Fields) -> tuple[str, ...]:
    """Raises AnswerRefused."""
    given = tuple(text for text in fields.every("export") if text.strip())
    if not given:
        raise AnswerRefused("there are no keys", hint="Show the device's code, choose its file, or paste it.")
    return given


async def _context(request: PageRequest) -> dict[str, Any]:
    status = await request.service.status()
    return {"registered": status.fingerprint, "signed_in": status.signed_in, "most": MOST}


async def preview(request: PageRequest) -> Response:
    """Sends nothing to the platform."""
    exports = _exports(await request.fields())
    offer = await request.call(DevicesApi.preview_airgapped, exports=exports)
    context = await _context(request)
    return fragment("devices/airgapped_keys.html", preview=offer, exports=exports, **context)


async def challenge(request: PageRequest) -> Response:
    """Bound to the digest of the keys that were shown."""
    fields = await request.fields()
    exports = _exports(fields)
    offer = await request.call(DevicesApi.challenge_airgapped, exports=exports)
    return fragment(
        "devices/airgapped_challenge.html",
        asked=offer,
        # As Jade, SeedSigner, Krux and Specter-DIY read a message to sign.
        code=as_address(draw(f"signmessage {offer.path} ascii:{offer.challenge}")),
        file=b64encode(offer.file.encode()).decode("ascii"),
        exports=exports,
        digest=fields.one("digest"),
        fingerprint=fields.one("fingerprint"),
        **await _context(request),
    )


async def confirm(request: PageRequest) -> Response:
    exports = _exports(await request.fields())
    done = await request.call(DevicesApi.register_airgapped, exports=exports)
    return fragment("devices/registered.html", done=done)


SCANS: Final = "/scans"
# Each holds two megabytes at most; a person uses one camera at a time.
MOST_SCANS: Final = 4
# Twice the longest series at four codes a second.
SCAN_SECONDS: Final = 600.0
KINDS: Final = frozenset({"psbt", "text"})


@dataclass
class _Scan:
    kind: str
    scanner: Scanner
    began: float


@dataclass
class Scans:
    """The unfinished scans by random ids, so that two tabs do not mix theirs."""

    clock: Callable[[], float] = time.monotonic
    # A scanner is used by one thread at a time.
    turn: asyncio.Lock = field(default_factory=asyncio.Lock)
    _found: dict[str, _Scan] = field(default_factory=dict)

    def of(self, scan_id: str, kind: str) -> tuple[str, Scanner]:
        """The scan of this id, or a new one where it has expired or is of another kind; with its id."""
        known = self._found.get(scan_id)
        if known is not None and known.kind == kind and self.clock() - known.began < SCAN_SECONDS:
            return scan_id, known.scanner
        self.end(scan_id)
        while len(self._found) >= MOST_SCANS:
            del self._found[next(iter(self._found))]
        fresh = secrets.token_urlsafe(16)
        scanner = Scanner(Content.PSBT if kind == "psbt" else Content.TEXT)
        self._found[fresh] = _Scan(kind, scanner, self.clock())
        return fresh, scanner

    def end(self, scan_id: str) -> None:
        self._found.pop(scan_id, None)


async def scan(request: PageRequest) -> Response:
    """Add one text. An unrelated code is reported and changes nothing. Raises InvalidRequest."""
    fields, scans = await request.fields(), request.request.app.state.scans
    kind, text = fields.one("kind"), fields.one("text")
    if kind not in KINDS:
        raise InvalidRequest("kind: must be 'psbt' or 'text'")
    scan_id, scanner = scans.of(fields.one("scan"), kind)
    progress: dict[str, object] = {"scan": scan_id}
    try:
        # The last part of a series may take half a second.
        async with scans.turn:
            received = await asyncio.to_thread(scanner.add, text)
        progress |= {"seen": received.seen, "wanted": received.wanted}
        if scanner.result is not None:
            scans.end(scan_id)
            progress["whole"] = _text_of(scanner.result, kind)
    except BridgeError as error:
        progress["said"] = f"{error} {error.hint}".strip()
    return JSONResponse(progress, headers=dict(HEADERS))


def _text_of(transfer: Transfer, kind: str) -> str:
    """As the form takes it. Raises BridgeError."""
    if kind == "psbt":
        return b64encode(decode_psbt(transfer.data)).decode("ascii")
    try:
        return transfer.data.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise BadTransfer("This is not text, and so neither keys nor a signature.") from None


ROWS = (
    page("/proposals/{psbt_id}/airgap", "proposals/airgap.html", None, _without_cable, here="/", camera=True),
    PageRoute("POST", "/proposals/{psbt_id}/airgap", export),
    PageRoute("POST", ANSWERS, bring),
    page(
        REGISTER,
        "devices/airgapped.html",
        "Register a device without a cable",
        _context,
        here="/devices",
        camera=True,
    ),
    PageRoute("POST", f"{REGISTER}/keys", preview),
    PageRoute("POST", f"{REGISTER}/challenge", challenge),
    PageRoute("POST", REGISTER, confirm),
    PageRoute("POST", SCANS, scan),
)
