"""Addresses of a pinned vault and of the profile, each to be seen on the device before somebody pays to it."""

from starlette.responses import Response

from signerd import shapes
from signerd.callers import PAGE
from signerd.loopback.page.rendering import answer as html
from signerd.loopback.page.rendering import render
from signerd.loopback.page.request import Fields, PageRequest, Row, shaped
from signerd.loopback.page.telling import saying
from signerd.shapes import AddressPage, Request
from signerd.shapes.vaults import Chain, Index

COUNT = 10


class _Place(Request):
    """Which page of addresses."""

    chain: Chain = 0
    start: Index = 0


def _place(asked: PageRequest) -> _Place:
    """Raises InvalidRequest."""
    given = {name: asked.query(name) for name in ("chain", "start") if asked.query(name)}
    return shaped(_Place, **given)


async def of_vault(asked: PageRequest) -> Response:
    vault_id, place = asked.path_id("vault_id"), _place(asked)
    page = await asked.service.addresses.of_vault(vault_id, place.chain, place.start, COUNT)
    return await _shown(asked, page, place, f"/vaults/{vault_id}", vault_id)


async def of_profile(asked: PageRequest) -> Response:
    place = _place(asked)
    page = await asked.service.addresses.of_profile(place.chain, place.start, COUNT)
    registered = (await asked.service.status()).fingerprint
    devices = await asked.service.devices()
    # What is said about showing one of these stands under the device.
    subject = next((one.id for one in devices if one.fingerprint == registered), "profile")
    return await _shown(asked, page, place, "/profile", subject)


async def _shown(asked: PageRequest, page: AddressPage, place: _Place, base: str, subject: str) -> Response:
    return await asked.page(
        "vaults/addresses.html",
        title=f"Addresses of {page.name}",
        here="/vaults",
        listed=page,
        place=place,
        base=base,
        before=max(place.start - COUNT, 0),
        after=place.start + COUNT,
        full=len(page.addresses) == COUNT,
        **saying(asked, subject),
    )


def _wanted(fields: Fields) -> shapes.ShowAddressRequest:
    return shaped(shapes.ShowAddressRequest, chain=fields.one("chain"), index=fields.one("index"))


async def show_of_vault(asked: PageRequest) -> Response:
    wanted = _wanted(await asked.fields())
    done = await asked.service.addresses.show_of_vault(
        asked.path_id("vault_id"), wanted.chain, wanted.index, PAGE
    )
    return html(render("vaults/shown.html", done=done))


async def show_of_profile(asked: PageRequest) -> Response:
    wanted = _wanted(await asked.fields())
    done = await asked.service.addresses.show_of_profile(wanted.chain, wanted.index, PAGE)
    return html(render("vaults/shown.html", done=done))


ROWS = (
    Row("GET", "/vaults/{vault_id}/addresses", of_vault),
    Row("POST", "/vaults/{vault_id}/addresses/show", show_of_vault),
    Row("GET", "/profile/addresses", of_profile),
    Row("POST", "/profile/addresses/show", show_of_profile),
)
