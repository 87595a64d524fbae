"""A client of a local server that answers with a decompression bomb: what it raises,
and how much memory it takes.

``python -m tests.support.bomb RULE MEGABYTES SHELL`` prints the name of the error and the
megabytes that the client took. It runs in a process of its own: the parsers' memory is not Python's,
and the system reports only a process's peak.
"""

import asyncio
import sys
import threading
import zlib
from collections.abc import Callable, Iterator, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from custody.client import AsyncClient, Client, ClientError, Session

MEGABYTE = 1024 * 1024
SESSION = Session("sid-0123456789abcdef", "access", "refresh", ends_at=1e12)


def blanks(megabytes: int) -> Iterator[bytes]:
    yield b"["
    yield from (b" " * MEGABYTE for _ in range(megabytes))
    yield b"]"


def packed(megabytes: int) -> Iterator[bytes]:
    """Compressed to a thousandth, in one piece."""
    packer = zlib.compressobj(wbits=31)
    pieces = [packer.compress(b" " * MEGABYTE) for _ in range(megabytes)]
    yield b"".join([*pieces, packer.flush()])


def endless(megabytes: int) -> Iterator[bytes]:
    """One string that never ends."""
    yield b'["'
    yield from (b"x" * MEGABYTE for _ in range(megabytes))


def values(megabytes: int) -> Iterator[bytes]:
    yield b"[{}"
    yield from (b",{}" * (MEGABYTE // 3) for _ in range(megabytes))
    yield b"]"


RULES: Mapping[str, Callable[[int], Iterator[bytes]]] = {
    "blanks": blanks,
    "endless": endless,
    "packed": packed,
    "values": values,
}


class Bomber(BaseHTTPRequestHandler):
    rule, megabytes = "", 0

    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        if self.rule == "packed":
            self.send_header("Content-Encoding", "gzip")
        self.end_headers()
        try:
            for piece in RULES[self.rule](self.megabytes):
                self.wfile.write(piece)
        except OSError:
            return  # The client has closed the connection.

    def log_message(self, *_args: object) -> None:
        pass


def peak() -> int:
    """Peak memory of this process in megabytes; `getrusage` would include that of the process which
    started it.
    """
    told = Path("/proc/self/status").read_text()
    return int(told.partition("VmHWM:")[2].split()[0]) // 1024


async def awaiting(url: str) -> None:
    async with AsyncClient(url, session=SESSION) as client:
        await client.list_wallets(workspace_id=1)


def waiting(url: str) -> None:
    with Client(url, session=SESSION) as client:
        client.list_wallets(workspace_id=1)


def main(rule: str, megabytes: str, shell: str) -> None:
    Bomber.rule, Bomber.megabytes = rule, int(megabytes)
    server = ThreadingHTTPServer(("127.0.0.1", 0), Bomber)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    url = f"http://127.0.0.1:{server.server_port}"
    before, told = peak(), "None"
    try:
        asyncio.run(awaiting(url)) if shell == "awaiting" else waiting(url)
    except ClientError as error:
        told = type(error).__name__
    server.shutdown()
    sys.stdout.write(f"{told} {peak() - before}\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
