"""When to try again: jobs, and deliveries of webhooks."""

from datetime import datetime, timedelta
from hashlib import sha256
from typing import Final

FIRST_RETRY: Final = timedelta(seconds=1)
# What waits for a node or a mail server that is back is done within this.
MAX_RETRY: Final = timedelta(seconds=60)
# Beyond this many doublings the longest delay is reached anyway.
_MAX_DOUBLINGS: Final = 10


def delay_after(attempts: int, key: str) -> timedelta:
    """After so many tries, one at least. Between a half and all of a delay that doubles: what failed
    together, because a node was away, does not come back together. Which part of it follows from the key, so
    that nothing here is random.
    """
    whole = min(MAX_RETRY, FIRST_RETRY * float(2 ** min(attempts - 1, _MAX_DOUBLINGS)))
    spread = int.from_bytes(sha256(f"{key}:{attempts}".encode()).digest()[:4])
    return whole * (0.5 + spread / 2**33)


# Soon at first, for a restart; then less and less often. Eleven attempts in three days, as Stripe's and
# Svix's deliveries.
RETRIES: Final = (
    timedelta(seconds=10),
    timedelta(minutes=1),
    timedelta(minutes=5),
    timedelta(minutes=30),
    timedelta(hours=2),
    timedelta(hours=5),
    timedelta(hours=10),
    timedelta(hours=14),
    timedelta(hours=20),
    timedelta(hours=20),
)
GIVEN_UP_AFTER: Final = timedelta(days=3)
# A receiver that failed at everything for so long, while something was tried, is told nothing more.
DISABLED_AFTER: Final = timedelta(days=5)
SHORTEST_PEACE: Final = timedelta(seconds=5)
# A refusal costs a worker nothing, waiting ten seconds: for a name, a connection or an answer, whatever it is
# in the end.
HANGS_FROM: Final = timedelta(seconds=2)
AFTER_A_HANG: Final = timedelta(minutes=1)
LONGEST_PEACE: Final = timedelta(hours=1)


def next_attempt(attempts: int, queued_at: datetime, now: datetime) -> datetime | None:
    """After so many attempts that failed, one at least; None where it is given up."""
    if attempts > len(RETRIES):
        return None
    following = now + RETRIES[attempts - 1]
    return following if following <= queued_at + GIVEN_UP_AFTER else None


def quiet_until(failing_since: datetime, now: datetime, *, hung: bool = False) -> datetime:
    """Longer, the longer it fails: it would be asked again with every event there is."""
    least = AFTER_A_HANG if hung else SHORTEST_PEACE
    return now + min(LONGEST_PEACE, max(least, (now - failing_since) / 8))


def is_hopeless(failing_since: datetime, now: datetime) -> bool:
    return now - failing_since >= DISABLED_AFTER
