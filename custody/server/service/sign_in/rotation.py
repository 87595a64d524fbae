"""Changing the platform's own secrets, in an order that a kill at any point leaves readable."""

from dataclasses import dataclass
from typing import Final

from sqlalchemy.orm import Session

from custody.server.domain.audit import Category
from custody.server.domain.errors import StateConflict
from custody.server.service.audit.log import AuditLog
from custody.server.service.secrets import Purpose, Secrets
from custody.server.service.sign_in.totp_secrets import TotpSecrets
from custody.server.service.system import OPERATOR
from custody.server.service.webhooks.secrets import WebhookSecrets
from custody.server.store import Store

# What these encrypted is stored, and encrypted anew at a rotation.
ENCRYPTING: Final = frozenset({Purpose.TOTP, Purpose.WEBHOOK})


@dataclass(frozen=True)
class Rotated:
    """``still_read``: older secrets that go on reading what was made with them."""

    purpose: Purpose
    sealed_anew: int
    dropped: int
    still_read: int


class Rotation:
    def __init__(
        self, store: Store, audit: AuditLog, secrets: Secrets, totp: TotpSecrets, webhooks: WebhookSecrets
    ) -> None:
        self._store = store
        self._audit = audit
        self._secrets = secrets
        self._totp = totp
        self._webhooks = webhooks

    def rotate(self, purpose: Purpose) -> Rotated:
        """A new secret in front; older ones go on reading, but for those that encrypt: all is sealed anew at once.

        Killed before the end, it leaves some old secrets that still read; the next rotation ends what was begun.
        """
        self._secrets.rotate(purpose)
        if purpose in ENCRYPTING:
            return self._leave(purpose, "SECRET_ROTATED")
        with self._store.write() as db:
            self._audit.record(db, OPERATOR, Category.ACCESS, "SECRET_ROTATED", purpose.value)
        return self._done(purpose, 0, 0)

    def finish(self, purpose: Purpose) -> Rotated:
        """Nothing is made with the older secrets any more: they are dropped. Raises StateConflict."""
        if purpose is Purpose.CHECKPOINT:
            raise StateConflict("Old checkpoints can be checked with the old secret only; it stays.")
        return self._leave(purpose, "OLD_SECRETS_DROPPED")

    def _leave(self, purpose: Purpose, action: str) -> Rotated:
        """Just those that are old now are dropped in the end: somebody else's rotation may run between the lines."""
        old = self._secrets.of(purpose)[1:]
        with self._store.write() as db:
            # Read inside the transaction, like every seal: what is stored after it was sealed with a newer secret.
            count = self._seal_anew(db, purpose)
            self._audit.record(db, OPERATOR, Category.ACCESS, action, purpose.value)
        self._secrets.drop(purpose, old)
        return self._done(purpose, count, len(old))

    def _seal_anew(self, db: Session, purpose: Purpose) -> int:
        match purpose:
            case Purpose.TOTP:
                return self._totp.seal_anew(db)
            case Purpose.WEBHOOK:
                return self._webhooks.seal_anew(db)
            case _:
                return 0

    def _done(self, purpose: Purpose, sealed_anew: int, dropped: int) -> Rotated:
        return Rotated(purpose, sealed_anew, dropped, len(self._secrets.of(purpose)) - 1)
