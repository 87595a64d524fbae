"""Transaction proposals: reading them, with long polls; and the rows of the calls about them."""

import time
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256
from http import HTTPStatus
from urllib.parse import urlencode

from pydantic import TypeAdapter
from sqlalchemy.orm import Session
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response

from custody.schemas.common import Listed
from custody.schemas.proofs import CREATE_PROOF, PROOF
from custody.schemas.proposals import (
    CANCEL_PSBT,
    CREATE_PSBT,
    FORWARD_TO_VAULT,
    MAX_LONG_POLL_SECONDS,
    PREVIEW_FORWARD,
    PREVIEW_PSBT,
    PROPOSAL_READERS,
    SIGN_PSBT,
    Proposal,
)
from custody.schemas.queries import PsbtQuery
from custody.server.domain.credentials import WorkspaceAccess
from custody.server.domain.errors import CustodyError, Invalid, NotFound
from custody.server.service.proposals.proposals import Filter, Page, no_such_proposal
from custody.server.service.requests.changes import read_revision
from custody.server.web.declared import row_of
from custody.server.web.endpoint import Call, Endpoint, Unit

# How often a long poll checks that its caller still has access (P23).
PERMISSION_SECONDS = 15.0
_LIST = TypeAdapter(Listed[Proposal])
LONG_POLL = {
    "parameters": [
        {
            "name": name,
            "in": "header",
            "required": False,
            "schema": {"type": "string"},
            "description": text,
            "example": example,
        }
        for name, text, example in (
            ("If-None-Match", "The ETag of what was read before.", '"0123456789abcdef0123456789abcdef"'),
            ("Prefer", "How long to wait for a change (RFC 7240).", "wait=30"),
        )
    ],
    "responses": {"304": {"description": "Nothing has changed."}},
}


@dataclass(frozen=True)
class _Seen:
    """The workspace that was read, and its revision at that moment."""

    workspace_id: int
    revision: int


async def psbt(call: Call[PsbtQuery]) -> Response:
    """One proposal, or a workspace's. ``If-None-Match`` with ``Prefer: wait=SECONDS`` waits for a change. The PSBT carries the
    signatures that were given for the vault's signers alone, while it may still be finished; others read it unsigned. A ``search``
    counts as ten calls and does not wait.
    """  # noqa: E501
    wait_seconds = _wait_seconds(call.request)
    if call.body.search is not None:
        if wait_seconds:
            raise Invalid.at(
                "/search", "A search does not wait. Ask without Prefer: wait, or without search."
            )
        call.services.rates.take_search(call.caller.counted_as)
    deadline = time.monotonic() + wait_seconds
    answer, seen = await run_in_threadpool(_look_at, call)
    while answer.status_code == HTTPStatus.NOT_MODIFIED and await _has_moved(call, seen, deadline):
        # Each read counts as a call: in a busy workspace one long poll may become many (429 in the end).
        call.services.rates.take(call.caller.counted_as, is_write=False)
        answer, seen = await run_in_threadpool(_look_at, call)
    return answer


async def _has_moved(call: Call[PsbtQuery], seen: _Seen, deadline: float) -> bool:
    """Waits until the list may have changed (True), or the time is over or the server stops (False)."""
    services = call.services
    while (left := deadline - time.monotonic()) > 0 and not services.tools.changes.closing:
        with services.rates.long_poll(call.caller.counted_as, seen.workspace_id):
            moved = await services.following.wait(
                seen.workspace_id, seen.revision, min(left, PERMISSION_SECONDS)
            )
        if moved or (left > PERMISSION_SECONDS and await run_in_threadpool(_is_stale, call, seen)):
            return True
    return False


def _is_stale(call: Call[PsbtQuery], seen: _Seen) -> bool:
    """Whether the list has changed, or the caller has lost access."""
    with call.services.store.read() as db:
        try:
            call.enter(db, seen.workspace_id)
        except CustodyError:
            return True
        return read_revision(db, seen.workspace_id) != seen.revision


