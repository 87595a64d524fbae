"""Servers in the clear that answer as a test says, or without end."""

import contextlib
import socket
import threading
from collections.abc import Callable, Iterator


@contextlib.contextmanager
def listening_for(serve: Callable[[socket.socket], None], path: str = "") -> Iterator[str]:
    """The URL (or this path) of a server that has ``serve`` answer each connection in its own thread."""

    def accept() -> None:
        with contextlib.suppress(OSError):
            while True:
                threads.append(threading.Thread(target=serve, args=(listening.accept()[0],)))
                threads[-1].start()

    family = socket.AF_UNIX if path else socket.AF_INET
    with socket.create_server(path or ("127.0.0.1", 0), family=family) as listening:
        threads = [threading.Thread(target=accept)]
        threads[0].start()
        try:
            yield path or f"http://127.0.0.1:{listening.getsockname()[1]}"
        finally:
            listening.shutdown(socket.SHUT_RDWR)
            for thread in threads:
                thread.join(10)


@contextlib.contextmanager
def dripping(first: bytes, drop: bytes | None, path: str = "") -> Iterator[str]:
    """As `listening_for`: goes on until its client has left or the test is over, or has nothing to drop."""
    over = threading.Event()

    def drip(line: socket.socket) -> None:
        with line, contextlib.suppress(OSError):
            # A connection may only see whether anybody listens.
            if line.recv(65536):
                line.sendall(first)
                while drop is not None and not over.wait(0.01):
                    line.sendall(drop)

    with listening_for(drip, path) as url:
        try:
            yield url
        finally:
            over.set()
