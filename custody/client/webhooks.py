"""For a program that receives webhooks: is this delivery the platform's, and what does it say?"""

from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta

from pydantic import ValidationError

from custody.schemas.webhooks import TOLERANCE, WebhookEvent, is_genuine


class NotGenuine(Exception):
    """Not signed with the webhook's secret, or not now. Answer 400, and do nothing else."""


def _now() -> datetime:
    return datetime.now(UTC)


def verify(
    headers: Mapping[str, str],
    body: bytes,
    secret: str,
    *,
    tolerance: timedelta = TOLERANCE,
    clock: Callable[[], datetime] = _now,
) -> WebhookEvent:
    """The event of a delivery. Raises NotGenuine.

    ``headers``: of the request. ``body``: the bytes as received, before they are read as JSON. Deliveries
    come at least once: keep each event's ``id`` for a month, and answer one that is known already without
    acting.
    """
    if not is_genuine(headers, body, secret, clock(), tolerance):
        raise NotGenuine(
            "The delivery is not signed with this webhook's secret, or not within the tolerance."
        )
    try:
        return WebhookEvent.model_validate_json(body)
    except ValidationError:
        raise NotGenuine("The delivery is signed, but its body is no event.") from None
