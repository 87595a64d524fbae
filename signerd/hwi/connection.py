"""The daemon's private socket, with the standard library alone, and what of its answers is used here, as
values.

Bitcoin Core starts this program anew for each question.
"""

import http.client
import json
import socket
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from time import sleep
from typing import Any, Self, TypeVar

from custody.deadlines import Deadline
from custody.exchange import CONNECT_SECONDS, Body, NoAnswer, Outcome, Reply, Request, Unfit, Waiting, Why
from signerd.asking import SILENCE_SECONDS, DaemonAddress, ask, failure, refusal, segment
from signerd.endpoint import HOST, QUICK_SECONDS
from signerd.errors import DaemonFailed

_PIECE = 1 << 16


class _Connection(http.client.HTTPConnection):
    """HTTP over a Unix socket."""

    def __init__(self, place: Path | None, seconds: float) -> None:
        super().__init__(HOST, timeout=seconds)
        self._place = place

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX)
        try:
            self.sock.settimeout(CONNECT_SECONDS)
            self.sock.connect(str(self._place))
        except OSError as error:
            self.sock.close()
            raise _Refused(error) from None
        self.sock.settimeout(self.timeout)


class _Refused(Exception):
    """No process listens."""


@dataclass(frozen=True)
class _SocketTransport:
    """Each exchange has a connection of its own."""

    place: Path | None

    def __call__(self, request: Request) -> Outcome:
        with Deadline(request.whole) as deadline:
            try:
                with self.answered(request, deadline) as answer:
                    body = Body(request.path, headers := _headers(answer))
                    while piece := answer.read(_PIECE):
                        body.add(piece)
                    # What http.client leaves to its caller where it reads by pieces.
                    if deadline.is_over or answer.length:
                        raise ConnectionError("the answer breaks off")
                    return Reply(answer.status, headers, body.whole(), request.path)
            except (*_TROUBLES, Unfit) as error:
                return no_answer(TimeoutError() if deadline.is_over else error)

    @contextmanager
    def answered(
        self, request: Request, deadline: Deadline | None = None
    ) -> Iterator[http.client.HTTPResponse]:
        connection = _Connection(self.place, request.silence)
        try:
            connection.connect()
            if deadline is not None:
                deadline.watch(connection.sock)
            connection.request(
                request.method, request.url.split(HOST, 1)[1], request.content, dict(request.headers)
            )
            yield connection.getresponse()
        finally:
            connection.close()


def _headers(answer: http.client.HTTPResponse) -> dict[str, str]:
    return {name.lower(): value for name, value in answer.getheaders()}


_TROUBLES = (_Refused, TimeoutError, http.client.HTTPException, ConnectionError)


def no_answer(error: Exception) -> NoAnswer:
    match error:
        case _Refused():
            return NoAnswer(Why.NO_CONNECTION, error.args[0])
        case TimeoutError():
            return NoAnswer(Why.LATE, error)
        case Unfit():
            return NoAnswer(Why.UNFIT, error)
        case _:
            return NoAnswer(Why.BROKEN, error)


@dataclass(frozen=True)
class DaemonConnection:
    """``state``: the state folder of the daemon. Each method raises DaemonNotRunning, DaemonFailed,
    UnsafeFolder, and the leaf of SignerdError that the daemon answers with.
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
        address = DaemonAddress.of_folder(self.state)
        request = address.request("GET", "/events", SILENCE_SECONDS, query={"subject": segment(subject)})
        try:
            with _SocketTransport(address.socket).answered(request) as answer:
                if answer.status >= http.HTTPStatus.BAD_REQUEST:
                    raise refusal(Reply(answer.status, _headers(answer), answer.read()))
                yield iter(answer.readline, b"")
        except TimeoutError:
            raise
        except _TROUBLES as error:
            raise failure(address, no_answer(error)) from None

    def _ask(self, verb: str, path: str, body: Mapping[str, Any] | None, seconds: float) -> Any:
        address = DaemonAddress.of_folder(self.state)
        client = Waiting(address, _SocketTransport(address.socket), sleep)
        reply = client.run(ask(address, address.request(verb, path, seconds, body=body)))
        try:
            return json.loads(reply.content) if reply.content else None
        except (ValueError, RecursionError):
            raise DaemonFailed("the daemon's answer makes no sense") from None


T = TypeVar("T")
Json = Mapping[str, Any]


@dataclass(frozen=True)
class Device:
    """``endpoint``: ``family:kind:place``. ``fingerprint``: None until the daemon has learned it."""

    id: str
    family: str
    model: str
    label: str | None
    endpoint: str
    state: str
    fingerprint: str | None
    emulator: bool
    detail: str | None
    advice: str | None

    @classmethod
    def read(cls, answer: Json) -> Self:
        return cls(**{name: answer[name] for name in cls.__dataclass_fields__})


@dataclass(frozen=True)
class Key:
    """``purpose``: "vault" or "profile". ``path`` starts with ``m/``."""

    purpose: str
    account: int
    path: str
    xpub: str

    @classmethod
    def read(cls, answer: Json) -> Self:
        return cls(**{name: answer[name] for name in cls.__dataclass_fields__})


@dataclass(frozen=True)
class Accounts:
    """``fingerprint``: None where no device is registered."""

    network: str
    fingerprint: str | None
    keys: tuple[Key, ...]

    @classmethod
    def read(cls, answer: Json) -> Self:
        return cls(answer["network"], answer["fingerprint"], tuple(map(Key.read, answer["keys"])))

    def find(self, purpose: str, account: int) -> Key | None:
        return next((key for key in self.keys if (key.purpose, key.account) == (purpose, account)), None)


@dataclass(frozen=True)
class PinnedVault:
    """``keys``: (fingerprint, path, xpub) of each cosigner."""

    vault_id: str
    threshold: int
    keys: tuple[tuple[str, str, str], ...]

    @classmethod
    def read(cls, answer: Json) -> Self | None:
        """None for one that is not pinned."""
        if not answer["pinned"]:
            return None
        keys = ((key["fingerprint"], key["path"], key["xpub"]) for key in answer["cosigners"])
        return cls(answer["vault_id"], answer["threshold"], tuple(keys))


@dataclass(frozen=True)
class Imported:
    """A PSBT that was brought. ``signed_psbt``: base64, once it is signed."""

    psbt_id: str
    state: str
    reason: str
    vault_name: str | None
    paid_sats: int | None
    signed_psbt: str | None

    @classmethod
    def read(cls, answer: Json) -> Self:
        return cls(**{name: answer[name] for name in cls.__dataclass_fields__})


@dataclass(frozen=True)
class Step:
    """Where an unlocking is. ``kind`` and ``question``: of what the device asks, where ``state``
    is "asks".
    """

    state: str
    kind: str | None
    question: str | None

    @classmethod
    def read(cls, answer: Json) -> Self:
        asked = answer["question"] or {"kind": None, "id": None}
        return cls(answer["state"], asked["kind"], asked["id"])


def read(shape: Callable[[Any], T], answer: Any) -> T:
    """Raises DaemonFailed."""
    with _sensible():
        return shape(answer)


def read_all(shape: Callable[[Any], T | None], answers: Any) -> tuple[T, ...]:
    """Without those that the shape passes over. Raises DaemonFailed."""
    with _sensible():
        return tuple(found for answer in answers if (found := shape(answer)) is not None)


@contextmanager
def _sensible() -> Iterator[None]:
    try:
        yield
    except (KeyError, TypeError):
        raise DaemonFailed("the daemon's answer makes no sense") from None
