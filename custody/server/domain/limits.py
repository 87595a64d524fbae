"""What a spending limit lets through. Amounts in satoshi; no clock and no database.

A movement is counted from the moment it is proposed: its amount is reserved, and given back when the proposal ends
without its transaction reaching the network. Versions of one movement (a payment and its fee bumps) spend the same
coins, so that one of them at most is mined: the largest that still can be is what they count for, once.
"""

from dataclasses import dataclass, replace

from custody.server.domain.cycles import Cycle
from multisig.units import SATS_PER_BTC, Sats


@dataclass(frozen=True)
class SpendingPolicy:
    """A limit for each cycle. For a vault that is not ``is_per_cycle`` it bounds each movement, and the cycle informs."""

    limit: Sats
    cycle: Cycle
    is_per_cycle: bool = True


@dataclass(frozen=True)
class Usage:
    """What a cycle holds when a movement is proposed: ``others``, and ``held`` by earlier versions of the same movement.

    The sum may be more than there are coins: the same ones can move again and again.
    """

    others: int
    held: int = 0

    @property
    def used(self) -> int:
        return self.others + self.held


def fits(policy: SpendingPolicy, usage: Usage, requested: int) -> bool:
    """Equal to the limit passes, one satoshi more does not (P19).

    A version that raises nothing passes too, though the limit be lower by now: what it stands for was let through, and
    keeps its reservation (P22).
    """
    if requested <= usage.held:
        return True
    before = usage.others if policy.is_per_cycle else 0
    return before + requested <= policy.limit


def of_token(policy: SpendingPolicy, decimals: int) -> SpendingPolicy:
    """The same figure in whole tokens, as a limit of raw units: until a token has limits of its own, the main figure measures it.

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
