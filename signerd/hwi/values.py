"""What of the daemon's answers is used here, as values. What is missing in one is a daemon that makes no sense."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Self, TypeVar

from signerd.errors import DaemonFailed

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
    """Where an unlocking is. ``kind`` and ``question``: of what the device asks, where ``state`` is "asks"."""

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
