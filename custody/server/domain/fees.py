"""What a movement may cost: the rate for a priority, the floor below which nodes do not relay, and the cap."""

from custody.schemas.common import Priority
from multisig.units import FeeRate, Sats

# Core's relay floor before release 30; later nodes take less.
FLOOR = FeeRate(1_000)
# The highest rate ever needed to enter a block is about a thousand sat/vB (2017, 2024): above it is a slip of the pen.
CEILING = FeeRate(1_000_000)
# Core's DEFAULT_TRANSACTION_MAXFEE.
MAX_FEE = Sats(10_000_000)
# Where no estimate is to be had (a fresh regtest): twice the floor.
FALLBACK = FeeRate(2_000)
TARGET_BLOCKS: dict[Priority, int] = {"high": 2, "medium": 6, "low": 72}
STANDARD_PRIORITY: Priority = "medium"


def bounded(estimate: FeeRate | None) -> FeeRate:
    """An estimate kept between floor and ceiling; the fallback where there is none."""
    rate = FALLBACK if estimate is None else estimate
    return FeeRate(min(max(rate.sat_per_kvb, FLOOR.sat_per_kvb), CEILING.sat_per_kvb))
