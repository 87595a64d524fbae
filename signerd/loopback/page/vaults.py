"""Vaults: their figures and pinning; and the addresses of a pinned vault and of the profile."""

from asyncio import to_thread
from base64 import b64encode
from dataclasses import dataclass
from typing import Any

from starlette.responses import Response

from custody.common.pages.rendering import Live
from custody.common.pages.serving import HTML, attachment
from firmware_bridge.airgap import draw
from multisig import MultisigError, ReceivedPsbt, vault_of_file, vault_of_psbt
from signerd.api.described import described
from signerd.api.vaults import VaultsApi
from signerd.errors import InvalidRequest, NotPinned, UnknownVault
from signerd.kit import document
from signerd.loopback.page.airgap import as_address, pictures
from signerd.loopback.page.home import saying
from signerd.loopback.page.rendering import (
    PageRequest,
    PageRoute,
    act,
    answer,
    fragment,
    page,
    part,
    render,
    shaped,
)
from signerd.shapes import AddressPage, ImportedQuorum, VaultView
from signerd.shapes.limits import USUAL_COUNT

VAULTS = Live("vaults", "vaults/list.html", "/parts/vaults")


@dataclass(frozen=True)
class VaultStatus:
    """A vault with its state in words."""

    view: VaultView
    words: str
    tone: str
    quorum: str
    pinnable: bool


def vault_status(view: VaultView) -> VaultStatus:
    quorum = f"{view.threshold} of {view.signers}" if view.signers else "not readable"
    words, tone = _words(view)
    return VaultStatus(view, words, tone, quorum, pinnable=not view.pinned and view.fault is None)


def _words(view: VaultView) -> tuple[str, str]:
    if view.changes:
        return "ALARM: the platform has shown another vault", "stopped"
    if view.fault is not None:
        return ("pinned, but not signed for" if view.pinned else "cannot be pinned"), "stopped"
    if not view.pinned:
        return "not pinned: nothing of it is signed", "goes"
    return "pinned", "waits"


async def vault_of(request: PageRequest) -> VaultView:
    """The vault that the path names. Raises UnknownVault."""
    vault_id = request.path_id("vault_id")
    for view in await request.to.vaults():
        if view.vault_id == vault_id:
            return view
    raise UnknownVault("the platform has shown no such vault", hint="Go back to the vaults.")


def vault_part(vault_id: str) -> Live:
    return Live("vault", "vaults/standing.html", f"/vaults/{vault_id}/standing")


async def _listed(request: PageRequest) -> dict[str, Any]:
    return {"part": VAULTS, "vaults": tuple(vault_status(view) for view in await request.to.vaults())}


async def vault(request: PageRequest) -> Response:
    status = vault_status(await vault_of(request))
    return await request.page(
        "vaults/vault.html",
        title=status.view.name,
        here="/vaults",
        part=vault_part(status.view.vault_id),
        vault=status,
        **await _paid(request, status.view.vault_id),
    )


# The journal keeps all of them.
MOST_PAYMENTS = 50


async def _paid(request: PageRequest, vault_id: str) -> dict[str, Any]:
    """The vault's proposals known to this machine, the newest first."""
    lines = [line for line in await request.service.proposals(ended=True) if line.vault_id == vault_id][::-1]
    return {
        "lines": lines[:MOST_PAYMENTS],
        "more": max(len(lines) - MOST_PAYMENTS, 0),
        "payments_part": Live("payments", "vaults/payments.html", f"/vaults/{vault_id}/payments"),
    }


async def payments(request: PageRequest) -> Response:
    lines = await _paid(request, request.path_id("vault_id"))
    return request.part(lines["payments_part"], **lines)


async def balance(request: PageRequest) -> Response:
    """A request of its own, because the platform may take a while to answer."""
    funds = await request.call(VaultsApi.vault_funds)
    return fragment("vaults/balance.html", funds=funds)


# Shown on the vault's own page.
NEWEST_MOVEMENTS = 5


