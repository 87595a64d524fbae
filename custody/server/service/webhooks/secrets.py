"""Webhooks' secrets at rest: encrypted with what the database does not hold, so that a copy of it signs nothing."""

from base64 import urlsafe_b64encode
from contextlib import suppress
from datetime import datetime

import structlog
from cryptography.fernet import Fernet, InvalidToken, MultiFernet
from sqlalchemy import select
from sqlalchemy.orm import Session

from custody.server.service.secrets import Purpose, Secrets
from custody.server.store.models import Webhook

log = structlog.get_logger()


class WebhookSecrets:
    """As authenticators' secrets are kept (`TotpSecrets`): seal inside the transaction that stores."""

    def __init__(self, secrets: Secrets) -> None:
        self._secrets = secrets

    def seal(self, secret: str) -> bytes:
        return self._cipher().encrypt(secret.encode())

    def that_sign(self, webhook: Webhook, now: datetime) -> list[str]:
        """The newest first, and the one before it as long as receivers may still know only that; none where no secret of
        ours opens them: the file of secrets was lost, and a rotation makes a new one.
        """
        sealed = [webhook.sealed_secret]
        if webhook.sealed_old_secret is not None and webhook.old_secret_until is not None:
            sealed += [webhook.sealed_old_secret] if now < webhook.old_secret_until else []
        cipher, opened = self._cipher(), []
        for each in sealed:
            with suppress(InvalidToken):
                opened.append(cipher.decrypt(each).decode())
        if not opened:
            log.error("a webhook's secret cannot be read: is this the file of secrets it was stored with?")
        return opened

    def seal_anew(self, db: Session) -> int:
        """Everything stored, under the newest secret; how many that were."""
        cipher = self._cipher()
        count = 0
        for webhook in db.scalars(select(Webhook)):
            # What cannot be read any more stays as it is: the right file may come back.
            with suppress(InvalidToken):
                webhook.sealed_secret = cipher.rotate(webhook.sealed_secret)
                if webhook.sealed_old_secret is not None:
                    webhook.sealed_old_secret = cipher.rotate(webhook.sealed_old_secret)
                count += 1
        return count

    def _cipher(self) -> MultiFernet:
        return MultiFernet([Fernet(urlsafe_b64encode(key)) for key in self._secrets.of(Purpose.WEBHOOK)])