def _look_at(call: Call[PsbtQuery]) -> tuple[Response, _Seen]:
    """The response as of now, or a 304. The list itself is not kept in memory while the caller waits."""
    shown, seen = _read(call)
    if not _matches(call.request, shown.etag):
        return shown.response(), seen
    return Response(status_code=HTTPStatus.NOT_MODIFIED, headers={"ETag": shown.etag}), seen


@dataclass(frozen=True)
class _Shown:
    body: bytes
    headers: dict[str, str]

    @cached_property
    def etag(self) -> str:
        return f'"{sha256(self.body).hexdigest()[:32]}"'

    def response(self) -> Response:
        headers = {**self.headers, "ETag": self.etag, "Cache-Control": "private, no-cache"}
        return Response(self.body, media_type="application/json", headers=headers)


def _read(call: Call[PsbtQuery]) -> tuple[_Shown, _Seen]:
    """Checks the caller's access at each read: losing it ends a long poll too (P23)."""
    query, proposals = call.body, call.services.proposals
    with call.services.store.read() as db:
        if query.psbt_id is None:
            assert query.workspace_id is not None, "the query's own rule"
            access = call.enter(db, query.workspace_id)
            awaiting = call.caller.user_id if query.awaiting else None
            wanted = Filter(
                query.status,
                awaiting,
                query.after,
                query.limit,
                query.vault_id,
                query.order == "newest",
                query.search,
                query.tx_type is not None,
                query.from_day,
                query.to_day,
            )
            return _shown_page(query, proposals.page(db, call.caller, access, wanted)), _seen(
                db, query.workspace_id
            )
        found = proposals.find(db, query.psbt_id)
        if query.workspace_id not in {None, found.workspace_id}:
            raise no_such_proposal()
        access = _enter_workspace_of(call, db, found.workspace_id)
        record = proposals.record(db, call.caller, access, found)
        shown = _Shown(record.model_dump_json(by_alias=True).encode(), {})
        return shown, _seen(db, found.workspace_id)


def _seen(db: Session, workspace_id: int) -> _Seen:
    """Read in the same snapshot as the list: a later commit has a higher revision."""
    return _Seen(workspace_id, read_revision(db, workspace_id))


def _enter_workspace_of(call: Call[PsbtQuery], db: Session, workspace_id: int) -> WorkspaceAccess:
    """Another tenant's proposal is answered exactly as one that does not exist (P24)."""
    try:
        return call.enter(db, workspace_id)
    except NotFound:
        raise no_such_proposal() from None


def _shown_page(query: PsbtQuery, page: Page) -> _Shown:
    headers = {"X-Total-Count": str(page.total)}
    if not page.is_exact:
        headers["X-Total-Count-Is"] = "at-least"
    if page.following is not None:
        values = query.model_dump(mode="json", exclude_none=True) | {"after": page.following}
        headers["Link"] = f'</api/v1/psbt?{urlencode(values)}>; rel="next"'
    return _Shown(_LIST.dump_json(page.items, by_alias=True), headers)


def _wait_seconds(request: Request) -> float:
    """``Prefer: wait=SECONDS`` (RFC 7240); a preference that cannot be parsed is ignored."""
    for preference in request.headers.get("prefer", "").split(","):
        name, _, value = preference.strip().partition("=")
        if name.lower() == "wait" and value.isascii() and value.isdigit() and len(value) < 5:
            return min(int(value), MAX_LONG_POLL_SECONDS)
    return 0


def _matches(request: Request, etag: str) -> bool:
    """RFC 9110, section 13.1.2: the weak comparison."""
    given = request.headers.get("if-none-match", "")
    return etag in {tag.strip().removeprefix("W/") for tag in given.split(",")}


ENDPOINTS = (
    row_of(CREATE_PSBT),
    row_of(PREVIEW_PSBT),
    Endpoint(
        "GET", "/api/v1/psbt", psbt, Proposal | Listed[Proposal], PROPOSAL_READERS, Unit.OWN, PsbtQuery,
        extra=LONG_POLL,
    ),
    row_of(CANCEL_PSBT),
    row_of(SIGN_PSBT),
    row_of(FORWARD_TO_VAULT),
    row_of(PREVIEW_FORWARD),
    row_of(CREATE_PROOF),
    row_of(PROOF),
)  # fmt: skip
