"""When to try again what did not work: later and later, and not all at the same moment."""

from datetime import timedelta
from hashlib import sha256
from typing import Final

FIRST_RETRY: Final = timedelta(seconds=1)
# What waits for a node or a mail server that is back is done within this.
MAX_RETRY: Final = timedelta(seconds=60)
# Beyond this many doublings the longest delay is reached anyway.
_MAX_DOUBLINGS: Final = 10


def delay_after(attempts: int, key: str) -> timedelta:
    """After so many tries, one at least. Between a half and all of a delay that doubles: what failed together, because a
    node was away, does not come back together. Which part of it follows from the key, so that nothing here is random.
    """
    whole = min(MAX_RETRY, FIRST_RETRY * float(2 ** min(attempts - 1, _MAX_DOUBLINGS)))
    spread = int.from_bytes(sha256(f"{key}:{attempts}".encode()).digest()[:4])
    return whole * (0.5 + spread / 2**33)
