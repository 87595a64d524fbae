"""Rotating the platform's own secrets: stored values stay readable if the process is killed at any point."""

from dataclasses import dataclass

from custody.server.domain.audit import Category, Event
from custody.server.domain.credentials import OPERATOR
from custody.server.domain.errors import StateConflict
from custody.server.service.audit.log import AuditLog
from custody.server.service.secrets import SEALED, Purpose, Secrets, reencrypt
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


class Rotation:
    def __init__(self, store: Store, audit: AuditLog, secrets: Secrets) -> None:
        self._store = store
        self._audit = audit
        self._secrets = secrets

    def rotate(self, purpose: Purpose) -> Rotated:
        """Adds a new secret in front. Older ones still decrypt, except for kinds that encrypt stored values:
        those are re-encrypted at once.

        A process that is killed before the end leaves old secrets that still decrypt; the next rotation drops
        them.
        """
        self._secrets.rotate(purpose)
        if purpose in SEALED:
            return self._leave(purpose, SECRET_ROTATED)
        with self._store.write() as db:
            self._audit.record(db, OPERATOR, SECRET_ROTATED, None, purpose=purpose.value)
        return self._done(purpose, 0, 0)

    def finish(self, purpose: Purpose) -> Rotated:
        """Drops the older secrets of a kind. Raises StateConflict for one that must stay."""
        if purpose is Purpose.CHECKPOINT:
            raise StateConflict("Old checkpoints can be checked with the old secret only; it stays.")
        return self._leave(purpose, OLD_DROPPED)

    def _leave(self, purpose: Purpose, event: Event) -> Rotated:
        """Drops only the secrets that are old at the start: another rotation may run at the same time."""
        old = self._secrets.of(purpose)[1:]
        with self._store.write() as db:
            # Inside the transaction, as every seal is: what is stored after it was sealed with a newer
            # secret.
            count = reencrypt(db, self._secrets, purpose) if purpose in SEALED else 0
            self._audit.record(db, OPERATOR, event, None, purpose=purpose.value)
        self._secrets.drop(purpose, old)
        return self._done(purpose, count, len(old))

    def _done(self, purpose: Purpose, reencrypted: int, dropped: int) -> Rotated:
        return Rotated(purpose, reencrypted, dropped, len(self._secrets.of(purpose)) - 1)
