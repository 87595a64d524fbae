"""Purchases as their provider reports them: the webhook's signature, the order of statuses, and stale
reports.

The signature is MoonPay's: ``Moonpay-Signature-V2: t=<seconds>,s=<hex>``, an HMAC-SHA256 of ``t.body``
(dev.moonpay.com, "Checking a webhook signature"). Deliveries come more than once and in any order.
"""

import hmac
import re
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Final

from custody.schemas.purchases import PurchaseStatus

SIGNATURE_HEADER: Final = "Moonpay-Signature-V2"
# As Stripe's libraries, which signed webhooks in this form first, allow by default.
TOLERANCE: Final = timedelta(minutes=5)

_WAITING, _PENDING, _AUTHORIZING, _COMPLETED, _FAILED = PurchaseStatus
# The statuses that a newer report may give after each. Steps in between may be missing; an end is final.
FOLLOWS: Final[dict[PurchaseStatus, frozenset[PurchaseStatus]]] = {
    _WAITING: frozenset(PurchaseStatus),
    _PENDING: frozenset({_PENDING, _AUTHORIZING, _COMPLETED, _FAILED}),
    _AUTHORIZING: frozenset({_PENDING, _AUTHORIZING, _COMPLETED, _FAILED}),
    _COMPLETED: frozenset(),
    _FAILED: frozenset(),
}

_PART = re.compile(r"\s*([a-z]+)=([0-9A-Za-z]+)\s*")
MAX_HEADER = 500


# A secret that we made has 32 bytes; one that the provider issued is stored with this prefix, and is longer.
_ISSUED: Final = b"issued:"
_MADE_BYTES: Final = 32
_ISSUED_KEY = re.compile(r"[\x21-\x7e]{26,200}")


def webhook_key(secret: bytes) -> str:
    """The shared secret as text, whose characters are the HMAC's key."""
    return secret.hex() if len(secret) == _MADE_BYTES else secret.removeprefix(_ISSUED).decode()


def issued_secret(key: str) -> bytes:
    """A key that the provider made, as it is stored. Raises ValueError for a malformed one."""
    if not _ISSUED_KEY.fullmatch(key):
        raise ValueError("a webhook's key has 26 to 200 printable characters without spaces")
    return _ISSUED + key.encode()


def signature_of(secret: bytes, timestamp: str, body: bytes) -> str:
    return hmac.new(webhook_key(secret).encode(), timestamp.encode() + b"." + body, "sha256").hexdigest()


def is_genuine(header: str | None, body: bytes, secrets: Sequence[bytes], now: datetime) -> bool:
    """Whether one of ``secrets`` signed the body at a time that is near enough to now, before or after."""
    parts = _parts(header or "")
    if parts is None:
        return False
    timestamp, given = parts
    # Always all of them: the time taken must not tell which secret matches.
    matches = [
        hmac.compare_digest(signature_of(secret, timestamp, body).encode(), given.encode())
        for secret in secrets
    ]
    signed_at = datetime.fromtimestamp(int(timestamp), UTC)
    return any(matches) and abs(now - signed_at) <= TOLERANCE


def _parts(header: str) -> tuple[str, str] | None:
    """The timestamp and the signature; None where either is missing, repeated or malformed."""
    if len(header) > MAX_HEADER:
        return None
    found: dict[str, str] = {}
    for part in header.split(","):
        match = _PART.fullmatch(part)
        if match is None or match[1] in found:
            return None
        found[match[1]] = match[2]
    timestamp, given = found.get("t", ""), found.get("s", "")
    # Eleven digits are the year 5138.
    if not (re.fullmatch("[0-9]{1,11}", timestamp) and re.fullmatch("[0-9a-f]{64}", given)):
        return None
    return timestamp, given


def is_news(
    known: tuple[PurchaseStatus, datetime] | None, status: PurchaseStatus, updated_at: datetime
) -> bool:
    """Whether a report changes what is known: it is newer, and its status may follow."""
    if known is None:
        return True
    known_status, known_at = known
    return updated_at > known_at and status in FOLLOWS[known_status]
