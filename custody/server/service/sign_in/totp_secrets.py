"""Authenticators' secrets at rest: encrypted with what the database does not hold, so that a copy of it signs nobody in."""

from base64 import urlsafe_b64encode
from contextlib import suppress

import structlog
from cryptography.fernet import Fernet, InvalidToken, MultiFernet
from sqlalchemy import or_, select
from sqlalchemy.orm import Session

from custody.server.service.secrets import Purpose, Secrets
from custody.server.store.models import Credential

log = structlog.get_logger()


class TotpSecrets:
    """Fernet: AES-128-CBC under an HMAC, keyed by the platform's secret for authenticators, the newest first.

    Seal inside the transaction that stores: a rotation re-encrypts in one of its own, so that nothing sealed with an old
    secret can be stored after it.
    """

    def __init__(self, secrets: Secrets) -> None:
        self._secrets = secrets

    def seal(self, secret: bytes) -> bytes:
        return self._cipher().encrypt(secret)

    def open(self, sealed: bytes) -> bytes | None:
        """None where no secret of ours opens it: the file of secrets was lost, and only recovery codes are left."""
        with suppress(InvalidToken):
            return self._cipher().decrypt(sealed)
        log.error("an authenticator's secret cannot be read: is this the file of secrets it was stored with?")
        return None

    def seal_anew(self, db: Session) -> int:
        """Everything stored, under the newest secret; how many that were."""
        cipher = self._cipher()
        stored = or_(Credential.totp_secret.is_not(None), Credential.totp_pending.is_not(None))
        count = 0
        for credential in db.scalars(select(Credential).where(stored)):
            credential.totp_secret = _anew(cipher, credential.totp_secret)
            credential.totp_pending = _anew(cipher, credential.totp_pending)
            count += 1
        return count

    def _cipher(self) -> MultiFernet:
        return MultiFernet([Fernet(urlsafe_b64encode(key)) for key in self._secrets.of(Purpose.TOTP)])


def _anew(cipher: MultiFernet, sealed: bytes | None) -> bytes | None:
    """What cannot be read any more stays as it is: it hurts nobody, and the right file may come back."""
    if sealed is None:
        return None
    try:
        return cipher.rotate(sealed)
    except InvalidToken:
        return sealed
