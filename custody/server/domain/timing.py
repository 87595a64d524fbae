"""Lock time against fee sniping, and how long a proposal waits for its signatures."""

from collections.abc import Iterator
from datetime import timedelta
from itertools import chain, count

from custody.server.domain.selection import RandomSource

# Core, wallet/spend.cpp: a tip older than this says that we are behind, and a lock time would only tell on
# us.
MAX_TIP_AGE_SECONDS = 8 * 60 * 60
# One time in ten up to a hundred blocks back, so that late signers do not stand out.
BACKDATE_ONE_IN = 10
BACKDATE_BLOCKS = 100
# Consensus, LOCKTIME_THRESHOLD: from it on a lock time is a time, this one in 1985.
FIRST_TIME = 500_000_000
# BIP-125: below 0xfffffffe signals that the fee may be raised; the lock time counts and BIP-68 does not.
SEQUENCE = 0xFFFFFFFD
# BitGo lets a pending approval live for weeks; two are enough for a signer's holiday.
PROPOSAL_LIFETIME = timedelta(days=14)


def choose_locktime(tip_height: int, tip_age_seconds: float, rng: RandomSource) -> int:
    """The height before which the transaction may not be mined; 0 for none."""
    if tip_age_seconds > MAX_TIP_AGE_SECONDS:
        return 0
    if rng.randrange(BACKDATE_ONE_IN) == 0:
        return max(0, tip_height - rng.randrange(BACKDATE_BLOCKS))
    return tip_height


def other_locktimes(tip_height: int) -> Iterator[int]:
    """More lock times than replacements ever use, none in the future: the heights from the tip down, of which
    the first hundred look like other wallets'; then, for a chain that is a few blocks long, times that are
    long past.
    """
    return chain(range(tip_height, -1, -1), count(FIRST_TIME))
