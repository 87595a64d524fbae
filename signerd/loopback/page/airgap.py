"""A proposal for an air-gapped device: its QR codes and file, and the device's answer."""

import asyncio
import base64

from starlette.responses import Response

from signerd.daemon.airgap import carried_psbt
from signerd.endpoint import ANSWERS
from signerd.errors import AnswerRefused, InvalidRequest
from signerd.loopback.page.rendering import PageRequest, Row, answer, render
from signerd.shapes.calls import MAX_PSBT_TEXT

# A QR code of version 15: more than three pixels per module on a screen of 360 pixels.
CHARACTERS = 758
# Half a minute of codes; a larger PSBT goes by file.
MOST_FRAMES = 120
APPROVED = frozenset({"waiting-for-device", "exported"})


async def without_cable(asked: PageRequest) -> Response:
    view = await asked.service.proposal(asked.path_id("psbt_id"))
    return await asked.page(
        "proposals/airgap.html",
        title=f"Proposal {view.psbt_id} without a cable",
        here="/",
        view=view,
        approved=view.state in APPROVED,
        most=MAX_PSBT_TEXT,
        answers=ANSWERS,
    )


async def export(asked: PageRequest) -> Response:
    psbt_id, series = asked.path_id("psbt_id"), (await asked.fields()).one("series")
    if series not in {"bbqr", "ur"}:
        raise InvalidRequest("series: choose one of the two kinds of codes")
    given = await asked.service.airgap.export(psbt_id, asked.caller)
    # Many codes take seconds to draw, so not on the event loop.
    frames = await asyncio.to_thread(pictures, base64.b64decode(given.psbt), series, psbt=True)
    return answer(render("proposals/exported.html", given=given, frames=frames))


def pictures(data: bytes, series: str, *, psbt: bool = False) -> tuple[str, ...]:
    """A series of QR codes as data URLs; none where they would be too many."""
    from firmware_bridge.airgap import Content, Series, TooMuchForCodes, draw, series_of, version_of

    try:
        content = Content.PSBT if psbt else Content.TEXT
        texts = series_of(data, content, Series(series), CHARACTERS)
    except TooMuchForCodes:
        return ()
    if len(texts) > MOST_FRAMES:
        return ()
    version = version_of(texts)
    return tuple(as_address(draw(text, version=version)) for text in texts)


def as_address(svg: bytes) -> str:
    return f"data:image/svg+xml;base64,{base64.b64encode(svg).decode('ascii')}"


async def bring(asked: PageRequest) -> Response:
    text = (await asked.fields()).one("answer")
    if not text.strip():
        hint = "Choose the file that the device wrote, or paste its text."
        raise AnswerRefused("there is no answer", hint=hint)
    line = await asked.service.airgap.answer(carried_psbt(text.encode()), asked.caller)
    return answer(render("proposals/answered.html", line=line))


ROWS = (
    Row("GET", "/proposals/{psbt_id}/airgap", without_cable, camera=True),
    Row("POST", "/proposals/{psbt_id}/airgap", export),
    Row("POST", ANSWERS, bring),
)
