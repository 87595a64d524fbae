"""The platform's own secrets: in a file beside the database, never in it, so that whoever reads the one lacks the other.

Of each kind there may be several, the newest first: it writes, and all of them read until the old ones are dropped.
"""

import fcntl
import json
import os
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from typing import Final

from pydantic import BaseModel, ConfigDict, SecretStr

from custody.server.domain.ports import RandomBytes

SECRET_BYTES: Final = 32


class Purpose(StrEnum):
    """What a secret is for; none serves two."""

    TOTP = "totp"  # encrypts the secrets of authenticators
    PURCHASE_WEBHOOK = "purchase-webhook"  # what the purchase provider signs with
    CHECKPOINT = "checkpoint"  # signs the audit log's checkpoints
    WEBHOOK = "webhook"  # encrypts the secrets that sign what webhooks are told


class _Stored(BaseModel):
    model_config = ConfigDict(extra="forbid", hide_input_in_errors=True)

    secrets: dict[Purpose, list[SecretStr]]


Kept = dict[Purpose, tuple[bytes, ...]]


class Secrets:
    """``path`` is made (0600) with one secret of each kind at the first use. Several servers share one copy."""

    def __init__(self, path: Path, random: RandomBytes) -> None:
        self._path = path
        self._random = random

    def of(self, purpose: Purpose) -> tuple[bytes, ...]:
        """32 bytes each, the newest first; never empty."""
        found = self._read().get(purpose)
        return found or self._change(lambda secrets: self._first(secrets, purpose))[purpose]

    def rotate(self, purpose: Purpose) -> None:
        """A new secret goes in front; the others still read."""
        self._change(lambda secrets: {**secrets, purpose: (self._new(), *secrets.get(purpose, ()))})

    def put(self, purpose: Purpose, secret: bytes) -> None:
        """One that somebody else made goes in front, of whatever length; the others still read."""
        self._change(lambda secrets: {**secrets, purpose: (secret, *secrets.get(purpose, ()))})

    def drop(self, purpose: Purpose, old: Collection[bytes]) -> None:
        """Forgets just these: what somebody else put in front meanwhile stays, and so does what it replaced."""
        self._change(
            lambda secrets: {
                **secrets,
                purpose: tuple(each for each in secrets.get(purpose, ()) if each not in old),
            }
        )

    def _new(self) -> bytes:
        return self._random(SECRET_BYTES)

    def _first(self, secrets: Kept, purpose: Purpose) -> Kept:
        return secrets if secrets.get(purpose) else {**secrets, purpose: (self._new(),)}

    def _read(self) -> Kept:
        try:
            text = self._path.read_bytes()
        except FileNotFoundError:
            return {}
        stored = _Stored.model_validate_json(text).secrets
        return {
            purpose: tuple(urlsafe_b64decode(secret.get_secret_value()) for secret in kept)
            for purpose, kept in stored.items()
        }

    def _change(self, change: Callable[[Kept], Kept]) -> Kept:
        """Under a lock that other processes respect; the file is replaced whole or not at all."""
        with _alone(self._path.with_suffix(".lock")):
            changed = change(self._read())
            draft = self._path.with_suffix(".new")
            descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
            with os.fdopen(descriptor, "wb") as file:
                file.write(_write(changed))
                file.flush()
                os.fsync(file.fileno())
            draft.replace(self._path)
            return changed


@contextmanager
def _alone(path: Path) -> Iterator[None]:
    """Commands and servers on one machine change the file one after the other; the kernel frees the lock."""
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def _write(secrets: Kept) -> bytes:
    text = {
        purpose.value: [urlsafe_b64encode(secret).decode() for secret in kept]
        for purpose, kept in secrets.items()
    }
    return json.dumps({"secrets": text}, indent=2).encode()
