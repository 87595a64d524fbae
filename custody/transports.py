"""httpx as the transport of ``custody.exchange``: each exchange ends in time, and its answer is bounded as it
comes.
"""

import ssl
import time
from pathlib import Path
from typing import Any

import httpx

from custody.deadlines import ExchangeDeadlines
from custody.exchange import CONNECT_SECONDS, Body, NoAnswer, Outcome, Reply, Request, Unfit, Why


def trust(ca_file: Path | None) -> ssl.SSLContext | bool:
    """Certificates are always verified: against the usual authorities, or a private one alone."""
    return True if ca_file is None else ssl.create_default_context(cafile=ca_file)


def timeout(seconds: float) -> httpx.Timeout:
    return httpx.Timeout(seconds, connect=CONNECT_SECONDS)


class WaitingTransport:
    """Over a client that follows no redirects. May be used by several threads: each exchange has a connection
    of its own, so that one without an end is cut alone.
    """

    def __init__(self, http: httpx.Client) -> None:
        self._http = http
        self._deadlines = ExchangeDeadlines()

    def __call__(self, request: Request) -> Outcome:
        # httpx must not send cookies by itself: a plan says which are sent, and where.
        self._http.cookies.clear()
        ends = time.monotonic() + request.whole
        try:
            with self._deadlines.within(request.whole) as watched:
                sent = message(request, watched)
                sent.headers["Connection"] = "close"
                response = self._http.send(sent, stream=True)
                try:
                    body = Body(request.path, response.headers)
                    for piece in response.iter_bytes():
                        body.add(piece)
                        if time.monotonic() > ends:
                            raise httpx.ReadTimeout("The answer has no end.")
                finally:
                    response.close()
            return Reply(response.status_code, response.headers, body.whole(), request.path)
        except (httpx.TransportError, Unfit) as error:
            is_over = isinstance(error, httpx.TimeoutException) and time.monotonic() > ends
            return NoAnswer(Why.ENDLESS, error) if is_over else no_answer(error)


class AwaitingTransport:
    """As ``WaitingTransport``, for asyncio."""

    def __init__(self, http: httpx.AsyncClient) -> None:
        self._http = http

    async def __call__(self, request: Request) -> Outcome:
        # Here: a program that waits does without an event loop.
        import asyncio

        self._http.cookies.clear()
        try:
            async with asyncio.timeout(request.whole):
                response = await self._http.send(message(request), stream=True)
                try:
                    body = Body(request.path, response.headers)
                    async for piece in response.aiter_bytes():
                        body.add(piece)
                finally:
                    await response.aclose()
            return Reply(response.status_code, response.headers, body.whole(), request.path)
        except TimeoutError:
            return NoAnswer(Why.ENDLESS, httpx.ReadTimeout("The answer has no end."))
        except (httpx.TransportError, Unfit) as error:
            return no_answer(error)


def message(request: Request, watched: dict[str, Any] | None = None) -> httpx.Request:
    extensions = {"timeout": timeout(request.silence).as_dict(), **(watched or {})}
    return httpx.Request(
        request.method, request.url, headers=request.headers, content=request.content, extensions=extensions
    )


def no_answer(error: httpx.TransportError | Unfit) -> NoAnswer:
    match error:
        case Unfit():
            return NoAnswer(Why.UNFIT, error)
        case httpx.ConnectError():
            return NoAnswer(Why.NO_CONNECTION, error)
        case httpx.TimeoutException():
            return NoAnswer(Why.LATE, error)
        case _:
            return NoAnswer(Why.BROKEN, error)
