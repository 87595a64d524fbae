"""The page over HTTP on loopback: the screens as server-sent events, a button as a POST."""

import asyncio
import contextlib
import json
import socket
from collections.abc import AsyncIterator, Iterator
from importlib import resources
from typing import Any

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response, StreamingResponse
from starlette.routing import Route

from device_simulators.errors import NoSuchPrompt
from device_simulators.page.desk import Desk
from device_simulators.page.guard import Guard

# A person has a window or two open; each holds one connection for its stream.
MAX_STREAMS = 8
MAX_CONNECTIONS = 32
# A press is under a hundred bytes.
MAX_BODY_BYTES = 1_024
MAX_HEADER_BYTES = 16 * 1024
BODY_SECONDS = 10.0
HEARTBEAT_SECONDS = 15.0
GRACE_SECONDS = 1
_TYPES = {"index.html": "text/html", "page.js": "text/javascript", "style.css": "text/css"}


@contextlib.asynccontextmanager
async def serving(desk: Desk, port: int = 0) -> AsyncIterator[str]:
    """Answer for ``desk`` while the body runs; the whole address of its page. Port 0: any free one.

    :raises OSError: the port cannot be had.
    """
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP) as listening:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind(("127.0.0.1", port))
        listening.listen()
        page = _Page(desk)
        guard = Guard(page.app(), listening.getsockname()[1])
        server = _Server(_config(guard))
        task = asyncio.create_task(server.serve(sockets=[listening]))
        try:
            yield guard.url
        finally:
            page.closing.set()
            server.should_exit = True
            await task


class _Page:
    def __init__(self, desk: Desk) -> None:
        self._desk = desk
        self._streams = 0
        self.closing = asyncio.Event()

    def app(self) -> Starlette:
        return Starlette(
            routes=[
                Route("/", self._file),
                Route("/{name:str}", self._file),
                Route("/live/events", self._events),
                Route("/live/press", self._press, methods=["POST"]),
            ]
        )

    async def _file(self, request: Request) -> Response:
        name = request.path_params.get("name", "index.html")
        if name not in _TYPES:
            return PlainTextResponse("There is no such page.", 404)
        text = resources.files("device_simulators.page").joinpath("static", name).read_text(encoding="utf-8")
        return Response(text, media_type=_TYPES[name])

    async def _events(self, _request: Request) -> Response:
        if self._streams >= MAX_STREAMS:
            return PlainTextResponse(f"{MAX_STREAMS} windows show the devices already.", 503)
        self._streams += 1
        return StreamingResponse(self._stream(), media_type="text/event-stream")

    async def _stream(self) -> AsyncIterator[str]:
        views = self._desk.views()
        coming: asyncio.Task[Any] | None = None
        closing = asyncio.create_task(self.closing.wait())
        try:
            while not closing.done():
                coming = coming or asyncio.ensure_future(anext(views))
                await asyncio.wait(
                    {coming, closing}, timeout=HEARTBEAT_SECONDS, return_when=asyncio.FIRST_COMPLETED
                )
                if coming.done():
                    view, coming = coming.result(), None
                    yield f"data: {json.dumps({'title': self._desk.title, 'devices': view})}\n\n"
                else:
                    yield ": here\n\n"
        finally:
            self._streams -= 1
            for task in (coming, closing):
                if task is not None:
                    task.cancel()

    async def _press(self, request: Request) -> Response:
        try:
            async with asyncio.timeout(BODY_SECONDS):
                given = json.loads(await _body(request))
        except (TimeoutError, ValueError):
            given = None
        match given:
            case {"device": int(place), "number": int(number), "button": "left" | "right" as button}:
                pass
            case _:
                return PlainTextResponse("That is not a press of a button.", 400)
        try:
            await self._desk.press(place, number, yes=button == "right")
        except NoSuchPrompt as error:
            return PlainTextResponse(f"Nothing was pressed: {error}.", 409)
        return Response(status_code=204)


async def _body(request: Request) -> bytes:
    """:raises ValueError: it is larger than any that the page sends."""
    found = b""
    async for part in request.stream():
        found += part
        if len(found) > MAX_BODY_BYTES:
            raise ValueError("too large")
    return found


def _config(guard: Guard) -> uvicorn.Config:
    return uvicorn.Config(
        guard,
        http="h11",
        ws="none",
        lifespan="off",
        log_config=None,
        access_log=False,
        server_header=False,
        date_header=False,
        proxy_headers=False,
        limit_concurrency=MAX_CONNECTIONS,
        timeout_graceful_shutdown=GRACE_SECONDS,
        h11_max_incomplete_event_size=MAX_HEADER_BYTES,
    )


class _Server(uvicorn.Server):
    """Signals are the program's that shows the page."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield
