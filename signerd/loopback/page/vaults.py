"""Vaults: their figures and pinning; and the addresses of a pinned vault and of the profile."""

from asyncio import to_thread
from base64 import b64encode
from dataclasses import dataclass
from typing import Any

from starlette.responses import Response

from custody.common.pages.rendering import Live
from custody.common.pages.serving import HTML, attachment
from firmware_bridge.airgap import draw
from multisig import MultisigError, ReceivedPsbt, read_vault_file, vault_of_psbt
from signerd.api.described import described
from signerd.api.vaults import VaultsApi
from signerd.daemon.vaults import pinned as pinned_vault
from signerd.errors import InvalidRequest, UnknownVault
from signerd.kit import document
from signerd.loopback.page.airgap import as_address, pictures
from signerd.loopback.page.home import saying
from signerd.loopback.page.rendering import (
    MakesContext,
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
from signerd.shapes import AddressPage, ImportedQuorum, VaultPolicy, VaultView
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


async def _listed(request: PageRequest) -> dict[str, Any]:
    return {"part": VAULTS, "vaults": tuple(vault_status(view) for view in await request.to.vaults())}


def _vault(view: VaultView) -> dict[str, Any]:
    live = Live("vault", "vaults/standing.html", f"/vaults/{view.vault_id}/standing")
    return {"title": view.name, "part": live, "vault": vault_status(view)}


async def _standing(request: PageRequest) -> dict[str, Any]:
    return _vault(await vault_of(request))


async def _vault_and_payments(request: PageRequest) -> dict[str, Any]:
    return {**await _standing(request), **await _paid(request)}


# The journal keeps all of them.
MOST_PAYMENTS = 50


async def _paid(request: PageRequest) -> dict[str, Any]:
    """The vault's proposals known to this machine, the newest first."""
    vault_id = request.path_id("vault_id")
    lines = [line for line in await request.service.proposals(ended=True) if line.vault_id == vault_id][::-1]
    return {
        "lines": lines[:MOST_PAYMENTS],
        "more": max(len(lines) - MOST_PAYMENTS, 0),
        "payments_part": Live("payments", "vaults/payments.html", f"/vaults/{vault_id}/payments"),
    }


async def _movements(request: PageRequest) -> dict[str, Any]:
    view = await vault_of(request)
    return {
        "title": f"Movements of {view.name}",
        "vault": view,
        "page": await request.call(VaultsApi.vault_movements),
        "sought": await request.given(VaultsApi.vault_movements),
    }


async def _receive(request: PageRequest) -> dict[str, Any]:
    view, funds = await vault_of(request), await request.call(VaultsApi.vault_funds)
    return {
        "title": f"Receive to {view.name}",
        "vault": view,
        "funds": funds,
        "picture": as_address(draw(funds.fresh.address)),
        **saying(request, view.vault_id),
    }


async def unpinned(request: PageRequest, view: VaultView) -> Response:
    """The vault as it is after that."""
    made = _vault(view)
    return request.part(made["part"], **made)


async def _tokens(request: PageRequest) -> dict[str, Any]:
    view = await vault_of(request)
    listed = await request.call(VaultsApi.vault_tokens)
    return {"title": f"Tokens of {view.name}", "vault": view, "page": listed}


async def kit(request: PageRequest) -> Response:
    """A download, to be opened as a local file: the document has its own policy and style."""
    pin = pinned_vault(request.service, request.path_id("vault_id"), "what would be on paper is not known")
    made = document.kit(pin, request.service.journal.now())
    return Response(made, headers=attachment(document.file_name(pin)), media_type=HTML)


# What fits into a form within the guard's 64 KiB, where "+" and "/" of base64 take three bytes each.
MAX_TEXT = 40_000


async def _imported(request: PageRequest) -> tuple[ImportedQuorum | None, tuple[str, ...]]:
    """And what to say of how it was read. None: the platform's record. The confirming form sends the vault
    back as its descriptor.

    Raises InvalidRequest.
    """
    fields, network = await request.fields(), request.service.journal.network
    source, text = fields.one("source"), fields.one("descriptor")
    if source in {"", "record"}:
        return None, ()
    if text:
        return shaped(ImportedQuorum, source=source, descriptor=text), ()
    text = fields.one("text").strip()
    if not text or len(text) > MAX_TEXT:
        raise InvalidRequest(
            f"paste up to {MAX_TEXT:,} characters of plain text",
            hint="For a larger or binary file, use `signerd pin --from` or `--psbt`.",
        )
    try:
        if source == "psbt":
            vault = vault_of_psbt(ReceivedPsbt.parse(text).psbt, network)
            return shaped(ImportedQuorum, source=source, descriptor=vault.descriptor), ()
        read = read_vault_file(text, network)
    except MultisigError as error:
        raise InvalidRequest(f"no vault can be read from this: {error}", hint=error.hint) from error
    notes = (f"It was read as {read.form}.", *read.notes)
    return shaped(ImportedQuorum, source=source, descriptor=read.vault.descriptor), notes


SOURCES = {"record": "the platform's record", "file": "what you gave", "psbt": "the PSBT that you gave"}


async def _compared(
    request: PageRequest, imported: ImportedQuorum | None, notes: tuple[str, ...] = ()
) -> dict[str, Any]:
    preview = await request.call(VaultsApi.preview_pin, imported=imported)
    return {
        "preview": preview,
        "vault": vault_status(preview.vault),
        "source_words": SOURCES.get(preview.source, preview.source),
        "imported": imported,
        "notes": notes,
    }


async def _to_pin(request: PageRequest) -> dict[str, Any]:
    """Raises what prevents pinning, before the person compares anything."""
    seen = await vault_of(request)
    said = saying(request, seen.vault_id)
    return {"title": f"Pin {seen.name}", "most": MAX_TEXT, **said, **await _compared(request, None)}


async def preview(request: PageRequest) -> Response:
    """Compares the imported vault with the platform's record: the two must be equal."""
    context = await _compared(request, *await _imported(request))
    # Removes the import form.
    gone = '<div id="from-elsewhere" hx-swap-oob="delete"></div>'
    return answer(render("vaults/compare.html", **context) + gone)


async def pin(request: PageRequest) -> Response:
    imported, _notes = await _imported(request)
    pinned = await request.call(VaultsApi.pin, imported=imported)
    return fragment("vaults/pinned.html", vault=vault_status(pinned))


async def enrolment(request: PageRequest) -> Response:
    given = await request.call(VaultsApi.enrolment, form="coldcard")
    series, carried = request.query("codes"), given.text.encode()
    if series not in {"", "bbqr", "ur"}:
        raise InvalidRequest("codes: choose one of the two kinds of codes")
    frames = await to_thread(pictures, carried, series) if series else ()
    content = b64encode(carried).decode("ascii")
    return fragment("vaults/enrolment.html", given=given, content=content, frames=frames)


async def policy(_request: PageRequest, done: VaultPolicy) -> Response:
    content = b64encode(done.caravan.encode()).decode("ascii")
    return fragment("vaults/policy.html", done=done, content=content)


async def _of_vault(request: PageRequest) -> dict[str, Any]:
    vault_id = request.path_id("vault_id")
    fresh = (await request.call(VaultsApi.vault_funds)).fresh.index
    return await _addresses(request, VaultsApi.vault_addresses, f"/vaults/{vault_id}", vault_id, fresh)


async def _of_profile(request: PageRequest) -> dict[str, Any]:
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
) -> dict[str, Any]:
    """``fresh``: the index of the next unused receive address, where it is known."""
    place, listed = await request.given(call), await request.call(call, count=USUAL_COUNT)
    return {
        "title": f"Addresses of {listed.name}",
        "listed": listed,
        "place": place,
        "base": base,
        "fresh": fresh,
        "before": max(place.start - USUAL_COUNT, 0),
        "after": place.start + USUAL_COUNT,
        "full": len(listed.addresses) == USUAL_COUNT,
        **saying(request, subject),
    }


