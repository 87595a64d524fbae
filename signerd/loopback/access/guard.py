"""The outermost ASGI layers: a gate admits or refuses, the body is bounded, and every answer gets our
headers (L9, L11). At an address that others had before, a browser gets no page (L15).
"""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from http import HTTPStatus

from starlette.responses import JSONResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from custody.common.pages.serving import HTML
from signerd.callers import CallerKind
from signerd.endpoint import is_of_api
from signerd.errors import NotPaired, RequestTooLarge, RequestTooSlow, SignerdError
from signerd.loopback.access.gates import Admitted, Gate
from signerd.loopback.access.headers import (
    DATA_POLICY,
    SCOPE_KEY,
    SESSION_KEY,
    RequestHead,
    guarded,
    preflight,
)
from signerd.problems import CONTENT_TYPE, headers_of, problem

# The largest request is a rejection with its reason of 1,000 characters.
MAX_BODY_BYTES = 64 * 1024
BODY_SECONDS = 10.0


@dataclass(frozen=True)
class Guard:
    """One per listener: the socket's and the port's differ only in their ``gate``. ``larger``: the limit in
    bytes by method and path, where it is above ``max_body``.
    """

    app: ASGIApp
    gate: Gate
    max_body: int = MAX_BODY_BYTES
    larger: Mapping[tuple[str, str], int] = field(default_factory=dict)
    body_seconds: float = BODY_SECONDS

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        head, reader = RequestHead.of(scope), None
        try:
            reader = self.gate.reader(head)
            if reader is not None and head.is_preflight:
                await preflight(head)(scope, receive, guarded(send, reader))
                return
            admitted = self.gate.admit(head)
            answering = guarded(send, reader, admitted.stands)
            await admitted.in_turn(partial(self._answered, head, admitted, scope, receive, answering))
        except SignerdError as error:
            await _refusal(error)(scope, receive, guarded(send, reader))

    async def _answered(
        self, head: RequestHead, admitted: Admitted, scope: Scope, receive: Receive, send: Send
    ) -> None:
        """The body is read only in turn, so that waiting requests hold no memory. Raises as ``_body``, and
        NotPaired; nothing was sent then.
        """
        most = self.larger.get((scope["method"], scope["path"]), self.max_body)
        # A stranger gets the common limit on every route (L11).
        is_stranger = admitted.caller.kind is CallerKind.STRANGER
        body = await self._body(head, receive, self.max_body if is_stranger else most)
        # While the body arrived, the person may have revoked what the request was admitted by (L13).
        if not admitted.stands():
            raise NotPaired("what this request was let in by ended before its body was whole")
        if body is not None:
            scope[SCOPE_KEY], scope[SESSION_KEY] = admitted.caller, admitted.session
            await self.app(scope, _replaying(body, receive), send)

    async def _body(self, head: RequestHead, receive: Receive, most: int) -> bytes | None:
        """The whole body; None where the caller disconnected first. Raises RequestTooLarge as soon as that is
        known, RequestTooSlow.
        """
        # h11 has checked that it is a number.
        if int(head.first("content-length") or "0") > most:
            raise _too_large(most)
        body = bytearray()
        try:
            async with asyncio.timeout(self.body_seconds):
                more = True
                while more:
                    message = await receive()
                    if message["type"] == "http.disconnect":
                        return None
                    body += message.get("body", b"")
                    more = message.get("more_body", False)
                    if len(body) > most:
                        raise _too_large(most)
        except TimeoutError:
            raise RequestTooSlow(f"the request was not whole after {self.body_seconds:.0f} seconds") from None
        return bytes(body)


# Needs no other file, and takes nothing: a page that took a code here could be another program's.
_HOW_TO_OPEN = b"""<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>signerd</title>
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<style>body { font: 1.1rem/1.5 system-ui, sans-serif; max-width: 34rem; margin: 4rem auto; padding: 0 1rem }
</style></head><body><h1>The page is not at this address</h1>
<p>It has a new address each time signerd starts. To open it, type in a terminal:</p>
<p><code>signerd open</code></p>
<p>Type no code and no password into a page at this address. Another program may have been here before.</p>
</body></html>
"""
_HOW_HEADERS = {
    # Of this origin alone. Cookies are left: they belong to every port of the host.
    "Clear-Site-Data": '"cache", "storage"',
    "Content-Security-Policy": f"{DATA_POLICY}; style-src 'unsafe-inline'",
    "Connection": "close",
}


@dataclass(frozen=True)
class NoPage:
    """At ``hosts``, answers all but the API with how to open the page, and has the browser drop what an
    earlier program left there. Where a worker intercepts the rest, the browser still asks for its script.
    """

    app: ASGIApp
    hosts: frozenset[str]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if (
            scope["type"] == "http"
            and not is_of_api(scope["path"])
            and RequestHead.of(scope).first("host") in self.hosts
        ):
            answer = Response(_HOW_TO_OPEN, HTTPStatus.NOT_FOUND, _HOW_HEADERS, HTML)
            await answer(scope, receive, guarded(send, None))
            return
        await self.app(scope, receive, send)


def _too_large(most: int) -> RequestTooLarge:
    return RequestTooLarge(f"a request may have {most} bytes at most")


def _refusal(error: SignerdError) -> Response:
    """Closes the connection, because the rest of the request is not read."""
    headers = {"Connection": "close", **headers_of(error)}
    return JSONResponse(problem(error), error.http_status, headers, CONTENT_TYPE)


def _replaying(body: bytes, receive: Receive) -> Receive:
    """The body already read, once; then the connection's own messages."""
    waiting: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def replay() -> Message:
        return waiting.pop() if waiting else await receive()

    return replay