async def newest_movements(request: PageRequest) -> Response:
    """As the balance."""
    movements = await request.call(VaultsApi.vault_movements, limit=NEWEST_MOVEMENTS)
    return fragment("vaults/newest_movements.html", page=movements)


async def movements(request: PageRequest) -> Response:
    view = await vault_of(request)
    listed = await request.call(VaultsApi.vault_movements)
    return await request.page(
        "vaults/movements.html",
        title=f"Movements of {view.name}",
        here="/vaults",
        vault=view,
        sought=await request.given(VaultsApi.vault_movements),
        page=listed,
    )


async def receive(request: PageRequest) -> Response:
    view = await vault_of(request)
    funds = await request.call(VaultsApi.vault_funds)
    return await request.page(
        "vaults/receive.html",
        title=f"Receive to {view.name}",
        here="/vaults",
        vault=view,
        funds=funds,
        picture=as_address(draw(funds.fresh.address)),
        **saying(request, view.vault_id),
    )


async def vault_standing(request: PageRequest, view: VaultView | None = None) -> Response:
    """``view``: as it is after a change."""
    status = vault_status(await vault_of(request) if view is None else view)
    return request.part(vault_part(status.view.vault_id), vault=status)


async def tokens(request: PageRequest) -> Response:
    view = await vault_of(request)
    tokens = await request.call(VaultsApi.vault_tokens)
    return await request.page(
        "vaults/tokens.html", title=f"Tokens of {view.name}", here="/vaults", vault=view, page=tokens
    )


async def kit(request: PageRequest) -> Response:
    """A download, to be opened as a local file: the document has its own policy and style."""
    vault_id, journal = request.path_id("vault_id"), request.service.journal
    pin = journal.pin(vault_id)
    if pin is None:
        raise NotPinned(f"no vault '{vault_id}' is pinned here")
    headers = attachment(document.file_name(pin))
    return Response(document.kit(pin, journal.now()), headers=headers, media_type=HTML)


# What fits into a form within the guard's 64 KiB, where "+" and "/" of base64 take three bytes each.
MAX_TEXT = 40_000


async def _imported(request: PageRequest) -> ImportedQuorum | None:
    """None: the platform's record. The confirming form sends the vault back as its descriptor.

    Raises InvalidRequest.
    """
    fields, network = await request.fields(), request.service.journal.network
    source = fields.one("source")
    if source in {"", "record"}:
        return None
    if fields.one("descriptor"):
        return shaped(ImportedQuorum, source=source, descriptor=fields.one("descriptor"))
    text = fields.one("text").strip()
    if not text.isascii() or not text or len(text) > MAX_TEXT:
        raise InvalidRequest(
            f"paste up to {MAX_TEXT:,} characters of plain text",
            hint="For a larger or binary file, use `signerd pin --from` or `--psbt`.",
        )
    try:
        vault = (
            vault_of_psbt(ReceivedPsbt.parse(text).psbt, network)
            if source == "psbt"
            else vault_of_file(text, network)
        )
    except MultisigError as error:
        raise InvalidRequest(f"no vault can be read from this: {error}", hint=error.hint) from error
    return shaped(ImportedQuorum, source=source, descriptor=vault.descriptor)


SOURCES = {"record": "the platform's record", "file": "what you pasted", "psbt": "the PSBT that you pasted"}


async def _compared(request: PageRequest, imported: ImportedQuorum | None) -> dict[str, Any]:
    preview = await request.call(VaultsApi.preview_pin, imported=imported)
    return {
        "preview": preview,
        "vault": vault_status(preview.vault),
        "source_words": SOURCES.get(preview.source, preview.source),
        "imported": imported,
    }


async def wizard(request: PageRequest) -> Response:
    """Raises what prevents pinning, before the person compares anything."""
    seen = await vault_of(request)
    return await request.page(
        "vaults/pin.html",
        title=f"Pin {seen.name}",
        here="/vaults",
        most=MAX_TEXT,
        **saying(request, seen.vault_id),
        **await _compared(request, None),
    )


