"""Changing the platform's own secrets, in an order that a kill at any point leaves readable."""

from dataclasses import dataclass

from custody.server.domain.audit import Category
from custody.server.domain.errors import StateConflict
from custody.server.service.audit import AuditLog
from custody.server.service.secrets import Purpose, Secrets
from custody.server.service.setup import OPERATOR
from custody.server.service.totp_secrets import TotpSecrets
from custody.server.store import Store


@dataclass(frozen=True)
class Rotated:
    """``still_read``: older secrets that go on reading what was made with them."""

    purpose: Purpose
    sealed_anew: int
    dropped: int
    still_read: int


class Rotation:
    def __init__(self, store: Store, audit: AuditLog, secrets: Secrets, totp: TotpSecrets) -> None:
        self._store = store
        self._audit = audit
        self._secrets = secrets
        self._totp = totp

    def rotate(self, purpose: Purpose, *, drop_old: bool) -> Rotated:
        """A new secret in front. Authenticators' are sealed anew, after which nothing needs the old one: it is dropped.

        Killed before the end, some old secrets still read; the next rotation ends what was begun. Raises StateConflict.
        """
        if drop_old and purpose is Purpose.CHECKPOINT:
            raise StateConflict("Old checkpoints can be checked with the old secret only; it stays.")
        old = self._secrets.of(purpose)
        self._secrets.rotate(purpose)
        with self._store.write() as db:
            # Read inside the transaction, like every seal: whatever is stored after it was sealed with the new secret.
            count = self._totp.seal_anew(db) if purpose is Purpose.TOTP else 0
            self._audit.record(db, OPERATOR, Category.ACCESS, "SECRET_ROTATED", purpose.value)
        dropped = old if drop_old or purpose is Purpose.TOTP else ()
        # Not simply all but the newest: somebody else's rotation may stand between these two lines.
        self._secrets.drop(purpose, dropped)
        return Rotated(purpose, count, len(dropped), len(self._secrets.of(purpose)) - 1)
