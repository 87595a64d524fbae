"""Servers in the clear that answer as a test says, or without end."""

import contextlib
import socket
import threading
from collections.abc import Callable, Iterator


@contextlib.contextmanager
def listening_for(serve: Callable[[socket.socket], None]) -> Iterator[str]:
    """The URL of a server that has ``serve`` answer each connection, in a thread of its own."""

    def accept() -> None:
        with contextlib.suppress(OSError):
            while True:
                threads.append(threading.Thread(target=serve, args=(listening.accept()[0],)))
                threads[-1].start()

    with socket.create_server(("127.0.0.1", 0)) as listening:
        threads = [threading.Thread(target=accept)]
        threads[0].start()
        try:
            yield f"http://127.0.0.1:{listening.getsockname()[1]}"
        finally:
            listening.shutdown(socket.SHUT_RDWR)
            for thread in threads:
                thread.join(10)


@contextlib.contextmanager
def dripping(first: bytes, drop: bytes) -> Iterator[str]:
    """The URL of a server that goes on until its client has left, or the test is over."""
    over = threading.Event()

    def drip(line: socket.socket) -> None:
        with line, contextlib.suppress(OSError):
            line.recv(65536)
            line.sendall(first)
            while not over.wait(0.02):
                line.sendall(drop)

    with listening_for(drip) as url:
        try:
            yield url
        finally:
            over.set()
