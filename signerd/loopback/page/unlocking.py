"""Unlocking a device on the page: each question as a form of its own; what is typed is sent once and shown nowhere (L10)."""

from typing import Any

from starlette.responses import Response

from signerd import shapes
from signerd.errors import DeviceFailed, InvalidRequest
from signerd.loopback.page.asked import Asked, Fields, shaped
from signerd.loopback.page.devices import Card, one
from signerd.loopback.page.rendering import Live
from signerd.loopback.page.table import Row
from signerd.shapes import UnlockStep

# The places of the matrix as they stand on the device, the top row first; what a screen reader says of each.
PLACES = (
    ("7", "top left"),
    ("8", "top middle"),
    ("9", "top right"),
    ("4", "middle left"),
    ("5", "centre"),
    ("6", "middle right"),
    ("1", "bottom left"),
    ("2", "bottom middle"),
    ("3", "bottom right"),
)
NO_PLACES = "the places of a PIN are the figures 1 to 9"
NOT_THE_SAME = "the two passphrases are not the same"
AGAIN = "Type both again: nothing was sent to the device."


def _part(device_id: str) -> Live:
    return Live("unlocking", "devices/unlocking.html", f"/devices/{device_id}/unlocking")


async def _context(asked: Asked, card: Card, step: UnlockStep | None = None) -> dict[str, Any]:
    """``step`` None: as it stands."""
    failed: DeviceFailed | None = None
    if step is None:
        try:
            step = await asked.service.unlocking.current(card.view.id)
        except DeviceFailed as error:
            failed = error
    registered = (await asked.service.status()).fingerprint
    return {"card": card, "step": step, "failed": failed, "registered": registered, "places": PLACES}


async def unlock(asked: Asked) -> Response:
    card = await one(asked)
    return await asked.page(
        "devices/unlock.html",
        title=f"Unlock {card.name}",
        here="/devices",
        part=_part(card.view.id),
        **await _context(asked, card),
    )


async def refreshed(asked: Asked) -> Response:
    card = await one(asked)
    return asked.part(_part(card.view.id), **await _context(asked, card))


async def start(asked: Asked) -> Response:
    step = await asked.service.unlocking.start((await one(asked)).view.id)
    return await _stepped(asked, step)


async def answer(asked: Asked) -> Response:
    """One use of what was typed; the form that asked for it is gone with the answer to this."""
    fields = await asked.fields()
    given = None if fields.ticked("leave") else _typed(fields)
    body = shaped(shapes.QuestionAnswer, answer=given)
    step = await asked.service.unlocking.answer(asked.path_id("question_id"), body.answer)
    return await _stepped(asked, step)


async def _stepped(asked: Asked, step: UnlockStep) -> Response:
    """The device as it is after the step."""
    card = await one(asked)
    return asked.part(_part(card.view.id), **await _context(asked, card, step))


def _typed(fields: Fields) -> str:
    """Raises InvalidRequest: nothing was sent to the device, and no try was lost."""
    text, kind = fields.one("answer"), fields.one("kind")
    if kind == "pin" and not (text.isascii() and text.isdecimal() and "0" not in text):
        raise InvalidRequest(NO_PLACES, hint="Press the places, or type them on the number pad.")
    if kind == "passphrase" and text != fields.one("again"):
        raise InvalidRequest(NOT_THE_SAME, hint=AGAIN)
    return text


ROWS = (
    Row("GET", "/devices/{device_id}/unlock", unlock),
    Row("GET", "/devices/{device_id}/unlocking", refreshed),
    Row("POST", "/devices/{device_id}/unlock", start),
    Row("POST", "/devices/{device_id}/questions/{question_id}", answer),
)
