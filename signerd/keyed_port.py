"""Where there are no Unix sockets, as on Windows: a port on loopback and a shared key, in a file that only
this user can read.

The key never travels. On each connection, before HTTP, the caller sends 32 random bytes; the daemon answers
with 32 of its own and a proof that it knows the key; the caller then proves the same. A program that took the
port of a stopped daemon learns nothing (L12), and a program of another user cannot send HTTP.
"""

import hashlib
import hmac
import json
import secrets
import socket
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Self

from custody.private_files import is_open, is_ours, write_private
from signerd.errors import DaemonNotRunning, UnsafeFolder

KEYED_PORT_FILE: Final = "signerd.port"
_BYTES: Final = 32
_MAX_FILE: Final = 512
_MAX_PORT: Final = 65_535
_DAEMON, _CALLER = b"signerd-door-v1 daemon", b"signerd-door-v1 caller"


class WrongKey(ConnectionError):
    """The other side does not know the key."""

    def __init__(self) -> None:
        super().__init__("the other side does not know the daemon's key")


@dataclass(frozen=True)
class KeyedPort:
    port: int
    key: bytes = field(repr=False)

    @classmethod
    def fresh(cls, port: int) -> Self:
        """With a new random key."""
        return cls(port, secrets.token_bytes(_BYTES))

    def write(self, state: Path) -> Path:
        """In the private state folder. Raises OSError."""
        path = state / KEYED_PORT_FILE
        write_private(path, json.dumps({"port": self.port, "key": self.key.hex()}).encode())
        return path

    @classmethod
    def trusted(cls, state: Path) -> Self:
        """The port and key of the daemon that this user started.

        Raises:
            DaemonNotRunning: there is none. UnsafeFolder: another user could have written it, or read it.
        """
        path = state / KEYED_PORT_FILE
        try:
            for one in (state, path):
                found = one.lstat()
                if not is_ours(one, found) or is_open(one, found):
                    raise UnsafeFolder(f"{one} belongs to another user, or is open to others")
            with path.open("rb") as file:
                return cls._read(file.read(_MAX_FILE))
        except FileNotFoundError:
            raise DaemonNotRunning(f"no signerd serves {path}") from None
        except OSError as error:
            raise UnsafeFolder(f"{path} cannot be read: {error.strerror}") from error

    @classmethod
    def _read(cls, raw: bytes) -> Self:
        try:
            told = json.loads(raw)
            found = cls(int(told["port"]), bytes.fromhex(told["key"]))
        except (ValueError, TypeError, KeyError):
            raise DaemonNotRunning(f"the daemon's file {KEYED_PORT_FILE} cannot be read") from None
        if not 0 < found.port <= _MAX_PORT or len(found.key) != _BYTES:
            raise DaemonNotRunning(f"the daemon's file {KEYED_PORT_FILE} cannot be read")
        return found

    def proof(self, whose: bytes, caller: bytes, daemon: bytes) -> bytes:
        return hmac.digest(self.key, whose + caller + daemon, hashlib.sha256)


class Handshake:
    """The daemon's side of one connection, without I/O."""

    def __init__(self, keyed_port: KeyedPort) -> None:
        self._door = keyed_port
        self._own = secrets.token_bytes(_BYTES)
        self._theirs = b""
        self._read = bytearray()
        self.is_open = False

    def receive(self, data: bytes) -> tuple[bytes, bytes]:
        """The bytes to send, and the bytes of HTTP received after the proof. Raises WrongKey: close the
        connection.
        """
        self._read += data
        answer = b""
        if not self._theirs and len(self._read) >= _BYTES:
            self._theirs = bytes(self._read[:_BYTES])
            del self._read[:_BYTES]
            answer = self._own + self._door.proof(_DAEMON, self._theirs, self._own)
        if not self._theirs or len(self._read) < _BYTES:
            return answer, b""
        expected = self._door.proof(_CALLER, self._theirs, self._own)
        if not hmac.compare_digest(bytes(self._read[:_BYTES]), expected):
            raise WrongKey
        self.is_open = True
        rest, self._read = bytes(self._read[_BYTES:]), bytearray()
        return answer, rest


def authenticate(connection: socket.socket, keyed_port: KeyedPort) -> None:
    """The caller's side, on a blocking socket. Raises OSError; WrongKey where it is not our daemon, which has
    then received nothing secret.
    """
    own = secrets.token_bytes(_BYTES)
    connection.sendall(own)
    answer = b""
    while len(answer) < 2 * _BYTES:
        piece = connection.recv(2 * _BYTES - len(answer))
        if not piece:
            raise WrongKey
        answer += piece
    theirs, proof = answer[:_BYTES], answer[_BYTES:]
    if not hmac.compare_digest(proof, keyed_port.proof(_DAEMON, own, theirs)):
        raise WrongKey
    connection.sendall(keyed_port.proof(_CALLER, own, theirs))
