"""The platform's own secrets, in a file beside the database.

With a copy of the database alone one cannot sign in as any user or sign webhook deliveries. Each kind may
have several secrets, the newest first: the first encrypts, and all of them decrypt until the operator drops
the old ones.
"""

import fcntl
import os
from base64 import urlsafe_b64encode
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager, suppress
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Final

import structlog
from cryptography.fernet import Fernet, InvalidToken, MultiFernet
from pydantic import Base64UrlBytes, BaseModel, ConfigDict, Field

from custody.common.private_files import write_private
from custody.server.rules.ports import RandomBytes

log = structlog.get_logger()

SECRET_BYTES: Final = 32


class Purpose(StrEnum):
    """What a secret is for; no secret serves two purposes."""

    TOTP = "totp"  # encrypts the secrets of authenticators
    PURCHASE_WEBHOOK = "purchase-webhook"  # verifies the purchase provider's signatures
    CHECKPOINT = "checkpoint"  # signs the audit log's checkpoints
    WEBHOOK = "webhook"  # encrypts the secrets that sign webhook deliveries
    IDENTITY_PROVIDER = "identity-provider"  # encrypts the client secrets at identity providers


class _Stored(BaseModel):
    model_config = ConfigDict(extra="forbid", hide_input_in_errors=True)

    secrets: dict[Purpose, tuple[Annotated[Base64UrlBytes, Field(min_length=1)], ...]]


Kept = dict[Purpose, tuple[bytes, ...]]


class Secrets:
    """``path`` is created (0600) with one secret of each kind at first use. All servers share one copy."""

    def __init__(self, path: Path, random: RandomBytes) -> None:
        self._path = path
        self._random = random

    def of(self, purpose: Purpose) -> tuple[bytes, ...]:
        """32 bytes each, the newest first; never empty."""
        secret = self._read().get(purpose)
        if secret:
            return secret
        new = (self._random(SECRET_BYTES),)
        # Another process may have been first.
        return self._change(lambda secrets: {**secrets, purpose: secrets.get(purpose) or new})[purpose]

    def cipher(self, purpose: Purpose) -> MultiFernet:
        """Encrypts with the newest secret and decrypts with each: Fernet, AES-128-CBC under an HMAC."""
        return MultiFernet([Fernet(urlsafe_b64encode(key)) for key in self.of(purpose)])

    def seal(self, purpose: Purpose, secret: bytes) -> bytes:
        """As the database stores it. Call it inside the transaction that stores: a rotation re-encrypts in a
        transaction of its own, so nothing that was sealed with an old secret is stored after it.
        """
        return self.cipher(purpose).encrypt(secret)

    def open(self, purpose: Purpose, sealed: bytes) -> bytes | None:
        """None where no secret of the platform decrypts it: the file was lost. Then a user needs a recovery
        code, an owner enters a provider's secret again, and a webhook's rotation makes a new one.
        """
        with suppress(InvalidToken):
            return self.cipher(purpose).decrypt(sealed)
        log.error("a secret cannot be read: is this the file of secrets it was stored with?", purpose=purpose)
        return None

    def rotate(self, purpose: Purpose) -> None:
        """A new secret goes in front; the others still decrypt."""
        self.put(purpose, self._random(SECRET_BYTES))

    def put(self, purpose: Purpose, secret: bytes) -> None:
        """Adds a secret that another party made, of any length, in front; the others still decrypt."""
        self._change(lambda secrets: {**secrets, purpose: (secret, *secrets.get(purpose, ()))})

    def drop(self, purpose: Purpose, old: Collection[bytes]) -> None:
        """Removes exactly these; secrets that another process added meanwhile stay."""
        self._change(
            lambda secrets: {
                **secrets,
                purpose: tuple(each for each in secrets.get(purpose, ()) if each not in old),
            }
        )

    def _read(self) -> Kept:
        try:
            text = self._path.read_bytes()
        except FileNotFoundError:
            return {}
        return _Stored.model_validate_json(text).secrets

    def _change(self, change: Callable[[Kept], Kept]) -> Kept:
        """Replaces the file atomically, under a lock between processes."""
        with _alone(self._path.with_suffix(".lock")):
            changed = change(self._read())
            text = _Stored.model_construct(secrets=changed).model_dump_json(indent=2)
            write_private(self._path, text.encode())
            return changed


@contextmanager
def _alone(path: Path) -> Iterator[None]:
    """A lock between the processes of one machine, which the kernel releases when a process dies."""
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)