async def preview(request: PageRequest) -> Response:
    """Compares the imported vault with the platform's record: the two must be equal."""
    context = await _compared(request, await _imported(request))
    # Removes the import form.
    gone = '<div id="from-elsewhere" hx-swap-oob="delete"></div>'
    return answer(render("vaults/compare.html", **context) + gone)


async def pin(request: PageRequest) -> Response:
    pinned = await request.call(VaultsApi.pin, imported=await _imported(request))
    return fragment("vaults/pinned.html", vault=vault_status(pinned))


async def enrolment(request: PageRequest) -> Response:
    given = await request.call(VaultsApi.enrolment, form="coldcard")
    series, carried = request.query("codes"), given.text.encode()
    if series not in {"", "bbqr", "ur"}:
        raise InvalidRequest("codes: choose one of the two kinds of codes")
    frames = await to_thread(pictures, carried, series) if series else ()
    content = b64encode(carried).decode("ascii")
    return fragment("vaults/enrolment.html", given=given, content=content, frames=frames)


async def of_vault(request: PageRequest) -> Response:
    vault_id = request.path_id("vault_id")
    fresh = (await request.call(VaultsApi.vault_funds)).fresh.index
    return await _addresses(request, VaultsApi.vault_addresses, f"/vaults/{vault_id}", vault_id, fresh)


async def of_profile(request: PageRequest) -> Response:
    registered = (await request.service.status()).fingerprint
    devices = await request.service.devices()
    # The feed's lines about showing one of these have the device as their subject.
    subject = next((one.id for one in devices if one.fingerprint == registered), "profile")
    return await _addresses(request, VaultsApi.profile_addresses, "/profile", subject)


async def _addresses(
    request: PageRequest,
    call: "described[..., AddressPage]",
    base: str,
    subject: str,
    fresh: int | None = None,
) -> Response:
    """``fresh``: the index of the next unused receive address, where it is known."""
    place, listed = await request.given(call), await request.call(call, count=USUAL_COUNT)
    return await request.page(
        "vaults/addresses.html",
        title=f"Addresses of {listed.name}",
        here="/vaults",
        listed=listed,
        place=place,
        base=base,
        fresh=fresh,
        before=max(place.start - USUAL_COUNT, 0),
        after=place.start + USUAL_COUNT,
        full=len(listed.addresses) == USUAL_COUNT,
        **saying(request, subject),
    )


ROWS = (
    page("/vaults", "vaults/vaults.html", "Vaults", _listed),
    part(VAULTS, _listed),
    PageRoute("GET", "/vaults/{vault_id}", vault),
    PageRoute("GET", "/vaults/{vault_id}/standing", vault_standing),
    act("/vaults/{vault_id}/unpin", VaultsApi.unpin, vault_standing),
    PageRoute("GET", "/vaults/{vault_id}/payments", payments),
    PageRoute("GET", "/vaults/{vault_id}/balance", balance),
    PageRoute("GET", "/vaults/{vault_id}/movements", movements),
    PageRoute("GET", "/vaults/{vault_id}/movements/newest", newest_movements),
    PageRoute("GET", "/vaults/{vault_id}/receive", receive),
    PageRoute("GET", "/vaults/{vault_id}/tokens", tokens),
    PageRoute("GET", "/vaults/{vault_id}/kit", kit),
    PageRoute("GET", "/vaults/{vault_id}/pin", wizard),
    PageRoute("GET", "/vaults/{vault_id}/enrolment", enrolment),
    PageRoute("POST", "/vaults/{vault_id}/pin/preview", preview),
    PageRoute("POST", "/vaults/{vault_id}/pin", pin),
    PageRoute("GET", "/vaults/{vault_id}/addresses", of_vault),
    act("/vaults/{vault_id}/addresses/show", VaultsApi.show_vault_address, "vaults/shown.html"),
    PageRoute("GET", "/profile/addresses", of_profile),
    act("/profile/addresses/show", VaultsApi.show_profile_address, "vaults/shown.html"),
)
