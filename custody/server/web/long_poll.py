"""Reads that wait for a change: ``If-None-Match`` with ``Prefer: wait=SECONDS`` (RFC 9110, RFC 7240)."""

import time
from dataclasses import replace
from hashlib import sha256
from http import HTTPStatus
from typing import Any, Final

from starlette.concurrency import run_in_threadpool
from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.responses import Response

from custody.common.pages.serving import is_known
from custody.schemas.proposals import MAX_LONG_POLL_SECONDS
from custody.server.calls import Ctx, Invocation, Watched, answer
from custody.server.errors import CustodyError, Invalid
from custody.server.requests.changes import read_revision
from custody.server.services import Services
from custody.server.web.http import page_headers

# Python reads no number of thousands of digits.
MAX_DIGITS = 9
# How often a long poll checks that its caller still has access (P23).
PERMISSION_SECONDS = 15.0
# For the OpenAPI document.
DOCUMENTED: Final[dict[str, Any]] = {
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


async def answer_in_time(services: Services, invocation: Invocation, request: Request) -> Response:
    """The answer, or a 304 where it is the same still when the time is over. Each read lets the caller in
    anew: losing access ends a long poll too (P23).
    """
    caller, seconds = invocation.caller, wait_seconds(request.headers)
    if seconds and getattr(invocation.request, "search", None) is not None:
        raise Invalid.at("/search", "A search does not wait. Ask without Prefer: wait, or without search.")
    deadline = time.monotonic() + seconds
    response, seen = await run_in_threadpool(_look_at, services, invocation, request)
    while response.status_code == HTTPStatus.NOT_MODIFIED and await _has_moved(
        services, invocation, seen, deadline
    ):
        # Each read counts as a call: in a busy workspace one long poll may become many (429 in the end).
        services.rates.calls.take(caller.counted_as)
        response, seen = await run_in_threadpool(_look_at, services, invocation, request)
    return response


async def _has_moved(
    services: Services, invocation: Invocation, seen: Watched[None], deadline: float
) -> bool:
    """Waits until the answer may have changed (True), or the time is over or the server stops (False)."""
    while (left := deadline - time.monotonic()) > 0 and not services.tools.changes.closing:
        with services.rates.long_poll(invocation.caller.counted_as, seen.workspace_id):
            moved = await services.following.wait(
                seen.workspace_id, seen.revision, min(left, PERMISSION_SECONDS)
            )
        if moved:
            return True
        if left > PERMISSION_SECONDS and await run_in_threadpool(_is_stale, services, invocation, seen):
            return True
    return False


def _is_stale(services: Services, invocation: Invocation, seen: Watched[None]) -> bool:
    """Whether the answer may have changed, or the caller has lost access."""
    with services.store.read() as db:
        try:
            Ctx(services, invocation.caller, db).enter(invocation.call, seen.workspace_id)
        except CustodyError:
            return True
        return read_revision(db, seen.workspace_id) != seen.revision


def _look_at(services: Services, invocation: Invocation, request: Request) -> tuple[Response, Watched[None]]:
    """The response as of now, or a 304. The answer itself is not kept in memory while the caller waits."""
    answered = answer(services, invocation)
    assert isinstance(answered.value, Watched), "the function of a long poll says what it waits for"
    seen = replace(answered.value, answer=None)
    etag = f'"{sha256(answered.content).hexdigest()[:32]}"'
    if is_known(request, etag):
        return Response(status_code=HTTPStatus.NOT_MODIFIED, headers={"ETag": etag}), seen
    headers = {"ETag": etag, "Cache-Control": "private, no-cache", **page_headers(invocation, answered)}
    return Response(answered.content, media_type="application/json", headers=headers), seen


def wait_seconds(headers: Headers) -> float:
    """``Prefer: wait=SECONDS`` (RFC 7240); a preference that cannot be parsed is ignored."""
    for preference in headers.get("prefer", "").split(","):
        name, _, value = preference.strip().partition("=")
        if name.lower() == "wait" and value.isascii() and value.isdigit():
            return min(int(value[:MAX_DIGITS]), MAX_LONG_POLL_SECONDS)
    return 0
