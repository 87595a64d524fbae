"""When to try again: jobs, and deliveries of webhooks."""

from datetime import datetime, timedelta
from hashlib import sha256
from typing import Final

FIRST_RETRY: Final = timedelta(seconds=1)
# After a node or a mail server is back, waiting jobs run within this time.
MAX_RETRY: Final = timedelta(seconds=60)
# Beyond this many doublings the longest delay is reached anyway.
_MAX_DOUBLINGS: Final = 10


def delay_after(attempts: int, key: str) -> timedelta:
    """The delay after ``attempts`` tries, one at least: between half and all of a delay that doubles, so that
    jobs that failed together are spread. The fraction is derived from ``key`` and ``attempts``.
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
# A webhook all of whose deliveries failed for this long is disabled.
DISABLED_AFTER: Final = timedelta(days=5)
SHORTEST_PAUSE: Final = timedelta(seconds=5)
# An attempt that took longer than this counts as hung: unlike a refusal, it keeps a worker waiting for a
# name, a connection or an answer.
HANGS_FROM: Final = timedelta(seconds=2)
AFTER_A_HANG: Final = timedelta(minutes=1)
LONGEST_PAUSE: Final = timedelta(hours=1)


def next_attempt(attempts: int, queued_at: datetime, now: datetime) -> datetime | None:
    """When to try again after ``attempts`` failures, one at least; None where the delivery is given up."""
    if attempts > len(RETRIES):
        return None
    following = now + RETRIES[attempts - 1]
    return following if following <= queued_at + GIVEN_UP_AFTER else None


def quiet_until(failing_since: datetime, now: datetime, *, hung: bool = False) -> datetime:
    """Until when nothing is delivered to a failing webhook: the longer it fails, the longer. Without this
    every new event would call it.
    """
    least = AFTER_A_HANG if hung else SHORTEST_PAUSE
    return now + min(LONGEST_PAUSE, max(least, (now - failing_since) / 8))


def is_hopeless(failing_since: datetime, now: datetime) -> bool:
    return now - failing_since >= DISABLED_AFTER
