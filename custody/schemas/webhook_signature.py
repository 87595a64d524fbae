"""How a webhook's delivery is signed: an HMAC-SHA256 of ``t.body`` with a time, as the platform takes such
deliveries itself.

``Custody-Signature: t=<seconds since 1970>,s=<64 hex digits>``. While a new secret takes the old one's place
there are two ``s``, and either is good.
"""

import hmac
import re
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Final

SIGNATURE_HEADER: Final = "Custody-Signature"
# The same at every attempt for one event and one webhook; the event's own id is in the body.
DELIVERY_HEADER: Final = "Custody-Delivery"
KIND_HEADER: Final = "Custody-Event"
# As Stripe's libraries, which signed webhooks in this form first, allow by default.
TOLERANCE: Final = timedelta(minutes=5)
# Whoever finds one in a log or a repository sees what it is.
SECRET_PREFIX: Final = "whsec_"  # noqa: S105 - what a secret begins with is none
MAX_HEADER: Final = 500
MAX_SIGNATURES: Final = 4


def signature_header(secrets: Sequence[str], body: bytes, now: datetime) -> str:
    """With each of the secrets; a secret's characters, as they stand, are the key."""
    timestamp = str(int(now.timestamp()))
    return ",".join([f"t={timestamp}", *(f"s={_signature(secret, timestamp, body)}" for secret in secrets)])


def is_genuine(
    header: str, body: bytes, secret: str, now: datetime, tolerance: timedelta = TOLERANCE
) -> bool:
    """Whether the secret signed the body at a time that is near enough to now, before or after."""
    parts = _parts(header)
    if parts is None:
        return False
    timestamp, given = parts
    wanted = _signature(secret, timestamp, body).encode()
    # All of them, always: how long it takes tells nothing of which one was nearest.
    matches = [hmac.compare_digest(wanted, each.encode()) for each in given]
    return any(matches) and abs(now - datetime.fromtimestamp(int(timestamp), UTC)) <= tolerance


def _signature(secret: str, timestamp: str, body: bytes) -> str:
    return hmac.new(secret.encode(), timestamp.encode() + b"." + body, "sha256").hexdigest()


def _parts(header: str) -> tuple[str, list[str]] | None:
    """The time and the signatures. None where either is missing, malformed or too often there; other parts
    are a later form's.
    """
    if len(header) > MAX_HEADER:
        return None
    pairs = [part.strip().partition("=") for part in header.split(",")]
    times = [value for name, _, value in pairs if name == "t"]
    given = [value for name, _, value in pairs if name == "s"]
    # Eleven digits are the year 5138.
    if len(times) != 1 or not re.fullmatch("[0-9]{1,11}", times[0]):
        return None
    if not 1 <= len(given) <= MAX_SIGNATURES or not all(re.fullmatch("[0-9a-f]{64}", each) for each in given):
        return None
    return times[0], given
