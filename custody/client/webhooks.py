"""For a program that receives webhooks: is this delivery the platform's, and what does it say?"""

import hmac
import re
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Final

from pydantic import ValidationError

from custody.schemas.webhooks import ID_HEADER, SIGNATURE_HEADER, TIMESTAMP_HEADER, WebhookEvent, signature_of

TOLERANCE: Final = timedelta(minutes=5)
MAX_HEADER: Final = 500


class NotGenuine(Exception):
    """Not signed with the webhook's secret, or not now. Answer 400, and do nothing else."""


def verify(
    headers: Mapping[str, str],
    body: bytes,
    secret: str,
    *,
    tolerance: timedelta = TOLERANCE,
    clock: Callable[[], datetime] = lambda: datetime.now(UTC),
) -> WebhookEvent:
    """The event of a delivery. Raises NotGenuine, and ValueError for what is no secret.

    ``headers``: of the request, their names in any case. ``body``: the bytes as received, before they are
    read as JSON. Deliveries come at least once: keep each event's ``id`` for a month, and answer one that is
    known already without acting.
    """
    named = {name.lower(): value for name, value in headers.items()}
    event_id, timestamp, given = (
        named.get(name, "") for name in (ID_HEADER, TIMESTAMP_HEADER, SIGNATURE_HEADER)
    )
    is_signed = False
    # Eleven digits are the year 5138.
    if len(event_id + given) <= MAX_HEADER and re.fullmatch("[0-9]{1,11}", timestamp):
        wanted = signature_of(secret, event_id, timestamp, body).encode()
        # Always all of them: the time that it takes does not depend on which one matches.
        matches = [hmac.compare_digest(wanted, each.encode()) for each in given.split(" ")]
        is_late = abs(clock() - datetime.fromtimestamp(int(timestamp), UTC)) > tolerance
        is_signed = any(matches) and not is_late
    if not is_signed:
        raise NotGenuine(
            "The delivery is not signed with this webhook's secret, or not within the tolerance."
        )
    try:
        return WebhookEvent.model_validate_json(body)
    except ValidationError:
        raise NotGenuine("The delivery is signed, but its body is no event.") from None
