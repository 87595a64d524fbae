"""The daemon's calls that are used here, and what of its answers, as values.

Bitcoin Core starts this program anew for each question.
"""

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from time import sleep
from typing import Any, Self, TypeVar

from custody.exchange import Waiting
from signerd.asking import SILENCE_SECONDS, DaemonAddress, ask, segment
from signerd.endpoint import QUICK_SECONDS
from signerd.errors import DaemonFailed
from signerd.transport import SocketTransport, Stream


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

    def happenings(self, subject: str) -> Stream:
        """The lines of the events about a subject, from now on. Ends where the daemon ends it."""
        address = DaemonAddress.of_folder(self.state)
        query = {"subject": segment(subject)}
        return Stream(address, address.request("GET", "/events", SILENCE_SECONDS, query=query))

    def _ask(self, verb: str, path: str, body: Mapping[str, Any] | None, seconds: float) -> Any:
        address = DaemonAddress.of_folder(self.state)
        client = Waiting(address, SocketTransport(address), sleep)
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
