"""A proxy between a client and a server on Unix sockets, which drops one answer and closes the connection."""

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

CHUNK = 65_536


@dataclass
class Line:
    """While ``armed``, it waits for the answer to a request that contains ``word``, drops it
    and closes the client's connection.
    """

    word: bytes
    armed: threading.Event = field(default_factory=threading.Event)

    def carry(self, client: socket.socket, server: socket.socket) -> None:
        with client, server:
            back = threading.Thread(target=self._carry_back, args=(server, client))
            back.start()
            while data := _receive(client):
                if self.armed.is_set() and self.word in data:
                    client.shutdown(socket.SHUT_RDWR)
                    server.sendall(data)
                    break
                server.sendall(data)
            # The server handles the request, reads the end of the stream, and closes.
            server.shutdown(socket.SHUT_WR)
            back.join()

    @staticmethod
    def _carry_back(server: socket.socket, client: socket.socket) -> None:
        while data := _receive(server):
            with suppress(OSError):
                client.sendall(data)
        with suppress(OSError):
            client.shutdown(socket.SHUT_RDWR)


def _receive(end: socket.socket) -> bytes:
    try:
        return end.recv(CHUNK)
    except OSError:
        return b""


@contextmanager
def cutting_line(at: Path, to: Path, word: bytes) -> Iterator[Line]:
    """Listens at one Unix socket and connects to another."""
    line = Line(word)
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(at))
        listener.listen()

        def accept() -> None:
            while True:
                try:
                    client, _ = listener.accept()
                except OSError:
                    return
                server = socket.socket(socket.AF_UNIX)
                server.connect(str(to))
                threading.Thread(target=line.carry, args=(client, server)).start()

        thread = threading.Thread(target=accept)
        thread.start()
        try:
            yield line
        finally:
            listener.shutdown(socket.SHUT_RDWR)
            thread.join()
