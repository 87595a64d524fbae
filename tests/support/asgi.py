"""An ASGI application behind httpx's blocking client: requests run on an event loop in another thread."""

from collections.abc import Iterator
from contextlib import contextmanager

import httpx
from anyio.from_thread import BlockingPortal, start_blocking_portal


class _Transport(httpx.BaseTransport):
    def __init__(self, app, portal: BlockingPortal, client: tuple[str, int]) -> None:
        self._inner = httpx.ASGITransport(app, raise_app_exceptions=False, client=client)
        self._portal = portal

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        return self._portal.call(self._answer, request)

    async def _answer(self, request: httpx.Request) -> httpx.Response:
        body = request.read()
        sent = httpx.Request(request.method, request.url, content=body)
        # As they were: a body in pieces announces no length.
        sent.headers = request.headers
        response = await self._inner.handle_async_request(sent)
        # Still compressed: the client decompresses it.
        content = b"".join([part async for part in response.aiter_raw()])
        return httpx.Response(response.status_code, headers=response.headers, content=content)


@contextmanager
def asgi_transport(app, address: str = "192.0.2.1") -> Iterator[httpx.BaseTransport]:
    """A transport that calls from ``address`` (a
    documentation address, RFC 5737).
    """
    with start_blocking_portal() as portal:
        yield _Transport(app, portal, (address, 50_000))


@contextmanager
def asgi_client(
    app, base_url: str = "http://127.0.0.1", address: str = "192.0.2.1"
) -> Iterator[httpx.Client]:
    """A client of ``app``."""
    with (
        asgi_transport(app, address) as transport,
        httpx.Client(transport=transport, base_url=base_url) as client,
    ):
        yield client
