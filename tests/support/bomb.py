"""A client that asks a server on this machine which answers with a bomb: what it raises, and how much memory it took.

``python -m tests.support.bomb KIND SHELL`` prints the name of the error and the megabytes. A process of its own: the parsers'
memory is not Python's, and only the largest there ever was is told.
"""

import asyncio
import gzip
import resource
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from custody.client import AsyncClient, Client, ClientError, Session
from custody.client.body import MAX_ANSWER_BYTES

MEGABYTE = 1024 * 1024
SESSION = Session("sid-0123456789abcdef", "access", "refresh", ends_at=1e12)


def packed() -> Iterator[bytes]:
    """Half a megabyte that unfolds to 500."""
    member = gzip.compress(b" " * (100 * MEGABYTE))
    yield from [member] * 5


def endless() -> Iterator[bytes]:
    """Four times as much as an answer may have; nothing says so beforehand."""
    yield b'["'
    yield from (b"x" * MEGABYTE for _ in range(4 * MAX_ANSWER_BYTES // MEGABYTE))


def values() -> Iterator[bytes]:
    """As many values as fit into an answer."""
    yield b"[{}"
    yield from (b",{}" * (MEGABYTE // 3) for _ in range(60))
    yield b"]"


KINDS = {"packed": packed, "endless": endless, "values": values}


class Bomber(BaseHTTPRequestHandler):
    kind = ""

    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        if self.kind == "packed":
            self.send_header("Content-Encoding", "gzip")
        self.end_headers()
        try:
            for piece in KINDS[self.kind]():
                self.wfile.write(piece)
        except OSError:
            return  # The client has gone.

    def log_message(self, *_args: object) -> None:
        pass


def peak() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024


async def awaiting(url: str) -> None:
    async with AsyncClient(url, session=SESSION) as client:
        await client.list_wallets(1)


def waiting(url: str) -> None:
    with Client(url, session=SESSION) as client:
        client.list_wallets(1)


def main(kind: str, shell: str) -> None:
    Bomber.kind = kind
    server = ThreadingHTTPServer(("127.0.0.1", 0), Bomber)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    url = f"http://127.0.0.1:{server.server_port}"
    before, told = peak(), "nothing"
    try:
        asyncio.run(awaiting(url)) if shell == "awaiting" else waiting(url)
    except ClientError as error:
        told = type(error).__name__
    server.shutdown()
    sys.stdout.write(f"{told} {peak() - before}\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
