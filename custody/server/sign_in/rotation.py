"""Rotating the platform's own secrets: stored values stay readable if the process is killed at any point."""

from dataclasses import dataclass

from custody.server.audit.log import AuditLog
from custody.server.errors import StateConflict
from custody.server.rules.audit import Category, Event
from custody.server.rules.credentials import OPERATOR
from custody.server.secrets import SEALED, Purpose, Secrets, reencrypt
from custody.server.store import Store

SECRET_ROTATED = Event("SECRET_ROTATED", "{purpose}", category=Category.ACCESS)
OLD_DROPPED = Event("OLD_SECRETS_DROPPED", "{purpose}", category=Category.ACCESS)


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
