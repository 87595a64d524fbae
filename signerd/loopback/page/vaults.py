"""Vaults: their figures and pinning; and the addresses of a pinned vault and of the profile."""

from asyncio import to_thread
from base64 import b64encode
from dataclasses import dataclass
from typing import Any

from starlette.responses import Response

from custody.common.pages.rendering import Live
from custody.common.pages.serving import HTML, attachment
from multisig import MultisigError, ReceivedPsbt, vault_of_file, vault_of_psbt
from signerd.api.described import described
from signerd.api.vaults import VaultsApi
from signerd.errors import InvalidRequest, NotPinned, UnknownVault
from signerd.loopback.page.airgap import as_address, pictures
from signerd.loopback.page.home import saying
from signerd.loopback.page.rendering import PageRequest, PageRoute, act, answer, fragment, render, shaped
from signerd.shapes import AddressPage, AddressShown, ImportedQuorum, VaultView
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


async def vault_of(asked: PageRequest) -> VaultView:
    """The vault that the path names. Raises UnknownVault."""
    vault_id = asked.path_id("vault_id")
    for found in await asked.to.vaults():
        if found.vault_id == vault_id:
            return found
    raise UnknownVault("the platform has shown no such vault", hint="Go back to the vaults.")


def vault_part(vault_id: str) -> Live:
    return Live("vault", "vaults/standing.html", f"/vaults/{vault_id}/standing")


async def vaults(asked: PageRequest) -> Response:
    return await asked.page(
        "vaults/vaults.html", title="Vaults", here="/vaults", part=VAULTS, **await _listed(asked)
    )


async def refreshed(asked: PageRequest) -> Response:
    return asked.part(VAULTS, **await _listed(asked))


async def _listed(asked: PageRequest) -> dict[str, Any]:
    return {"vaults": tuple(vault_status(view) for view in await asked.to.vaults())}


async def vault(asked: PageRequest) -> Response:
    found = vault_status(await vault_of(asked))
    return await asked.page(
        "vaults/vault.html",
        title=found.view.name,
        here="/vaults",
        part=vault_part(found.view.vault_id),
        vault=found,
        **await _paid(asked, found.view.vault_id),
    )


# The journal keeps all of them.
MOST_PAYMENTS = 50


async def _paid(asked: PageRequest, vault_id: str) -> dict[str, Any]:
    """The vault's proposals known to this machine, the newest first."""
    found = [line for line in await asked.service.proposals(ended=True) if line.vault_id == vault_id][::-1]
    return {
        "lines": found[:MOST_PAYMENTS],
        "more": max(len(found) - MOST_PAYMENTS, 0),
        "payments_part": Live("payments", "vaults/payments.html", f"/vaults/{vault_id}/payments"),
    }


async def payments(asked: PageRequest) -> Response:
    found = await _paid(asked, asked.path_id("vault_id"))
    return asked.part(found["payments_part"], **found)


async def balance(asked: PageRequest) -> Response:
    """A request of its own, because the platform may take a while to answer."""
    funds = await asked.call(VaultsApi.vault_funds)
    return fragment("vaults/balance.html", funds=funds)


# Shown on the vault's own page.
NEWEST_MOVEMENTS = 5


async def newest_movements(asked: PageRequest) -> Response:
    """As the balance."""
    found = await asked.call(VaultsApi.vault_movements, limit=NEWEST_MOVEMENTS)
    return fragment("vaults/newest_movements.html", found=found)


async def movements(asked: PageRequest) -> Response:
    view = await vault_of(asked)
    found = await asked.call(VaultsApi.vault_movements)
    return await asked.page(
        "vaults/movements.html",
        title=f"Movements of {view.name}",
        here="/vaults",
        vault=view,
        sought=await asked.given(VaultsApi.vault_movements),
        found=found,
    )


async def receive(asked: PageRequest) -> Response:
    # Imported at first use: rarely asked for.
    from firmware_bridge.airgap import draw

    view = await vault_of(asked)
    funds = await asked.call(VaultsApi.vault_funds)
    return await asked.page(
        "vaults/receive.html",
        title=f"Receive to {view.name}",
        here="/vaults",
        vault=view,
        funds=funds,
        picture=as_address(draw(funds.fresh.address)),
        **saying(asked, view.vault_id),
    )


async def vault_standing(asked: PageRequest, view: VaultView | None = None) -> Response:
    """``view``: as it is after a change."""
    found = vault_status(await vault_of(asked) if view is None else view)
    return asked.part(vault_part(found.view.vault_id), vault=found)


async def tokens(asked: PageRequest) -> Response:
    view = await vault_of(asked)
    found = await asked.call(VaultsApi.vault_tokens)
    return await asked.page(
        "vaults/tokens.html", title=f"Tokens of {view.name}", here="/vaults", vault=view, found=found
    )


