"""The daemon's TCP port for a client that writes its own bytes."""

import json
import re
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from signerd.loopback.access.sessions import PageSession, PageSessions
from tests.support.served import Scripted, Served, served

PATIENCE_SECONDS = 90


@dataclass(frozen=True)
class Answered:
    """``status`` 0: the connection ended without an answer."""

    status: int
    headers: dict[str, str] = field(default_factory=dict)
    body: bytes = b""

    @property
    def code(self) -> str:
        return json.loads(self.body)["code"]


def read_answer(raw: bytes) -> Answered:
    if not raw:
        return Answered(0)
    head, _gap, body = raw.partition(b"\r\n\r\n")
    first, *lines = head.decode("latin-1").split("\r\n")
    headers = {name.lower(): value.strip() for name, _colon, value in (line.partition(":") for line in lines)}
    return Answered(int(first.split()[1]), headers, body)


def secret_in(answer: Answered) -> str:
    """The secret of the session that began with this answer."""
    found = re.search(rb'data-session="([0-9a-f]{64})"', answer.body)
    assert found is not None, answer
    return found[1].decode()


def exchange(port: int, request: bytes, host: str = "127.0.0.1") -> bytes:
    """The answer to exactly these bytes, until the server closes."""
    with socket.create_connection((host, port), PATIENCE_SECONDS) as raw:
        answer = b""
        try:
            raw.sendall(request)
            while part := raw.recv(65536):
                answer += part
        except ConnectionError:
            pass
        return answer


@dataclass(frozen=True)
class Port:
    """A daemon's port."""

    daemon: Served
    sessions: PageSessions

    @property
    def number(self) -> int:
        found = self.daemon.service.page_address.port
        assert found is not None
        return int(found)

    @property
    def host(self) -> str:
        """The page's."""
        return f"{self.daemon.service.page_address.name}:{self.number}"

    @property
    def origin(self) -> str:
        return f"http://{self.host}"

    def ask(
        self,
        method: str,
        path: str,
        headers: dict[str, str] | None = None,
        body: bytes = b"",
        at: str = "127.0.0.1",
    ) -> Answered:
        given = {"Host": self.host, "Connection": "close", **(headers or {})}
        if body:
            given.setdefault("Content-Length", str(len(body)))
        lines = [f"{method} {path} HTTP/1.1", *(f"{name}: {value}" for name, value in given.items())]
        return read_answer(
            exchange(self.number, "\r\n".join(lines).encode("latin-1") + b"\r\n\r\n" + body, at)
        )

    # --- the page -------------------------------------------------------------------------------------------

    def entry(self) -> str:
        with self.daemon.client() as client:
            return client.enter_page().code

    def enter(self, code: str, headers: dict[str, str] | None = None) -> Answered:
        given = {"Content-Type": "application/x-www-form-urlencoded", "Origin": "null", **(headers or {})}
        return self.ask("POST", "/enter", given, f"code={code}".encode())

    def secret(self) -> str:
        """The secret of a new session."""
        return secret_in(self.enter(self.entry()))

    def session(self, headers: dict[str, str]) -> PageSession:
        found = self.sessions.find(headers["X-Signerd-Session"])
        assert found is not None
        return found

    def by_the_page(self) -> dict[str, str]:
        """The headers of a request of our own page in a new session."""
        return {"Origin": self.origin, "X-Signerd-Session": self.secret()}


@contextmanager
def ported(
    state: Path,
    clock: Callable[[], float] = time.monotonic,
    at: int = 0,
    **answers: Any,
) -> Iterator[Port]:
    """``at``: the port, 0 for any free one. ``answers``: those of ``Scripted``."""

    @asynccontextmanager
    async def script():
        yield Scripted(answers)

    state.mkdir(mode=0o700, exist_ok=True)
    sessions = PageSessions(clock)
    with served(script(), state, port=at, clock=clock, sessions=sessions) as daemon:
        yield Port(daemon, sessions)
