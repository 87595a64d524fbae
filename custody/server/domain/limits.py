"""Spending limits and their cycles, which reset at 00:00 UTC. Amounts in satoshi; no clock and no database.

A movement is counted from the moment it is proposed: its amount is reserved, and given back when the proposal
ends without its transaction reaching the network. Versions of one movement (a payment and its fee bumps)
spend the same coins, so that one of them at most is mined: the largest that still can be is what they count
for, once.
"""

from calendar import monthrange
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, time, timedelta
from typing import Literal

from multisig.units import SATS_PER_BTC, Sats

CyclePeriod = Literal["W", "M"]


@dataclass(frozen=True)
class Cycle:
    """How often a counter begins anew, and on which day. Raises ValueError for a day that the period does not
    have.
    """

    period: CyclePeriod
    day: int

    def __post_init__(self) -> None:
        if not 1 <= self.day <= (7 if self.period == "W" else 31):
            raise ValueError(
                "a cycle starts on a day from 1 to 7 (Monday is 1), or from 1 to 31 of the month"
            )

    def start(self, now: datetime) -> datetime:
        return cycle_start(now, self.period, self.day)

    def next_reset(self, now: datetime) -> datetime:
        return next_reset(now, self.period, self.day)

    @property
    def in_words(self) -> str:
        return "week" if self.period == "W" else "month"

    def __str__(self) -> str:
        return f"{self.period} from day {self.day}"


def cycle_start(now: datetime, period: CyclePeriod, day: int) -> datetime:
    """The last reset at or before `now`. `day`: 1–7 (Monday = 1) for W; 1–31, clamped to the month's end, for
    M.
    """
    today = now.astimezone(UTC).date()
    start = _weekly_start(today, day) if period == "W" else _monthly_start(today, day)
    return datetime.combine(start, time(), UTC)


def next_reset(now: datetime, period: CyclePeriod, day: int) -> datetime:
    """The first reset after `now`."""
    start = cycle_start(now, period, day).date()
    following = start + timedelta(days=7) if period == "W" else _reset_day(*_month_after(start), day)
    return datetime.combine(following, time(), UTC)


def _weekly_start(today: date, day: int) -> date:
    if not 1 <= day <= 7:
        raise ValueError("a weekly cycle starts on a day from 1 (Monday) to 7")
    return today - timedelta(days=(today.isoweekday() - day) % 7)


def _monthly_start(today: date, day: int) -> date:
    if not 1 <= day <= 31:
        raise ValueError("a monthly cycle starts on a day from 1 to 31")
    this_month = _reset_day(today.year, today.month, day)
    if this_month <= today:
        return this_month
    before = today.replace(day=1) - timedelta(days=1)
    return _reset_day(before.year, before.month, day)


def _reset_day(year: int, month: int, day: int) -> date:
    return date(year, month, min(day, monthrange(year, month)[1]))


def _month_after(moment: date) -> tuple[int, int]:
    return (moment.year + 1, 1) if moment.month == 12 else (moment.year, moment.month + 1)


@dataclass(frozen=True)
class SpendingPolicy:
    """A limit for each cycle. For a vault that is not ``is_per_cycle`` it bounds each movement, and the cycle
    informs.
    """

    limit: Sats
    cycle: Cycle
    is_per_cycle: bool = True


@dataclass(frozen=True)
class Usage:
    """What a cycle holds when a movement is proposed: ``others``, and ``held`` by earlier versions of the
    same movement.

    The sum may be more than there are coins: the same ones can move again and again.
    """

    others: int
    held: int = 0

    @property
    def used(self) -> int:
        return self.others + self.held


def policy_words(policy: SpendingPolicy) -> str:
    """As the audit log has it: ``0.50000000 BTC a cycle, M from day 1``."""
    bounds = "cycle" if policy.is_per_cycle else "movement"
    return f"{in_btc(policy.limit)} BTC a {bounds}, {policy.cycle}"


def fits(policy: SpendingPolicy, usage: Usage, requested: int) -> bool:
    """Equal to the limit passes, one satoshi more does not (P19).

    A version that raises nothing passes too, though the limit be lower by now: what it stands for was let
    through, and keeps its reservation (P22).
    """
    if requested <= usage.held:
        return True
    before = usage.others if policy.is_per_cycle else 0
    return before + requested <= policy.limit


def of_token(policy: SpendingPolicy, decimals: int) -> SpendingPolicy:
    """The same figure in whole tokens, as a limit of raw units: until a token has limits of its own, the main
    figure measures it.

    Rounded down, which lets through exactly the same whole numbers of raw units.
    """
    return replace(policy, limit=Sats(policy.limit * 10**decimals // SATS_PER_BTC))


def in_tokens(amount: int, decimals: int) -> str:
    """Whole tokens with all their decimals, also of a sum that no token ever has."""
    whole, fraction = divmod(amount, 10**decimals)
    return f"{whole}.{fraction:0{decimals}d}" if decimals else str(whole)


def is_within(given: SpendingPolicy, own: SpendingPolicy) -> bool:
    """Whether one limit lets through nothing that the other would not: no more, and no sooner again."""
    if given.limit == 0:
        return True
    return given.limit <= own.limit and not (given.cycle.period == "W" and own.cycle.period == "M")


def unused_of(limit: int, used: int) -> int:
    """Never below zero: a limit may be lowered under what is used already."""
    return max(0, limit - used)


def in_btc(amount: int) -> str:
    """Bitcoin with all eight places; unlike ``format_btc`` also of a sum above 21 million."""
    whole, fraction = divmod(amount, SATS_PER_BTC)
    return f"{whole}.{fraction:08d}"