def _of_vaults(below: str, name: str, context: MakesContext) -> PageRoute:
    """A page about one vault."""
    path = f"/vaults/{{vault_id}}{below}"
    return page(path, f"vaults/{name}.html", None, context, here="/vaults")


ROWS = (
    page("/vaults", "vaults/vaults.html", "Vaults", _listed),
    part(VAULTS.path, _listed),
    _of_vaults("", "vault", _vault_and_payments),
    part("/vaults/{vault_id}/standing", _standing),
    act("/vaults/{vault_id}/unpin", VaultsApi.unpin, unpinned),
    part("/vaults/{vault_id}/payments", _paid, "payments_part"),
    # Requests of their own, because the platform may take a while to answer.
    act("/vaults/{vault_id}/balance", VaultsApi.vault_funds, "vaults/balance.html", "GET"),
    act("/vaults/{vault_id}/movements/newest", VaultsApi.vault_movements, "vaults/newest.html", "GET"),
    _of_vaults("/movements", "movements", _movements),
    _of_vaults("/receive", "receive", _receive),
    _of_vaults("/tokens", "tokens", _tokens),
    PageRoute("GET", "/vaults/{vault_id}/kit", kit),
    act("/vaults/{vault_id}/policy", VaultsApi.vault_policy, policy, "GET"),
    _of_vaults("/pin", "pin", _to_pin),
    PageRoute("GET", "/vaults/{vault_id}/enrolment", enrolment),
    PageRoute("POST", "/vaults/{vault_id}/pin/preview", preview),
    PageRoute("POST", "/vaults/{vault_id}/pin", pin),
    _of_vaults("/addresses", "addresses", _of_vault),
    act("/vaults/{vault_id}/addresses/show", VaultsApi.show_vault_address, "vaults/shown.html"),
    page("/profile/addresses", "vaults/addresses.html", None, _of_profile, here="/vaults"),
    act("/profile/addresses/show", VaultsApi.show_profile_address, "vaults/shown.html"),
)
