"""Transactions that cannot be mined for a long time: their signature could be used much later (S24, S30).

A lock is in the transaction (nLockTime: a height or a time) or in an input (BIP-68: the age of its coin, in
blocks or units of 512 seconds).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from types import MappingProxyType

from multisig import Network, relative_lock
from multisig.transaction import LOCKTIME_THRESHOLD
from signerd.core.checks.case import InspectedCase, Verdict, allow, hold

# Wallets lock to the tip against fee sniping; up to a day more is usual.
BLOCKS_AHEAD = 144
TIME_AHEAD = timedelta(days=1)
USUAL_BLOCK = timedelta(minutes=10)


@dataclass(frozen=True)
class ChainRate:
    """An upper bound of a chain's height: ``height`` at ``at``, and then a block each ``seconds``."""

    height: int
    at: datetime
    seconds: int

    def highest(self, now: datetime) -> int:
        return self.height + max(0, int((now - self.at).total_seconds()) // self.seconds)


# The height is estimated by the clock: no chain is asked, and the platform is not trusted. With rising
# difficulty, blocks come a few percent faster than ten minutes; testnet4 has block storms (BIP-94).
CHAIN_RATES: Mapping[Network, ChainRate] = MappingProxyType(
    {
        # The halving block of 2024.
        Network.MAINNET: ChainRate(840_000, datetime(2024, 4, 20, tzinfo=UTC), 570),
        Network.TESTNET4: ChainRate(0, datetime(2024, 5, 3, tzinfo=UTC), 200),
        Network.SIGNET: ChainRate(0, datetime(2020, 9, 1, tzinfo=UTC), 570),
    }
)
# A regtest chain has no rate; none is as high as this.
HIGHEST_REGTEST = 100_000


def locktime(case: InspectedCase) -> Verdict:
    """Holds a lock far ahead of the chain: the payment could be sent when it is no longer wanted."""
    absolute, relative = _absolute(case), _relative(case)
    if relative is None:
        return absolute
    sentence = f"{absolute.sentence} {relative.sentence}" if absolute.acknowledge else relative.sentence
    return hold(sentence, **{**absolute.figures, **relative.figures})


def _relative(case: InspectedCase) -> Verdict | None:
    """S30: a relative lock. The age of a coin is not known here, and taken as zero. None where no lock is
    long.
    """
    tx = case.psbt.tx
    locks = (relative_lock(item.sequence, tx.version) for item in tx.inputs)
    far = [lock for lock in locks if lock and (lock.blocks > BLOCKS_AHEAD or lock.time > TIME_AHEAD)]
    if not far:
        return None
    longest = max(far, key=lambda lock: lock.time + lock.blocks * USUAL_BLOCK)
    return hold(
        f"It cannot be mined before a coin that it spends is {longest} old, which may be far ahead: what "
        "you sign now could be sent then.",
        blocks=longest.blocks,
        seconds=int(longest.time.total_seconds()),
    )


def _absolute(case: InspectedCase) -> Verdict:
    lock, moment = case.psbt.tx.locktime, case.context.moment
    if not case.psbt.tx.locktime_holds:
        return allow("No locktime holds it back.", locktime=lock)
    what, is_far = f"block {lock:,}", lock > _highest(case) + BLOCKS_AHEAD
    if lock >= LOCKTIME_THRESHOLD:
        # Every 32-bit number of seconds is a date before the year 2107.
        when = datetime.fromtimestamp(lock, UTC)
        what, is_far = f"{when:%Y-%m-%d %H:%M} UTC", moment is None or when > moment + TIME_AHEAD
    if is_far:
        return hold(
            f"It cannot be mined before {what}, which is far ahead: what you sign now could be sent then.",
            locktime=lock,
        )
    return allow(f"It may be mined from {what} on, which is not far ahead.", locktime=lock)


def _highest(case: InspectedCase) -> int:
    """Without a clock the table's height is used: a lock is then held."""
    rate, moment = CHAIN_RATES.get(case.context.network), case.context.moment
    if rate is None:
        return HIGHEST_REGTEST
    return rate.height if moment is None else rate.highest(moment)
