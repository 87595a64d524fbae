"""Bounds on slow or greedy clients of the listener, over real sockets (L11)."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from time import monotonic

import pytest
import uvicorn
from h11 import LocalProtocolError
from starlette.types import ASGIApp
from uvicorn.server import ServerState

from custody.server.web import listen
from custody.server.web.listen import BoundedProtocol
from tests.support.platform import open_world

pytestmark = pytest.mark.anyio

PATIENCE = 90.0
REQUEST = b"GET / HTTP/1.1\r\nHost: here\r\n\r\n"
Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]
Connect = Callable[[], Awaitable[Streams]]


@asynccontextmanager
async def served(slow: asyncio.Event | None = None, app: ASGIApp | None = None) -> AsyncIterator[Connect]:
    """Serves ``app``, by default one that answers ok, once ``slow`` is set."""

    async def ok(_scope, receive, send):
        while True:
            message = await receive()
            if message["type"] == "http.disconnect":
                return
            if not message.get("more_body"):
                break
        if slow is not None:
            await slow.wait()
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"2")]})
        await send({"type": "http.response.body", "body": b"ok"})

    state, loop = ServerState(), asyncio.get_running_loop()
    config = uvicorn.Config(
        app or ok, log_config=None, http=BoundedProtocol, lifespan="off", timeout_keep_alive=60
    )
    config.load()
    server = await loop.create_server(lambda: BoundedProtocol(config, state, {}, loop), "127.0.0.1", 0)
    opened: list[asyncio.StreamWriter] = []

    async def connect() -> Streams:
        streams = await asyncio.open_connection(*server.sockets[0].getsockname())
        opened.append(streams[1])
        return streams

    try:
        yield connect
    finally:
        server.close()
        for writer in opened:
            writer.transport.abort()
        for connection in list(state.connections):
            connection.transport.abort()
        await asyncio.sleep(0)


async def ended(reader: asyncio.StreamReader) -> bytes:
    """What came before the server closed the connection."""
    async with asyncio.timeout(PATIENCE):
        try:
            return await reader.read()
        except ConnectionResetError:
            return b""


async def answer(reader: asyncio.StreamReader) -> bytes:
    async with asyncio.timeout(PATIENCE):
        head = await reader.readuntil(b"\r\n\r\n")
        return head[:15] + await reader.readexactly(2)


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(listen, "HEADER_SECONDS", 0.3)
    monkeypatch.setattr(listen, "BODY_SECONDS", 0.3)


@pytest.mark.parametrize(
    "sent",
    [
        b"",
        b"GET / HTTP/1.1\r\nHost: here\r\n",
        b"POST / HTTP/1.1\r\nHost: here\r\nContent-Length: 10\r\n\r\nhalf",
    ],
    ids=["nothing", "half of the headers", "half of the body"],
)
async def test_who_stops_in_the_middle_is_given_up(sent: bytes) -> None:
    async with served() as connect:
        reader, writer = await connect()
        writer.write(sent)
        assert await ended(reader) == b""


async def test_a_letter_now_and_then_does_not_move_the_deadline() -> None:
    async with served() as connect:
        reader, writer = await connect()
        finished, began = asyncio.ensure_future(ended(reader)), monotonic()
        writer.write(b"GET / HTTP/1.1\r\nA: ")
        while not finished.done():
            assert monotonic() < began + PATIENCE, "it was moved again and again"
            writer.write(b"a")
            await asyncio.wait([finished], timeout=0.05)
        assert finished.result() == b""


async def test_neither_on_a_connection_that_was_used_before() -> None:
    async with served() as connect:
        reader, writer = await connect()
        for _ in range(2):
            writer.write(REQUEST)
            assert await answer(reader) == b"HTTP/1.1 200 OKok"
        writer.write(b"GET /")
        assert await ended(reader) == b""


async def test_an_answer_may_take_as_long_as_it_takes() -> None:
    slow = asyncio.Event()
    async with served(slow) as connect:
        reader, writer = await connect()
        writer.write(REQUEST)
        other, _ = await connect()
        # By then a deadline of the first one, had it one, would have passed as well.
        assert await ended(other) == b""
        slow.set()
        assert await answer(reader) == b"HTTP/1.1 200 OKok"


async def test_an_idle_connection_is_kept_between_requests() -> None:
    async with served() as connect:
        reader, writer = await connect()
        writer.write(REQUEST)
        await answer(reader)
        other, _ = await connect()
        assert await ended(other) == b""
        writer.write(REQUEST)
        assert await answer(reader) == b"HTTP/1.1 200 OKok"


@pytest.mark.parametrize("length", [b"Content-Length: 1000", b"Transfer-Encoding: chunked"])
async def test_a_stranger_is_refused_while_their_body_is_still_to_come(
    length: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(listen, "HEADER_SECONDS", PATIENCE)
    monkeypatch.setattr(listen, "BODY_SECONDS", PATIENCE)
    with open_world(tmp_path / "state") as world:
        async with served(app=world.platform.asgi) as connect, asyncio.timeout(PATIENCE):
            reader, writer = await connect()
            writer.write(b"POST /api/v1/register-key HTTP/1.1\r\nHost: here\r\n" + length + b"\r\n\r\n")
            assert await reader.readuntil(b"\r\n") == b"HTTP/1.1 401 Unauthorized\r\n"


async def test_beyond_all_bounds_no_client_is_served(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(listen, "MAX_CONNECTIONS", 1)
    monkeypatch.setattr(listen, "SPARE_CONNECTIONS", 1)
    monkeypatch.setattr(listen, "HEADER_SECONDS", PATIENCE)
    async with served() as connect:
        held = [await connect() for _ in range(2)]
        for reader, writer in held:
            writer.write(REQUEST)
            assert await answer(reader) == b"HTTP/1.1 200 OKok"
        third, _ = await connect()
        assert await ended(third) == b""


async def test_what_is_no_http_is_answered_once():
    """The application refuses the head meanwhile, as it does without a token."""
    faults = []

    async def refusing(_scope, _receive, send):
        try:
            await send({"type": "http.response.start", "status": 401, "headers": [(b"content-length", b"0")]})
            await send({"type": "http.response.body", "body": b""})
        except LocalProtocolError as fault:
            faults.append(fault)

    async with served(app=refusing) as connect:
        reader, writer = await connect()
        head = b"POST / HTTP/1.1\r\nHost: here\r\nTransfer-Encoding: chunked\r\n\r\n"
        writer.write(head + b"zz\r\nabc\r\n0\r\n\r\n")
        assert (await ended(reader)).startswith(b"HTTP/1.1 400 ")
    assert faults == []
