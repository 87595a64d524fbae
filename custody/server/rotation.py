"""Rotating the platform's own secrets, and encrypting anew what the database stores under them: stored values
stay readable if the process is killed at any point.
"""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final

from cryptography.fernet import InvalidToken
from sqlalchemy import or_, select
from sqlalchemy.orm import InstrumentedAttribute, Session

from custody.server.audit.log import AuditLog
from custody.server.errors import StateConflict
from custody.server.rules.audit import Category, Event
from custody.server.rules.credentials import OPERATOR
from custody.server.secrets import Purpose, Secrets
from custody.server.store import Store
from custody.server.store.models import CredentialRow, IdentityProviderRow, WebhookRow

SECRET_ROTATED = Event("SECRET_ROTATED", "// {purpose}", Category.ACCESS)
OLD_DROPPED = Event("OLD_SECRETS_DROPPED", "// {purpose}", Category.ACCESS)

# The columns with what each of these encrypts. A rotation encrypts them anew.
SEALED: Final[Mapping[Purpose, Sequence[InstrumentedAttribute[Any]]]] = {
    Purpose.TOTP: (CredentialRow.totp_secret, CredentialRow.totp_pending),
    Purpose.WEBHOOK: (WebhookRow.sealed_secret, WebhookRow.sealed_old_secret),
    Purpose.IDENTITY_PROVIDER: (IdentityProviderRow.sealed_secret,),
}


@dataclass(frozen=True)
class Rotated:
    """``still_read``: how many older secrets still decrypt what was made with them."""

    purpose: Purpose
    reencrypted: int
    dropped: int
    still_read: int


def rotate(store: Store, audit: AuditLog, secrets: Secrets, purpose: Purpose) -> Rotated:
    """Adds a new secret in front. Older ones still decrypt, except for kinds that encrypt stored values:
    those are re-encrypted at once.

    A process that is killed before the end leaves old secrets that still decrypt; the next rotation drops
    them.
    """
    secrets.rotate(purpose)
    if purpose in SEALED:
        return _leave(store, audit, secrets, purpose, SECRET_ROTATED)
    with store.write() as db:
        audit.record(db, OPERATOR, SECRET_ROTATED, None, purpose=purpose.value)
    return Rotated(purpose, 0, 0, len(secrets.of(purpose)) - 1)


def drop_old(store: Store, audit: AuditLog, secrets: Secrets, purpose: Purpose) -> Rotated:
    """Drops the older secrets of a kind. Raises StateConflict for one that must stay."""
    if purpose is Purpose.CHECKPOINT:
        raise StateConflict("Old checkpoints can be checked with the old secret only; it stays.")
    return _leave(store, audit, secrets, purpose, OLD_DROPPED)


def _leave(store: Store, audit: AuditLog, secrets: Secrets, purpose: Purpose, event: Event) -> Rotated:
    """Drops only the secrets that are old at the start: another rotation may run at the same time."""
    old = secrets.of(purpose)[1:]
    with store.write() as db:
        # Inside the transaction, as every seal is: what is stored after it was sealed with a newer secret.
        count = reencrypt(db, secrets, purpose) if purpose in SEALED else 0
        audit.record(db, OPERATOR, event, None, purpose=purpose.value)
    secrets.drop(purpose, old)
    return Rotated(purpose, count, len(old), len(secrets.of(purpose)) - 1)


def reencrypt(db: Session, secrets: Secrets, purpose: Purpose) -> int:
    """Encrypts everything stored anew, with the newest secret. Returns how many rows there were."""
    columns, cipher, count = SEALED[purpose], secrets.cipher(purpose), 0
    for row in db.scalars(select(columns[0].class_).where(or_(*(each.is_not(None) for each in columns)))):
        count += 1
        for column in columns:
            sealed = getattr(row, column.key)
            # A value that cannot be decrypted stays as it is: the right file of secrets may come back.
            with suppress(InvalidToken):
                setattr(row, column.key, None if sealed is None else cipher.rotate(sealed))
    return count