async def kit(asked: PageRequest) -> Response:
    """A download, to be opened as a local file: the document has its own policy and style."""
    # Imported at first use: rarely asked for.
    from signerd.kit.document import file_name
    from signerd.kit.document import kit as document

    vault_id, journal = asked.path_id("vault_id"), asked.service.journal
    pin = journal.pin(vault_id)
    if pin is None:
        raise NotPinned(f"no vault '{vault_id}' is pinned here")
    headers = attachment(file_name(pin))
    return Response(document(pin, journal.now()), headers=headers, media_type=HTML)


# What fits into a form within the guard's 64 KiB, where "+" and "/" of base64 take three bytes each.
MAX_TEXT = 40_000


async def _imported(asked: PageRequest) -> ImportedQuorum | None:
    """None: the platform's record. The confirming form sends the vault back as its descriptor.

    Raises InvalidRequest.
    """
    fields, network = await asked.fields(), asked.service.journal.network
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


async def _compared(asked: PageRequest, imported: ImportedQuorum | None) -> dict[str, Any]:
    found = await asked.call(VaultsApi.preview_pin, imported=imported)
    return {
        "preview": found,
        "vault": vault_status(found.vault),
        "source_words": SOURCES.get(found.source, found.source),
        "imported": imported,
    }


async def wizard(asked: PageRequest) -> Response:
    """Raises what prevents pinning, before the person compares anything."""
    seen = await vault_of(asked)
    return await asked.page(
        "vaults/pin.html",
        title=f"Pin {seen.name}",
        here="/vaults",
        most=MAX_TEXT,
        **saying(asked, seen.vault_id),
        **await _compared(asked, None),
    )


async def preview(asked: PageRequest) -> Response:
    """Compares the imported vault with the platform's record: the two must be equal."""
    context = await _compared(asked, await _imported(asked))
    # Removes the import form.
    gone = '<div id="from-elsewhere" hx-swap-oob="delete"></div>'
    return answer(render("vaults/compare.html", **context) + gone)


async def pin(asked: PageRequest) -> Response:
    pinned = await asked.call(VaultsApi.pin, imported=await _imported(asked))
    return fragment("vaults/pinned.html", vault=vault_status(pinned))


async def enrolment(asked: PageRequest) -> Response:
    given = await asked.call(VaultsApi.enrolment, form="coldcard")
    series, carried = asked.query("codes"), given.text.encode()
    if series not in {"", "bbqr", "ur"}:
        raise InvalidRequest("codes: choose one of the two kinds of codes")
    frames = await to_thread(pictures, carried, series) if series else ()
    content = b64encode(carried).decode("ascii")
    return fragment("vaults/enrolment.html", given=given, content=content, frames=frames)


async def of_vault(asked: PageRequest) -> Response:
    vault_id = asked.path_id("vault_id")
    fresh = (await asked.call(VaultsApi.vault_funds)).fresh.index
    return await _addresses(asked, VaultsApi.vault_addresses, f"/vaults/{vault_id}", vault_id, fresh)


async def of_profile(asked: PageRequest) -> Response:
    registered = (await asked.service.status()).fingerprint
    devices = await asked.service.devices()
    # The feed's lines about showing one of these have the device as their subject.
    subject = next((one.id for one in devices if one.fingerprint == registered), "profile")
    return await _addresses(asked, VaultsApi.profile_addresses, "/profile", subject)


async def _addresses(
    asked: PageRequest,
    call: "described[..., AddressPage]",
    base: str,
    subject: str,
    fresh: int | None = None,
) -> Response:
    """``fresh``: the index of the next unused receive address, where it is known."""
    place, page = await asked.given(call), await asked.call(call, count=USUAL_COUNT)
    return await asked.page(
        "vaults/addresses.html",
        title=f"Addresses of {page.name}",
        here="/vaults",
        listed=page,
        place=place,
        base=base,
        fresh=fresh,
        before=max(place.start - USUAL_COUNT, 0),
        after=place.start + USUAL_COUNT,
        full=len(page.addresses) == USUAL_COUNT,
        **saying(asked, subject),
    )


async def shown(_asked: PageRequest, done: AddressShown) -> Response:
    return fragment("vaults/shown.html", done=done)


ROWS = (
    PageRoute("GET", "/vaults", vaults),
    PageRoute("GET", "/parts/vaults", refreshed),
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
    act("/vaults/{vault_id}/addresses/show", VaultsApi.show_vault_address, shown),
    PageRoute("GET", "/profile/addresses", of_profile),
    act("/profile/addresses/show", VaultsApi.show_profile_address, shown),
)
