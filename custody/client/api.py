"""All calls of the platform: those that are written from the declarations, and the reading of proposals: one,
or a page of a workspace's, also as a long poll.
"""

from dataclasses import dataclass
from http import HTTPStatus
from typing import Any
from urllib.parse import parse_qs, urlsplit

from pydantic import TypeAdapter

from custody.client.calls import Calls
from custody.client.flow import Core, call, next_page, read_list, sends
from custody.common.exchange import HttpRequest, Plan, method
from custody.schemas.common import LATER, Few
from custody.schemas.proposals import PSBT, Proposal

_PROPOSALS = TypeAdapter(Few[Proposal], config=LATER)


@dataclass(frozen=True)
class ProposalList:
    """``not_modified``: nothing has changed since ``etag``, and ``items`` is empty. ``following``: the id
    after which the next page begins.
    """

    items: tuple[Proposal, ...]
    etag: str | None
    not_modified: bool = False
    following: str | None = None


class Api(Calls):
    """The calls. Each raises ``ApiError``, ``Unreachable``, ``BadAnswer`` or ``SignedOut``."""

    @sends(PSBT, Proposal)
    @staticmethod
    def proposal(psbt_id: str) -> None: ...

    @method
    @staticmethod
    def proposals(
        core: Core,
        /,
        workspace_id: int,
        *,
        etag: str | None = None,
        wait_seconds: int | None = None,
        **filters: Any,
    ) -> Plan[ProposalList]:
        """``GET /api/v1/psbt?workspace_id=``, newest last; ``filters``: the other fields of `PsbtQuery`. With
        ``etag`` and ``wait_seconds`` a long poll (RFC 7240).
        """
        request = proposals_request(core, workspace_id, etag=etag, wait_seconds=wait_seconds, **filters)
        reply = yield from call(core, request, repeatable=True)
        etag = reply.headers.get("etag", etag)
        if reply.status == HTTPStatus.NOT_MODIFIED:
            return ProposalList((), etag, not_modified=True)
        items = read_list(core, reply, _PROPOSALS)
        after = parse_qs(urlsplit(next_page(reply) or "").query).get("after", [None])
        return ProposalList(tuple(items), etag, following=after[0])


def proposals_request(
    core: Core,
    workspace_id: int,
    *,
    etag: str | None = None,
    wait_seconds: int | None = None,
    **filters: Any,
) -> HttpRequest:
    """The request of ``proposals``, for callers that read the answer themselves."""
    query = {"workspace_id": workspace_id, **filters}
    headers = {} if etag is None else {"If-None-Match": etag}
    if wait_seconds:
        headers["Prefer"] = f"wait={wait_seconds}"
    return core.build("GET", PSBT.path, query=query, headers=headers, wait_seconds=wait_seconds or 0)
