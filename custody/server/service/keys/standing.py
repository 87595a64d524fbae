"""How a key stands."""

from typing import cast

from custody.schemas.keys import RevokedReason
from custody.server.store.models import Key


def reason_of(key: Key) -> RevokedReason | None:
    """Why it was revoked; None while it is active."""
    return cast("RevokedReason | None", key.revoked_reason)
