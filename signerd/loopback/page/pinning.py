"""Pinning a vault in three steps: compare the code over another channel, type it, see the first address on the device."""

from typing import Any

from starlette.responses import Response

from multisig import Network
from signerd import shapes
from signerd.loopback.page.asked import Asked, Fields, shaped
from signerd.loopback.page.quorums import MAX_TEXT, quorum_in
from signerd.loopback.page.rendering import answer as html
from signerd.loopback.page.rendering import render
from signerd.loopback.page.table import Row
from signerd.loopback.page.telling import saying
from signerd.loopback.page.vaults import standing, vault_of

SOURCES = {"record": "the platform's record", "file": "what you pasted", "psbt": "the PSBT that you pasted"}


async def _compared(asked: Asked, brought: shapes.BroughtQuorum | None) -> dict[str, Any]:
    found = await asked.service.preview_pin(asked.path_id("vault_id"), brought)
    return {
        "preview": found,
        "vault": standing(found.vault),
        "source_words": SOURCES.get(found.source, found.source),
        "brought": brought,
    }


async def _brought(asked: Asked, fields: Fields) -> shapes.BroughtQuorum | None:
    return quorum_in(fields, Network((await asked.service.status()).network))


async def wizard(asked: Asked) -> Response:
    """Raises what keeps the vault from being pinned, before anybody compares anything."""
    seen = await vault_of(asked)
    return await asked.page(
        "vaults/pin.html",
        title=f"Pin {seen.name}",
        here="/vaults",
        most=MAX_TEXT,
        **saying(asked, seen.vault_id),
        **await _compared(asked, None),
    )


async def preview(asked: Asked) -> Response:
    """What the person brought, held against the platform's record: the two must be one vault."""
    context = await _compared(asked, await _brought(asked, await asked.fields()))
    return html(render("vaults/compare.html", **context))


async def pin(asked: Asked) -> Response:
    fields = await asked.fields()
    said = shaped(
        shapes.PinRequest,
        code=fields.one("code"),
        brought=await _brought(asked, fields),
        without_device_address=fields.ticked("without_device_address"),
    )
    pinned = await asked.service.pin(
        asked.path_id("vault_id"),
        said.code,
        brought=said.brought,
        without_device_address=said.without_device_address,
    )
    return html(render("vaults/pinned.html", vault=standing(pinned)))


ROWS = (
    Row("GET", "/vaults/{vault_id}/pin", wizard),
    Row("POST", "/vaults/{vault_id}/pin/preview", preview),
    Row("POST", "/vaults/{vault_id}/pin", pin),
)
