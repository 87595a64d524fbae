"""Spending limits and their cycles, which reset at 00:00 UTC. Amounts in satoshi.

A movement counts from the moment it is proposed: its amount is reserved, and released when the proposal ends
unsent. The versions of one movement (a payment and its fee bumps) spend the same coins, so at most one is
mined: together they count once, as the largest that can still be mined.
"""

from calendar import monthrange
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, time, timedelta
from typing import Any, Literal

from custody.common.text import btc
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
        """The last reset at or before `now`. A day that the month does not have is the month's last."""
        today = now.astimezone(UTC).date()
        if self.period == "W":
            return _midnight(today - timedelta(days=(today.isoweekday() - self.day) % 7))
        this_month = self._day_of(today)
        before = today.replace(day=1) - timedelta(days=1)
        return _midnight(this_month if this_month <= today else self._day_of(before))

    def next_reset(self, now: datetime) -> datetime:
        """The first reset after `now`."""
        start = self.start(now).date()
        if self.period == "W":
            return _midnight(start + timedelta(days=7))
        return _midnight(self._day_of(start.replace(day=1) + timedelta(days=31)))

    def _day_of(self, month: date) -> date:
        """The cycle's day in the month of that day."""
        return month.replace(day=min(self.day, monthrange(month.year, month.month)[1]))


def _midnight(day: date) -> datetime:
    return datetime.combine(day, time(), UTC)


@dataclass(frozen=True)
class SpendingPolicy:
    """A limit for each cycle. Where ``is_per_cycle`` is false (vaults only) it bounds each single movement,
    and the cycle is for information only.
    """

    limit: Sats
    cycle: Cycle
    is_per_cycle: bool = True


@dataclass(frozen=True)
class Usage:
    """What counts already when a movement is proposed: ``held`` by earlier versions of the same movement,
    ``others`` by all else. The sum may exceed the balance: the same coins can move repeatedly.
    """

    others: int
    held: int = 0

    @property
    def used(self) -> int:
        return self.others + self.held


def policy_facts(policy: SpendingPolicy) -> dict[str, Any]:
    """As the audit log stores it."""
    return {
        "sats": policy.limit,
        "per_cycle": policy.is_per_cycle,
        "cycle_period": policy.cycle.period,
        "cycle_day": policy.cycle.day,
    }


def policy_words(facts: Mapping[str, Any]) -> str:
    """As the audit log describes it: ``0.50000000 BTC a cycle, M from day 1``."""
    bounds = "cycle" if facts["per_cycle"] else "movement"
    return f"{btc(facts['sats'])} BTC a {bounds}, {facts['cycle_period']} from day {facts['cycle_day']}"


def fits(policy: SpendingPolicy, usage: Usage, requested: int) -> bool:
    """A sum that equals the limit passes, one satoshi more does not (P19). A version that does not raise the
    amount passes even where the limit was lowered since: it keeps its movement's reservation (P22).
    """
    if requested <= usage.held:
        return True
    before = usage.others if policy.is_per_cycle else 0
    return before + requested <= policy.limit


def of_token(policy: SpendingPolicy, decimals: int) -> SpendingPolicy:
    """The limit for a token that has none of its own: the same figure in whole tokens, in raw units, rounded
    down.
    """
    return replace(policy, limit=Sats(policy.limit * 10**decimals // SATS_PER_BTC))


def in_tokens(amount: int, decimals: int) -> str:
    """Raw units as whole tokens with all their decimals. A sum may exceed the token's maximum."""
    whole, fraction = divmod(amount, 10**decimals)
    return f"{whole}.{fraction:0{decimals}d}" if decimals else str(whole)


def is_within(given: SpendingPolicy, own: SpendingPolicy) -> bool:
    """Whether ``given`` allows nothing that ``own`` does not: no larger amount, and the same cycle. A member
    who goes over to another cycle begins again at 0, whichever of the two is longer.
    """
    return given.limit == 0 or (given.limit <= own.limit and given.cycle == own.cycle)


def unused_of(limit: int, used: int) -> int:
    """Zero where the limit was lowered below what is used already."""
    return max(0, limit - used)
