"""The daemon's private socket, with the standard library alone.

``DaemonClient`` says the same in more words: its shapes and its HTTP library cost half a second of a processor, and Bitcoin
Core starts this program anew for each question. Whether the socket may be believed is decided in one place for both.
"""

import http.client
import json
import re
import socket
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from signerd.endpoint import HOST, PREFIX, QUICK_SECONDS, trusted_socket
from signerd.errors import DaemonFailed, DaemonNotRunning, InvalidRequest, SignerdError
from signerd.problems import error_from

CONNECT_SECONDS: Final = 5.0
# Twice the heartbeat of the daemon's events, and some.
SILENCE_SECONDS: Final = 35.0
_ID: Final = re.compile(r"[A-Za-z0-9_-]{1,100}", re.ASCII)
_FIRST_ERROR: Final = 400


class _Connection(http.client.HTTPConnection):
    """HTTP over a Unix socket."""

    def __init__(self, place: Path, seconds: float) -> None:
        super().__init__(HOST, timeout=seconds)
        self._place = place

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX)
        try:
            self.sock.settimeout(CONNECT_SECONDS)
            self.sock.connect(str(self._place))
        except OSError as error:
            self.sock.close()
            raise DaemonNotRunning(f"no signerd answers at {self._place}: {error.strerror}") from None
        self.sock.settimeout(self.timeout)


@dataclass(frozen=True)
class DaemonConnection:
    """``state``: the state folder of the daemon. Each method raises DaemonNotRunning, DaemonFailed, UnsafeFolder, and the
    leaf of SignerdError that the daemon answers with.
    """

    state: Path

    def get(self, path: str) -> Any:
        return self._ask("GET", path, None, QUICK_SECONDS)

    def post(
        self, path: str, body: Mapping[str, Any] | None = None, *, seconds: float = QUICK_SECONDS
    ) -> Any:
        return self._ask("POST", path, body, seconds)

    def delete(self, path: str) -> Any:
        return self._ask("DELETE", path, None, QUICK_SECONDS)

    @contextmanager
    def happenings(self, subject: str) -> Iterator[Iterator[bytes]]:
        """The lines of the events about a subject, from now on. Ends where the daemon ends it.

        Raises TimeoutError, while it is read, where the daemon says nothing at all.
        """
        with _translated(), self._connected(SILENCE_SECONDS) as connection:
            connection.request("GET", f"{PREFIX}/events?subject={identifier(subject)}")
            answer = connection.getresponse()
            if answer.status >= _FIRST_ERROR:
                raise _refusal(_read(answer))
            yield iter(answer.readline, b"")

    def _ask(self, verb: str, path: str, body: Mapping[str, Any] | None, seconds: float) -> Any:
        sent = None if body is None else json.dumps(body).encode()
        headers = {} if body is None else {"Content-Type": "application/json"}
        with _translated(), self._connected(seconds) as connection:
            try:
                connection.request(verb, PREFIX + path, sent, headers)
                answer = connection.getresponse()
                found = _read(answer)
            except TimeoutError:
                raise DaemonFailed("the daemon gave no answer in time") from None
        if answer.status >= _FIRST_ERROR:
            raise _refusal(found)
        return found

    @contextmanager
    def _connected(self, seconds: float) -> Iterator[_Connection]:
        connection = _Connection(trusted_socket(self.state), seconds)
        try:
            yield connection
        finally:
            connection.close()


def identifier(text: str) -> str:
    """An id as a part of a path. Raises InvalidRequest for one that could lead elsewhere."""
    if _ID.fullmatch(text) is None:
        raise InvalidRequest("that cannot be the id of anything")
    return text


@contextmanager
def _translated() -> Iterator[None]:
    try:
        yield
    except TimeoutError:
        raise
    except (http.client.HTTPException, ConnectionError) as error:
        raise DaemonFailed(f"the connection to the daemon ended early: {type(error).__name__}") from None


def _refusal(told: Any) -> SignerdError:
    return error_from(told if isinstance(told, dict) else {})


def _read(answer: http.client.HTTPResponse) -> Any:
    raw = answer.read()
    try:
        return json.loads(raw) if raw else None
    except ValueError:
        raise DaemonFailed("the daemon's answer makes no sense") from None
