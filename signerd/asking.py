"""Requests to the daemon: its address, the request, its answer as plain values, and errors from it, without
I/O.

Shared by ``signerd.client`` and ``signerd.hwi``. It uses the standard library alone: Core starts
``signerd-hwi`` for each question, and importing httpx and pydantic would take half a second of processor
time.
"""

import json
import re
import socket
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

from custody.common.exchange import (
    CONNECT_SECONDS,
    HttpReply,
    HttpRequest,
    NoAnswer,
    Plan,
    Why,
    exchange,
    is_success,
)
from signerd.endpoint import HOST, trusted_socket
from signerd.errors import DaemonFailed, DaemonNotRunning, InvalidRequest, SignerdError
from signerd.problems import error_from

# Twice the heartbeat of the daemon's events, and some.
SILENCE_SECONDS = 35.0
# Numeric addresses only: a name would be resolved, and the resolver may lie.
_ADDRESS = r"http://(?P<host>127\.0\.0\.1|\[::1\]):(?P<port>[0-9]{1,5})/?"
# A field of the address has the module's name.
Connection = socket.socket
ID = re.compile(r"[A-Za-z0-9_-]{1,100}", re.ASCII)
MAX_PORT = 65_535


@dataclass(frozen=True)
class DaemonAddress:
    """The daemon's private socket, for the person; or TCP on this machine, for an app.

    ``url``: up to the host and port. ``socket``: None over TCP. ``is_plain``: answers are not parsed into
    shapes.
    """

    url: str
    socket: Path | None = None
    is_plain: bool = False
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)

    @classmethod
    def of_folder(cls, state: Path) -> Self:
        """Raises DaemonNotRunning, UnsafeFolder: nothing is sent to a socket that another user could have
        made (L12).
        """
        return cls(f"http://{HOST}", trusted_socket(state))

    @classmethod
    def of_address(cls, url: str, token: str | None) -> Self:
        """Raises InvalidRequest for anything but a port of this machine: a token goes nowhere else (L10)."""
        match = re.fullmatch(_ADDRESS, url)
        if match is None or int(match["port"]) > MAX_PORT:
            raise InvalidRequest(
                f"'{url}' is not an address of the daemon",
                hint="It is http://127.0.0.1 or http://[::1] with a port, as `signerd status` tells it.",
            )
        headers = {} if token is None else {"Authorization": f"Bearer {token}"}
        return cls(f"http://{match['host']}:{match['port']}", headers=headers)

    def __str__(self) -> str:
        return self.url if self.socket is None else str(self.socket)

    def connect(self, host: str, port: int | None) -> "Connection":
        """A connection to the daemon. ``host``, ``port``: of the URL, for TCP. Raises OSError."""
        if self.socket is None:
            return socket.create_connection((host, port or 80), CONNECT_SECONDS)
        connection = socket.socket(socket.AF_UNIX)
        try:
            connection.settimeout(CONNECT_SECONDS)
            connection.connect(str(self.socket))
        except OSError:
            connection.close()
            raise
        return connection


def address_of(at: Path | DaemonAddress) -> DaemonAddress:
    """Raises as ``DaemonAddress.of_folder``, for a state folder."""
    return at if isinstance(at, DaemonAddress) else DaemonAddress.of_folder(at)


def ask(address: DaemonAddress, request: HttpRequest) -> Plan[HttpReply]:
    """The daemon's answer. The request is never repeated: the daemon is on this machine and answers or is
    down.

    Raises:
        DaemonNotRunning, DaemonFailed; the leaf of SignerdError that the daemon answers with.
    """
    outcome = yield from exchange(request)
    if isinstance(outcome, NoAnswer):
        raise failure(address, outcome)
    if not is_success(outcome):
        raise refusal(outcome)
    return outcome


def failure(address: DaemonAddress, outcome: NoAnswer) -> SignerdError:
    match outcome.why:
        case Why.NO_CONNECTION:
            reason = getattr(outcome.cause, "strerror", None)
            return DaemonNotRunning(f"no signerd answers at {address}" + (f": {reason}" if reason else ""))
        case Why.LATE | Why.ENDLESS:
            return DaemonFailed("the daemon gave no answer in time")
        case Why.BROKEN:
            return DaemonFailed(f"the connection to the daemon ended early: {outcome.cause}")
        case Why.UNFIT:
            return DaemonFailed(f"the daemon's answer makes no sense: {outcome.cause}")


def refusal(reply: HttpReply) -> SignerdError:
    """The error that the daemon answered with."""
    try:
        problem = json.loads(reply.content)
    except (ValueError, RecursionError):
        problem = None
    if not isinstance(problem, dict):
        return DaemonFailed(f"the daemon answered {reply.status} and no more")
    return error_from(problem)


def segment(text: str) -> str:
    """An id as a part of a path. Raises InvalidRequest for one that could lead elsewhere."""
    if ID.fullmatch(text) is None:
        raise InvalidRequest(f"'{text}' cannot be the id of anything", hint="Copy it as it is listed.")
    return text


class Values:
    """A JSON object with its fields as attributes, as its shape would have them. Answers for the command line
    are not validated: importing pydantic and building the shapes takes longer than the rest of a command.
    """

    def __init__(self, fields: dict[str, Any]) -> None:
        self._fields = fields

    def __getattr__(self, name: str) -> Any:
        """Raises DaemonFailed for a missing field."""
        try:
            return self._fields[name]
        except KeyError:
            raise DaemonFailed(
                f"the daemon's answer has no '{name}': another version of signerd is running",
                hint="End it and start this one.",
            ) from None

    def __contains__(self, name: object) -> bool:
        return name in self._fields

    def as_json(self) -> dict[str, Any]:
        return {name: _as_json(value) for name, value in self._fields.items()}


def _as_json(value: Any) -> Any:
    if isinstance(value, Values):
        return value.as_json()
    return [_as_json(each) for each in value] if isinstance(value, list) else value


def parse(content: bytes | str) -> Any:
    """Raises ValueError."""
    try:
        value = json.loads(content, object_hook=Values)
    except RecursionError:
        raise ValueError("nested too deeply") from None
    if not isinstance(value, Values | list):
        raise ValueError("neither an object nor a list")  # noqa: TRY004 - as for text that is not JSON
    return value
