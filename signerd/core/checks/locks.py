"""A transaction that cannot be mined for a long time: its signature can be kept and used later (S24, S30).

A lock stands in the transaction (nLockTime: a height or a time) or in an input (BIP-68: the age of its coin,
in blocks or in units of 512 seconds). What is far is the same for all of them.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from types import MappingProxyType

from multisig import Network, RelativeLock, relative_lock
from signerd.core.checks.case import Answer, InspectedCase, allow, hold

# BIP-65 and consensus: below it nLockTime is a height, from it on a time.
LOCKTIME_THRESHOLD = 500_000_000
# Where every input has it, nLockTime holds nothing (consensus, IsFinalTx).
FINAL_SEQUENCE = 0xFFFFFFFF
# Wallets lock to the tip, so that miners gain nothing by mining an old block again; up to a day more is
# usual.
BLOCKS_AHEAD = 144
TIME_AHEAD = timedelta(days=1)
USUAL_BLOCK = timedelta(minutes=10)


@dataclass(frozen=True)
class Pace:
    """How high a chain can be: it was at ``height`` at ``at``, and a block takes ``seconds`` at least, on
    average.
    """

    height: int
    at: datetime
    seconds: int

    def highest(self, now: datetime) -> int:
        return self.height + max(0, int((now - self.at).total_seconds()) // self.seconds)


# No chain is asked, and the platform's word would be no check: the height is judged by the clock. A
# difficulty that rises brings blocks a few percent before their ten minutes; testnet4 lets whole storms of
# them pass (BIP-94).
PACES: Mapping[Network, Pace] = MappingProxyType(
    {
        # The halving block of 2024.
        Network.MAINNET: Pace(840_000, datetime(2024, 4, 20, tzinfo=UTC), 570),
        Network.TESTNET4: Pace(0, datetime(2024, 5, 3, tzinfo=UTC), 200),
        Network.SIGNET: Pace(0, datetime(2020, 9, 1, tzinfo=UTC), 570),
    }
)
# A local chain has no pace; a test chain is not as high as this.
HIGHEST_REGTEST = 100_000


def locktime(case: InspectedCase) -> Answer:
    """A lock far ahead of the chain is held until it is named: the payment leaves when the plan may be
    another.
    """
    absolute, relative = _absolute(case), _relative(case)
    if relative is None:
        return absolute
    sentence = f"{absolute.sentence} {relative.sentence}" if absolute.acknowledge else relative.sentence
    return hold(sentence, **{**absolute.figures, **relative.figures})


def _relative(case: InspectedCase) -> Answer | None:
    """S30: held as an absolute lock is. How old a coin is, only a chain could say: its age is taken to be
    nothing.

    None where no coin has to wait for long.
    """
    tx = case.psbt.tx
    locks = (relative_lock(item.sequence, tx.version) for item in tx.inputs)
    far = [lock for lock in locks if lock is not None and _is_far(lock)]
    if not far:
        return None
    longest = max(far, key=lambda lock: lock.time + lock.blocks * USUAL_BLOCK)
    return hold(
        f"It cannot be mined before a coin that it spends is {longest} old, which may be far ahead: what you "
        "sign now could be "
        "sent then.",
        blocks=longest.blocks,
        seconds=int(longest.time.total_seconds()),
    )


def _is_far(lock: RelativeLock) -> bool:
    return lock.blocks > BLOCKS_AHEAD or lock.time > TIME_AHEAD


def _absolute(case: InspectedCase) -> Answer:
    lock = case.psbt.tx.locktime
    if lock == 0 or all(item.sequence == FINAL_SEQUENCE for item in case.psbt.tx.inputs):
        return allow("No locktime holds it back.", locktime=lock)
    if lock >= LOCKTIME_THRESHOLD:
        return _time_lock(lock, case)
    if lock > _highest(case) + BLOCKS_AHEAD:
        return hold(
            f"It cannot be mined before block {lock:,}, which is far ahead: what you sign now could be sent "
            "then.",
            locktime=lock,
        )
    return allow(f"It may be mined from block {lock:,} on, which is not far ahead.", locktime=lock)


def _time_lock(lock: int, case: InspectedCase) -> Answer:
    # Every 32-bit number of seconds is a date before the year 2107.
    when = datetime.fromtimestamp(lock, UTC)
    moment = case.around.moment
    if moment is None or when > moment.now + TIME_AHEAD:
        return hold(
            f"It cannot be mined before {when:%Y-%m-%d %H:%M} UTC, which is far ahead: what you sign now "
            "could "
            "be sent then.",
            locktime=lock,
        )
    return allow(f"It may be mined from {when:%Y-%m-%d %H:%M} UTC on, which is not far ahead.", locktime=lock)


def _highest(case: InspectedCase) -> int:
    """Without a clock the height is that of the table: a lock is then held rather than let pass."""
    pace, moment = PACES.get(case.around.network), case.around.moment
    if pace is None:
        return HIGHEST_REGTEST
    return pace.height if moment is None else pace.highest(moment.now)
