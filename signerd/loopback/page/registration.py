"""Registering a device's keys: read, compared by the person, proven on the device, sent."""

from typing import Any

from starlette.responses import Response

from signerd import shapes
from signerd.loopback.page.asked import Asked, shaped
from signerd.loopback.page.devices import Card, one
from signerd.loopback.page.rendering import answer as html
from signerd.loopback.page.rendering import render
from signerd.loopback.page.table import Row
from signerd.loopback.page.telling import saying

SUBJECT = "registration"


async def _context(asked: Asked, card: Card) -> dict[str, Any]:
    status = await asked.service.status()
    return {"card": card, "registered": status.fingerprint, "signed_in": status.signed_in}


async def register(asked: Asked) -> Response:
    card = await one(asked)
    return await asked.page(
        "devices/register.html",
        title=f"Register {card.name}",
        here="/devices",
        **saying(asked, SUBJECT),
        **await _context(asked, card),
    )


async def preview(asked: Asked) -> Response:
    """The keys as the device gives them now. Nothing is sent anywhere."""
    card = await one(asked)
    found = await asked.service.preview_registration(card.view.id)
    context = await _context(asked, card)
    return html(render("devices/register_keys.html", preview=found, **context))


async def confirm(asked: Asked) -> Response:
    """Bound to the digest of the keys that were shown."""
    card, fields = await one(asked), await asked.fields()
    said = shaped(
        shapes.RegisterRequest,
        device_id=card.view.id,
        digest=fields.one("digest"),
        replace=fields.ticked("replace"),
    )
    done = await asked.service.register(said.device_id, said.digest, replace=said.replace)
    return html(render("devices/registered.html", done=done))


ROWS = (
    Row("GET", "/devices/{device_id}/register", register),
    Row("POST", "/devices/{device_id}/register/keys", preview),
    Row("POST", "/devices/{device_id}/register", confirm),
)
