"""Fees: the rate for a priority, its floor and cap, and what a replacement has to pay."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from custody.schemas.common import Priority
from custody.server.rules.selection import CoinT, Plan, Selection
from multisig.units import FeeRate, Sats

# What every node takes; Core's DEFAULT_MIN_RELAY_TX_FEE before release 30.
FLOOR = FeeRate(1_000)
# The same since: where a node takes less, hardly any other passes it on.
LOWEST = FeeRate(100)
# The highest rate ever needed to enter a block is about a thousand sat/vB (2017, 2024): a higher rate is a
# typing error.
CEILING = FeeRate(1_000_000)
# Core's DEFAULT_TRANSACTION_MAXFEE.
MAX_FEE = Sats(10_000_000)
# Where the node has no estimate (a fresh regtest).
FALLBACK = FeeRate(2_000)
TARGET_BLOCKS: dict[Priority, int] = {"high": 2, "medium": 6, "low": 72}
STANDARD_PRIORITY: Priority = "medium"


def floor_of(least: FeeRate | None) -> FeeRate:
    """The least rate to propose. ``least``: what the node takes now, None where nobody can tell."""
    return FLOOR if least is None else min(max(least, LOWEST), CEILING)


def bounded(estimate: FeeRate | None, floor: FeeRate) -> FeeRate:
    """An estimate kept between floor and ceiling; the fallback where there is none."""
    return min(max(FALLBACK if estimate is None else estimate, floor), CEILING)


# BIP-125, rule 4: a replacement also pays for its own relay. Bitcoin Core asks for this rate before release
# 30, and for less since.
INCREMENTAL_RELAY = FeeRate(1_000)


@dataclass(frozen=True)
class PricedTransaction:
    """A transaction's fee and its virtual size in vB."""

    fee: Sats
    vsize: int


def least_fee(rivals: Iterable[PricedTransaction], vsize: int) -> Sats:
    """The least fee that replaces them all (BIP-125, rules 3 and 4): it also pays for its own relay, and its
    rate is higher than each of theirs.
    """
    own_relay = INCREMENTAL_RELAY.fee_for(vsize)
    fees = (max(rival.fee + own_relay, rival.fee * vsize // rival.vsize + 1) for rival in rivals)
    return Sats(max(fees, default=0))


def settle_replacement(
    coins: Sequence[CoinT], plan: Plan, rivals: Iterable[PricedTransaction], *, pays: bool
) -> Selection[CoinT] | None:
    """The change and the fee of a replacement that spends these coins; None where they do not suffice.

    ``pays``: there is an output beside the change. Without one there has to be change.
    """
    rivals = tuple(rivals)

    def price(*, with_change: bool) -> int:
        vsize = plan.vsize(len(coins), with_change)
        return max(plan.rate.fee_for(vsize), least_fee(rivals, vsize))

    fee, rest = price(with_change=True), sum(coin.amount for coin in coins) - plan.target
    if rest - fee >= plan.minimum_change:
        return Selection(tuple(coins), Sats(rest - fee), Sats(fee))
    if pays and rest >= price(with_change=False):
        return Selection(tuple(coins), Sats(0), Sats(rest))
    return None
