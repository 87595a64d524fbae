"""The platform's own secrets, in a file beside the database, and the database's secrets that they encrypt.

With a copy of the database alone one cannot sign in as any user or sign webhook deliveries. Each kind may
have several secrets, the newest first: the first encrypts, and all of them decrypt until the operator drops
the old ones.
"""

import fcntl
import json
import os
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager, suppress
from datetime import datetime
from enum import StrEnum
from pathlib import Path
from typing import Final

import structlog
from cryptography.fernet import Fernet, InvalidToken, MultiFernet
from pydantic import BaseModel, ConfigDict, SecretStr
from sqlalchemy import or_, select
from sqlalchemy.orm import Session

from custody.server.domain.ports import RandomBytes
from custody.server.store.models import Credential, IdentityProvider, Webhook

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

    secrets: dict[Purpose, list[SecretStr]]


Kept = dict[Purpose, tuple[bytes, ...]]


class Secrets:
    """``path`` is created (0600) with one secret of each kind at first use. All servers share one copy."""

    def __init__(self, path: Path, random: RandomBytes) -> None:
        self._path = path
        self._random = random

    def of(self, purpose: Purpose) -> tuple[bytes, ...]:
        """32 bytes each, the newest first; never empty."""
        found = self._read().get(purpose)
        return found or self._change(lambda secrets: self._first(secrets, purpose))[purpose]

    def cipher(self, purpose: Purpose) -> MultiFernet:
        """Encrypts with the newest secret and decrypts with each: Fernet, AES-128-CBC under an HMAC."""
        return MultiFernet([Fernet(urlsafe_b64encode(key)) for key in self.of(purpose)])

    def rotate(self, purpose: Purpose) -> None:
        """A new secret goes in front; the others still decrypt."""
        self._change(lambda secrets: {**secrets, purpose: (self._new(), *secrets.get(purpose, ()))})

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
        """Replaces the file atomically, under a lock between processes."""
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
    """A lock between the processes of one machine, which the kernel releases when a process dies."""
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


class TotpSecrets:
    """Secrets of authenticators, encrypted with the platform's secret for them.

    Call ``seal`` inside the transaction that stores: a rotation re-encrypts in a transaction of its own, so
    nothing that was sealed with an old secret is stored after it.
    """

    def __init__(self, secrets: Secrets) -> None:
        self._secrets = secrets

    def seal(self, secret: bytes) -> bytes:
        return self._secrets.cipher(Purpose.TOTP).encrypt(secret)

    def open(self, sealed: bytes) -> bytes | None:
        """None where no secret of the platform decrypts it: the file was lost, and users need recovery
        codes.
        """
        with suppress(InvalidToken):
            return self._secrets.cipher(Purpose.TOTP).decrypt(sealed)
        log.error("an authenticator's secret cannot be read: is this the file of secrets it was stored with?")
        return None

    def reencrypt(self, db: Session) -> int:
        """Re-encrypts everything stored with the newest secret. Returns how many there were."""
        cipher = self._secrets.cipher(Purpose.TOTP)
        stored = or_(Credential.totp_secret.is_not(None), Credential.totp_pending.is_not(None))
        count = 0
        for credential in db.scalars(select(Credential).where(stored)):
            credential.totp_secret = _reencrypted(cipher, credential.totp_secret)
            credential.totp_pending = _reencrypted(cipher, credential.totp_pending)
            count += 1
        return count


class ClientSecrets:
    """The client secrets at identity providers. As with `TotpSecrets`, seal inside the transaction that
    stores.
    """

    def __init__(self, secrets: Secrets) -> None:
        self._secrets = secrets

    def seal(self, secret: str) -> bytes:
        return self._secrets.cipher(Purpose.IDENTITY_PROVIDER).encrypt(secret.encode())

    def open(self, sealed: bytes) -> str | None:
        """None where no secret of the platform decrypts it: an owner has to enter it again."""
        with suppress(InvalidToken):
            return self._secrets.cipher(Purpose.IDENTITY_PROVIDER).decrypt(sealed).decode()
        log.error("a provider's secret cannot be read: is this the file of secrets it was stored with?")
        return None

    def reencrypt(self, db: Session) -> int:
        """Re-encrypts everything stored with the newest secret. Returns how many there were."""
        cipher, count = self._secrets.cipher(Purpose.IDENTITY_PROVIDER), 0
        stored = select(IdentityProvider).where(IdentityProvider.sealed_secret.is_not(None))
        for provider in db.scalars(stored):
            provider.sealed_secret = _reencrypted(cipher, provider.sealed_secret)
            count += 1
        return count


def _reencrypted(cipher: MultiFernet, sealed: bytes | None) -> bytes | None:
    """A value that cannot be decrypted stays as it is: the right file of secrets may come back."""
    if sealed is None:
        return None
    try:
        return cipher.rotate(sealed)
    except InvalidToken:
        return sealed


class WebhookSecrets:
    """Secrets that sign webhook deliveries. As for `TotpSecrets`, seal inside the transaction that stores."""

    def __init__(self, secrets: Secrets) -> None:
        self._secrets = secrets

    def seal(self, secret: str) -> bytes:
        return self._secrets.cipher(Purpose.WEBHOOK).encrypt(secret.encode())

    def that_sign(self, webhook: Webhook, now: datetime) -> list[str]:
        """The newest first, then the former one while it is still valid. Empty where no secret of the
        platform decrypts them: the file was lost, and a rotation makes a new one.
        """
        sealed = [webhook.sealed_secret]
        if webhook.sealed_old_secret is not None and webhook.old_secret_until is not None:
            sealed += [webhook.sealed_old_secret] if now < webhook.old_secret_until else []
        cipher, opened = self._secrets.cipher(Purpose.WEBHOOK), []
        for each in sealed:
            with suppress(InvalidToken):
                opened.append(cipher.decrypt(each).decode())
        if not opened:
            log.error("a webhook's secret cannot be read: is this the file of secrets it was stored with?")
        return opened

    def reencrypt(self, db: Session) -> int:
        """Re-encrypts everything stored with the newest secret. Returns how many there were."""
        cipher = self._secrets.cipher(Purpose.WEBHOOK)
        count = 0
        for webhook in db.scalars(select(Webhook)):
            # A value that cannot be decrypted stays as it is: the right file may come back.
            with suppress(InvalidToken):
                webhook.sealed_secret = cipher.rotate(webhook.sealed_secret)
                if webhook.sealed_old_secret is not None:
                    webhook.sealed_old_secret = cipher.rotate(webhook.sealed_old_secret)
                count += 1
        return count
