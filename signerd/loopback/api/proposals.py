"""Proposals: seen, approved, declined."""

from typing import Annotated

from signerd import shapes
from signerd.callers import Right
from signerd.errors import UnknownProposal
from signerd.loopback.api.table import By, PathId, Route, Service
from signerd.loopback.binding import In


async def proposals(
    service: Service, caller: By, ended: Annotated[bool, In.QUERY] = False
) -> tuple[shapes.ProposalLine, ...]:
    """An app finds what it brought under ``/psbts``, and what others brought nowhere (L13)."""
    lines = await service.proposals(ended=ended)
    return lines if caller.app_id is None else tuple(line for line in lines if line.brought_by is None)


async def proposal(service: Service, caller: By, psbt_id: PathId) -> shapes.ProposalView:
    view = await service.proposal(psbt_id, caller)
    if caller.app_id is not None and view.brought_by is not None:
        raise UnknownProposal(f"there is no proposal '{psbt_id}' here")
    return view


async def approve(
    service: Service, caller: By, psbt_id: PathId, body: shapes.ApproveRequest
) -> shapes.ProposalLine:
    return await service.approve(psbt_id, body.digest, body.acknowledged, caller)


async def reject(
    service: Service, caller: By, psbt_id: PathId, body: shapes.RejectRequest
) -> shapes.ProposalLine:
    return await service.reject(psbt_id, body.reason, caller)


ROUTES = (
    Route("GET", "/proposals", proposals, Right.READ, "The proposals known here"),
    Route("GET", "/proposals/{psbt_id}", proposal, Right.READ, "Where the money goes, and every check"),
    Route("POST", "/proposals/{psbt_id}/approve", approve, Right.APPROVE, "Approve what was shown"),
    Route("POST", "/proposals/{psbt_id}/reject", reject, Right.APPROVE, "Decline"),
)
