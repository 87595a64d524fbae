"""Who gets in: the person who runs the daemon, through a socket that nobody else can open, and no browser (L1–L4, L12).

The socket stands in the state folder, which must be private; each connection's peer is asked for its user id before
a byte is read; and a request that a browser could have made is refused, for no page belongs here.
"""

import asyncio
import contextlib
import os
import socket
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Protocol

from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from signerd.errors import (
    NotForBrowsers,
    RequestTooLarge,
    RequestTooSlow,
    SignerdError,
    SocketUnusable,
)
from signerd.journal.folder import PRIVATE_FILE, make_private
from signerd.loopback.errors import CONTENT_TYPE, problem, status_of
from signerd.loopback.place import HOST, require_own_socket, socket_path

# sockaddr_un's sun_path is 108 bytes on Linux and 104 on macOS, with its closing zero.
MAX_SOCKET_PATH = 103
# The largest request is a rejection with its reason of 1,000 characters.
MAX_BODY_BYTES = 64 * 1024
BODY_SECONDS = 10.0
BACKLOG = 64
# Whatever a browser sends of its own accord; a program has no reason to.
BROWSER_HEADERS = frozenset({b"origin", b"referer", b"cookie"})
BROWSER_PREFIXES = (b"sec-", b"access-control-")
_PEER_CREDENTIALS = struct.Struct("3i")  # struct ucred: pid, uid, gid


@contextlib.contextmanager
def private_socket(state: Path) -> Iterator[socket.socket]:
    """A listening socket of mode 0600 in the private state folder, which the caller holds; removed at the end.

    Raises:
        UnsafeFolder: the folder, or what is in the socket's place, is not ours alone. SocketUnusable: it cannot be
        made here.
    """
    make_private(state)
    path = socket_path(state)
    if len(os.fsencode(path)) > MAX_SOCKET_PATH:
        raise SocketUnusable(
            f"{path} is longer than the {MAX_SOCKET_PATH} bytes that a socket's path may have"
        )
    _remove_leftover(path)
    listening = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        # Linux gives the file the mode of the socket: it is never open to others, not even for a moment.
        os.fchmod(listening.fileno(), PRIVATE_FILE)
        listening.bind(str(path))
        path.chmod(PRIVATE_FILE)
        listening.listen(BACKLOG)
        listening.setblocking(False)  # noqa: FBT003 - the standard library's signature
    except OSError as error:
        listening.close()
        raise SocketUnusable(f"{path} cannot be made: {error.strerror}") from error
    try:
        yield listening
    finally:
        listening.close()
        path.unlink(missing_ok=True)


def _remove_leftover(path: Path) -> None:
    """A daemon that was killed leaves its socket behind; anything else in its place is not ours to remove."""
    try:
        found = path.lstat()
    except FileNotFoundError:
        return
    require_own_socket(path, found)
    path.unlink()


class Connection(Protocol):
    """What of a socket is needed to ask for its peer."""

    def getsockopt(self, level: int, optname: int, buflen: int, /) -> bytes: ...


def peer_uid(connection: Connection) -> int:
    """The user who runs the program on the other side, by the kernel's word. Raises SocketUnusable."""
    if not hasattr(socket, "SO_PEERCRED"):
        raise SocketUnusable("this system does not say who is on the other side of a socket")
    packed = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _PEER_CREDENTIALS.size)
    _pid, uid, _gid = _PEER_CREDENTIALS.unpack(packed)
    return int(uid)


class Door:
    """The outermost layer of the application: refuses what must not come in, and bounds what does (L9, L11)."""

    def __init__(
        self, app: ASGIApp, *, max_body: int = MAX_BODY_BYTES, body_seconds: float = BODY_SECONDS
    ) -> None:
        self._app = app
        self._max_body = max_body
        self._body_seconds = body_seconds

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        try:
            _refuse_browsers(scope)
            body = await self._body(scope, receive)
        except SignerdError as error:
            headers = {"Connection": "close"}
            answer = JSONResponse(problem(error), status_of(error), headers, CONTENT_TYPE)
            await answer(scope, receive, send)
            return
        if body is not None:
            await self._app(scope, _replaying(body, receive), send)

    async def _body(self, scope: Scope, receive: Receive) -> bytes | None:
        """The whole body; None where the caller went before it was whole. Raises RequestTooLarge as soon as it is known to be, RequestTooSlow."""
        declared = dict(scope["headers"]).get(b"content-length", b"0")
        # h11 has checked that it is a number.
        if int(declared) > self._max_body:
            raise self._too_large()
        body = bytearray()
        try:
            async with asyncio.timeout(self._body_seconds):
                more = True
                while more:
                    message = await receive()
                    if message["type"] == "http.disconnect":
                        return None
                    body += message.get("body", b"")
                    more = message.get("more_body", False)
                    if len(body) > self._max_body:
                        raise self._too_large()
        except TimeoutError:
            raise RequestTooSlow(
                f"the request was not whole after {self._body_seconds:.0f} seconds"
            ) from None
        return bytes(body)

    def _too_large(self) -> RequestTooLarge:
        return RequestTooLarge(f"a request may have {self._max_body} bytes at most")


def _refuse_browsers(scope: Scope) -> None:
    hosts = [value for name, value in scope["headers"] if name == b"host"]
    if hosts != [HOST.encode()]:
        raise NotForBrowsers(f"the Host must be '{HOST}'")
    for name, _value in scope["headers"]:
        if name in BROWSER_HEADERS or name.startswith(BROWSER_PREFIXES):
            raise NotForBrowsers(f"a request with the header '{name.decode('latin-1')}' is not answered")


def _replaying(body: bytes, receive: Receive) -> Receive:
    """The body that was read, once; then whatever the connection says."""
    waiting: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def replay() -> Message:
        return waiting.pop() if waiting else await receive()

    return replay
