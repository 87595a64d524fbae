"""Reading proposals: one, or a workspace's, at once or when something about them has changed (a long poll)."""

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

from custody.schemas.proposals import MAX_LONG_POLL_SECONDS, Proposal
from custody.schemas.queries import PsbtQuery
from custody.schemas.users import PermissionName
from custody.server.domain.errors import CustodyError, NotFound
from custody.server.service.proposals.proposals import Filter, Page, no_such_proposal
from custody.server.service.requests.revisions import read_revision
from custody.server.web.endpoint import Call

READERS = frozenset(
    {
        PermissionName.PAYMENT_INIT,
        PermissionName.PAYMENT_APPROVE,
        PermissionName.MANAGE_WORKSPACE,
        PermissionName.VIEW_BALANCES,
    }
)
# A long poll hears of every change, in whatever process; this often it asks whether its caller may still wait (P23).
PERMISSION_SECONDS = 15.0
_LIST = TypeAdapter(list[Proposal])
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
    """One proposal, or a workspace's. ``If-None-Match`` with ``Prefer: wait=SECONDS`` waits for a change."""
    deadline = time.monotonic() + _wait_seconds(call.request)
    answer, seen = await run_in_threadpool(_look, call)
    while answer.status_code == HTTPStatus.NOT_MODIFIED and await _has_moved(call, seen, deadline):
        # Another look costs what another call does: a workspace that moves all the time makes one call many (429 in the end).
        call.services.rates.take(call.caller.user_id, is_write=False)
        answer, seen = await run_in_threadpool(_look, call)
    return answer


async def _has_moved(call: Call[PsbtQuery], seen: _Seen, deadline: float) -> bool:
    """Waits until another look tells something new (True), or the time is over or the server about to stop (False)."""
    services = call.services
    while (left := deadline - time.monotonic()) > 0 and not services.changes.closing:
        with services.rates.long_poll(call.caller.user_id, seen.workspace_id):
            moved = await services.following.wait(
                seen.workspace_id, seen.revision, min(left, PERMISSION_SECONDS)
            )
        if moved or (left > PERMISSION_SECONDS and await run_in_threadpool(_is_stale, call, seen)):
            return True
    return False


def _is_stale(call: Call[PsbtQuery], seen: _Seen) -> bool:
    """Whether another look tells something new: another list, or in the right words that the caller has no place there."""
    with call.services.store.read() as db:
        try:
            call.enter(db, seen.workspace_id)
        except CustodyError:
            return True
        return read_revision(db, seen.workspace_id) != seen.revision


def _look(call: Call[PsbtQuery]) -> tuple[Response, _Seen]:
    """The answer as of now, a 304 where the caller knows it. No list is held in memory while its caller waits."""
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
    """Checked anew at each look: a permission that is taken away ends a long poll too (P23)."""
    query, proposals = call.body, call.services.proposals
    with call.services.store.read() as db:
        if query.psbt_id is None:
            assert query.workspace_id is not None, "the query's own rule"
            access = call.enter(db, query.workspace_id)
            awaiting = call.caller.user_id if query.awaiting else None
            wanted = Filter(query.status, awaiting, query.after, query.limit)
            return _shown_page(query, proposals.page(db, access, wanted)), _seen(db, query.workspace_id)
        found = proposals.find(db, query.psbt_id)
        if query.workspace_id not in {None, found.workspace_id}:
            raise no_such_proposal()
        _enter_workspace_of(call, db, found.workspace_id)
        shown = _Shown(proposals.record(db, found).model_dump_json(by_alias=True).encode(), {})
        return shown, _seen(db, found.workspace_id)


def _seen(db: Session, workspace_id: int) -> _Seen:
    """In the snapshot of what was read: what is committed later has a higher number."""
    return _Seen(workspace_id, read_revision(db, workspace_id))


def _enter_workspace_of(call: Call[PsbtQuery], db: Session, workspace_id: int) -> None:
    """Another tenant's proposal is answered word for word as one that never was (P24)."""
    try:
        call.enter(db, workspace_id)
    except NotFound:
        raise no_such_proposal() from None


def _shown_page(query: PsbtQuery, page: Page) -> _Shown:
    headers = {"X-Total-Count": str(page.total)}
    if not page.is_exact:
        headers["X-Total-Count-Is"] = "at-least"
    if page.has_more:
        values = query.model_dump(mode="json", exclude_none=True) | {"after": page.items[-1].psbt_id}
        headers["Link"] = f'</api/v1/psbt?{urlencode(values)}>; rel="next"'
    return _Shown(_LIST.dump_json(page.items, by_alias=True), headers)


def _wait_seconds(request: Request) -> float:
    """``Prefer: wait=SECONDS`` (RFC 7240); what cannot be understood is not preferred."""
    for preference in request.headers.get("prefer", "").split(","):
        name, _, value = preference.strip().partition("=")
        if name.lower() == "wait" and value.isascii() and value.isdigit() and len(value) < 5:
            return min(int(value), MAX_LONG_POLL_SECONDS)
    return 0


def _matches(request: Request, etag: str) -> bool:
    """RFC 9110, section 13.1.2: the weak comparison."""
    given = request.headers.get("if-none-match", "")
    return etag in {tag.strip().removeprefix("W/") for tag in given.split(",")}
