"""One proposal: seen, approved, declined, and followed to the chain."""

from http import HTTPStatus
from typing import Any

from starlette.responses import Response

from signerd import shapes
from signerd.errors import IllegalEvent, StaleApproval
from signerd.loopback.page import rendering
from signerd.loopback.page.asked import Asked, shaped
from signerd.loopback.page.rendering import Live
from signerd.loopback.page.reviewing import device_words, shown, stages
from signerd.loopback.page.table import Row
from signerd.shapes import ProposalView
from signerd.words import DELIVERED, ON_THE_WAY


def _standing_part(psbt_id: str) -> Live:
    return Live("standing", "proposals/standing.html", f"/proposals/{psbt_id}/standing")


def _review_part(view: ProposalView, *, changed: bool = False) -> Live:
    """It bears the digest of what it shows, so that the next look knows whether that is another one (S24)."""
    path = f"/proposals/{view.psbt_id}/review?shown={view.digest}{'&changed=1' if changed else ''}"
    return Live("review", "proposals/review.html", path)


def _parts(asked: Asked, view: ProposalView, *, changed: bool = False) -> dict[str, Any]:
    """All that the two parts of the page need."""
    lines = asked.service.feed.since(0, view.psbt_id)
    return {
        "shown": shown(view),
        "stages": stages(view.state, brought=view.brought_by is not None),
        "device_words": device_words(view.state, lines),
        "changed": changed,
        "standing_part": _standing_part(view.psbt_id),
        "review_part": _review_part(view, changed=changed),
    }


async def proposal(asked: Asked) -> Response:
    view = await asked.service.proposal(asked.path_id("psbt_id"))
    return await asked.page(
        "proposals/proposal.html", title=f"Proposal {view.psbt_id}", here="/", **_parts(asked, view)
    )


async def standing(asked: Asked) -> Response:
    view = await asked.service.proposal(asked.path_id("psbt_id"))
    return asked.part(_standing_part(view.psbt_id), **_parts(asked, view))


async def review(asked: Asked) -> Response:
    view = await asked.service.proposal(asked.path_id("psbt_id"))
    changed = asked.query("changed") == "1" or asked.query("shown") != view.digest
    return asked.part(_review_part(view, changed=changed), **_parts(asked, view, changed=changed))


async def approve(asked: Asked) -> Response:
    """Bound to the digest that the page showed; sent twice, it is the one approval."""
    psbt_id, fields = asked.path_id("psbt_id"), await asked.fields()
    said = shaped(
        shapes.ApproveRequest, digest=fields.one("digest"), acknowledged=fields.every("acknowledged")
    )
    try:
        await asked.service.approve(psbt_id, said.digest, said.acknowledged, asked.caller)
    except StaleApproval:
        view = await asked.service.proposal(psbt_id)
        return _changed(asked, view)
    except IllegalEvent:
        view = await asked.service.proposal(psbt_id)
        if view.digest != said.digest or view.state not in ON_THE_WAY | DELIVERED:
            raise
    return await _decided(asked, psbt_id)


async def reject(asked: Asked) -> Response:
    psbt_id, fields = asked.path_id("psbt_id"), await asked.fields()
    said = shaped(shapes.RejectRequest, reason=fields.one("reason"))
    try:
        await asked.service.reject(psbt_id, said.reason, asked.caller)
    except IllegalEvent:
        if (await asked.service.proposal(psbt_id)).state != "declined":
            raise
    return await _decided(asked, psbt_id)


async def _decided(asked: Asked, psbt_id: str) -> Response:
    view = await asked.service.proposal(psbt_id)
    return asked.part(_review_part(view), _standing_part(psbt_id), **_parts(asked, view))


def _changed(asked: Asked, view: ProposalView) -> Response:
    """What it is now, in the place of what was looked at; nothing was approved."""
    context = _parts(asked, view, changed=True)
    html, _mark = rendering.live_part(_review_part(view, changed=True), context)
    headers = {"HX-Retarget": "#review", "HX-Reswap": "outerHTML"}
    return rendering.answer(html, HTTPStatus.CONFLICT, headers)


ROWS = (
    Row("GET", "/proposals/{psbt_id}", proposal),
    Row("GET", "/proposals/{psbt_id}/standing", standing),
    Row("GET", "/proposals/{psbt_id}/review", review),
    Row("POST", "/proposals/{psbt_id}/approve", approve),
    Row("POST", "/proposals/{psbt_id}/reject", reject),
)
