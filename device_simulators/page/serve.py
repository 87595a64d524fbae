"""The page over HTTP on loopback: the screens as server-sent events, a button as a POST; and who may see and
press: this machine's browser, with the address that was shown.

The address holds a secret of this run, which other users of this machine do not know. A page of another site
can make a browser call here: its Origin gives it away. A name of that site that was rebound to this machine
(DNS rebinding) gives itself away as Host.
"""

import asyncio
import contextlib
import json
import secrets
import socket
from collections.abc import AsyncIterator, Iterable, Iterator
from dataclasses import dataclass, field
from importlib import resources
from typing import Any

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response, StreamingResponse
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from device_simulators.errors import NoSuchPrompt
from device_simulators.page.desk import SimulatorDesk

# 128 bits: not guessable.
SECRET_BYTES = 16
HEADERS = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
        "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}
LINK = "sandbox allow-forms allow-scripts allow-popups allow-popups-to-escape-sandbox; default-src 'none'"
LINK += "; script-src 'unsafe-inline'; style-src 'unsafe-inline'"
_OF_OUR_OWN = {"same-origin", "none"}


@dataclass(frozen=True)
class PageGuard:
    """Checks each request before the application sees it. ``port``: the one that is served."""

    app: ASGIApp
    port: int
    secret: str = field(default_factory=lambda: secrets.token_urlsafe(SECRET_BYTES), repr=False)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/{self.secret}/"

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        refused = self._refusal(scope)
        if refused is not None:
            await refused(scope, receive, _with_headers(send))
            return
        inner = dict(scope, path=scope["path"].removeprefix(f"/{self.secret}"))
        await self.app(inner, receive, _with_headers(send))

    def _refusal(self, scope: Scope) -> Response | None:
        hosts = [f"127.0.0.1:{self.port}", f"localhost:{self.port}"]
        given = _all(scope, b"host")
        if len(given) != 1 or given[0] not in hosts:
            return PlainTextResponse("This is not the address of this page.", 421)
        origins, sites = _all(scope, b"origin"), _all(scope, b"sec-fetch-site")
        own = f"http://{given[0]}"
        if any(origin != own for origin in origins) or any(site not in _OF_OUR_OWN for site in sites):
            return PlainTextResponse("Another site made this request.", 403)
        if scope["method"] not in {"GET", "HEAD"} and origins != [own]:
            return PlainTextResponse("Buttons are pressed on the page only.", 403)
        _, _, rest = scope["path"].partition("/")
        first, slash, _ = rest.partition("/")
        if not secrets.compare_digest(first.encode(), self.secret.encode()) or not slash:
            return PlainTextResponse("Open the whole address that the terminal shows.", 404)
        return None


def _all(scope: Scope, name: bytes) -> list[str]:
    headers: Iterable[tuple[bytes, bytes]] = scope["headers"]
    return [value.decode("latin-1") for key, value in headers if key == name]


def _with_headers(send: Send) -> Send:
    async def sending(message: Message) -> None:
        if message["type"] == "http.response.start":
            given = message.get("headers", [])
            ours = [(name.lower().encode(), value.encode()) for name, value in HEADERS.items()]
            message = {**message, "headers": [*given, *(pair for pair in ours if pair[0] not in dict(given))]}
        await send(message)

    return sending


MAX_CONNECTIONS = 32
# A press is under a hundred bytes.
MAX_BODY_BYTES = 1_024
MAX_HEADER_BYTES = 16 * 1024
BODY_SECONDS = 10.0
HEARTBEAT_SECONDS = 15.0
_TYPES = {"html": "text/html", "js": "text/javascript", "css": "text/css"}
_FILES = {"press.js": "custody.common.pages"}
_FILES |= dict.fromkeys(("index.html", "page.js", "style.css"), "device_simulators.page")


@contextlib.asynccontextmanager
async def serving(desk: SimulatorDesk, port: int = 0) -> AsyncIterator[str]:
    """Answer for ``desk`` while the body runs; the whole address of its page. Port 0: any free one.

    :raises OSError: the port cannot be had.
    """
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP) as listening:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind(("127.0.0.1", port))
        listening.listen()
        page = _Page(desk)
        guard = PageGuard(page.app(), listening.getsockname()[1])
        server = _Server(_config(guard))
        task = asyncio.create_task(server.serve(sockets=[listening]))
        try:
            yield guard.url
        finally:
            page.closing.set()
            server.should_exit = True
            await task


class _Page:
    def __init__(self, desk: SimulatorDesk) -> None:
        self._desk = desk
        self.closing = asyncio.Event()

    def app(self) -> Starlette:
        return Starlette(
            routes=[
                Route("/", self._file),
                Route("/{name:str}", self._file),
                Route("/live/events", self._events),
                Route("/live/press", self._press, methods=["POST"]),
                Route("/link/{number:int}", self._link),
            ]
        )

    async def _file(self, request: Request) -> Response:
        name = request.path_params.get("name", "index.html")
        if name not in _FILES:
            return PlainTextResponse("There is no such page.", 404)
        text = resources.files(_FILES[name]).joinpath("static", name).read_text(encoding="utf-8")
        return Response(text, media_type=_TYPES[name.partition(".")[2]])

    async def _events(self, _request: Request) -> Response:
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
                    yield f"data: {json.dumps(view)}\n\n"
                else:
                    yield ": here\n\n"
        finally:
            for task in (coming, closing):
                if task is not None:
                    task.cancel()

    async def _link(self, request: Request) -> Response:
        number, links = request.path_params["number"], self._desk.story.links
        if self._desk.follow is None or number >= len(links):
            return PlainTextResponse("There is no such page.", 404)
        document = await self._desk.follow(links[number])
        return Response(document, media_type="text/html", headers={"Content-Security-Policy": LINK})

    async def _press(self, request: Request) -> Response:
        try:
            async with asyncio.timeout(BODY_SECONDS):
                given = json.loads(await _body(request))
        except (TimeoutError, ValueError):
            given = None
        try:
            match given:
                case {"device": int(place), "number": int(number), "button": "left" | "right" as button}:
                    await self._desk.press(place, number, yes=button == "right")
                case {"question": int(number), "answer": str(words)}:
                    self._desk.answer(number, words)
                case _:
                    return PlainTextResponse("That is not a press of a button.", 400)
        except NoSuchPrompt as error:
            return PlainTextResponse(f"Nothing was pressed: {error}.", 409)
        return Response(status_code=204)


async def _body(request: Request) -> bytes:
    """:raises ValueError: it is larger than any that the page sends."""
    body = b""
    async for part in request.stream():
        body += part
        if len(body) > MAX_BODY_BYTES:
            raise ValueError("too large")
    return body


def _config(guard: PageGuard) -> uvicorn.Config:
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
        timeout_graceful_shutdown=1,
        h11_max_incomplete_event_size=MAX_HEADER_BYTES,
    )


class _Server(uvicorn.Server):
    """Signals are the program's that shows the page."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield
