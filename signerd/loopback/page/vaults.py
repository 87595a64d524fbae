"""The vaults: which are pinned, what to compare, and how one is forgotten."""

from dataclasses import dataclass
from typing import Any

from starlette.responses import Response

from signerd import shapes
from signerd.errors import UnknownVault
from signerd.loopback.page.asked import Asked, shaped
from signerd.loopback.page.rendering import Live
from signerd.loopback.page.table import Row
from signerd.shapes import VaultView

VAULTS = Live("vaults", "vaults/list.html", "/parts/vaults")


@dataclass(frozen=True)
class Standing:
    """A vault and what it is, in words."""

    view: VaultView
    words: str
    tone: str
    quorum: str
    pinnable: bool


def standing(view: VaultView) -> Standing:
    quorum = f"{view.threshold} of {view.signers}" if view.signers else "not readable"
    words, tone = _words(view)
    return Standing(view, words, tone, quorum, pinnable=not view.pinned and view.fault is None)


def _words(view: VaultView) -> tuple[str, str]:
    if view.changes:
        return "ALARM: the platform has shown another vault", "stopped"
    if view.fault is not None:
        return ("pinned, and nothing of it is signed" if view.pinned else "cannot be pinned"), "stopped"
    if not view.pinned:
        return "not pinned: nothing of it is signed", "goes"
    return "pinned", "waits"


async def vault_of(asked: Asked) -> VaultView:
    """The one that the path names. Raises UnknownVault."""
    vault_id = asked.path_id("vault_id")
    for found in await asked.service.vaults():
        if found.vault_id == vault_id:
            return found
    raise UnknownVault("the platform has shown no such vault", hint="Go back to the vaults.")


def vault_part(vault_id: str) -> Live:
    return Live("vault", "vaults/standing.html", f"/vaults/{vault_id}/standing")


async def vaults(asked: Asked) -> Response:
    return await asked.page(
        "vaults/vaults.html", title="Vaults", here="/vaults", part=VAULTS, **await _listed(asked)
    )


async def refreshed(asked: Asked) -> Response:
    return asked.part(VAULTS, **await _listed(asked))


async def _listed(asked: Asked) -> dict[str, Any]:
    return {"vaults": tuple(standing(view) for view in await asked.service.vaults())}


async def vault(asked: Asked) -> Response:
    found = standing(await vault_of(asked))
    return await asked.page(
        "vaults/vault.html",
        title=found.view.name,
        here="/vaults",
        part=vault_part(found.view.vault_id),
        vault=found,
    )


async def vault_standing(asked: Asked) -> Response:
    found = standing(await vault_of(asked))
    return asked.part(vault_part(found.view.vault_id), vault=found)


async def unpin(asked: Asked) -> Response:
    """By the code under which it was pinned; nothing of it is signed afterwards."""
    fields = await asked.fields()
    said = shaped(shapes.UnpinRequest, code=fields.one("code"))
    left = standing(await asked.service.unpin(asked.path_id("vault_id"), said.code))
    return asked.part(vault_part(left.view.vault_id), vault=left)


ROWS = (
    Row("GET", "/vaults", vaults),
    Row("GET", "/parts/vaults", refreshed),
    Row("GET", "/vaults/{vault_id}", vault),
    Row("GET", "/vaults/{vault_id}/standing", vault_standing),
    Row("POST", "/vaults/{vault_id}/unpin", unpin),
)
