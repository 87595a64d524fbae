"""Amounts in satoshi and fee rates. Neither is ever a float."""

import re
from dataclasses import dataclass
from decimal import Decimal
from typing import NewType, Self

from multisig.errors import InvalidAmount
from multisig.shown import AsWritten

Sats = NewType("Sats", int)

SATS_PER_BTC = 100_000_000
# Consensus: no output and no sum of outputs may exceed it (Bitcoin Core, consensus/amount.h).
MAX_MONEY = Sats(21_000_000 * SATS_PER_BTC)

# Plain decimal notation: no sign, exponent, leading zero, grouping, or digits beyond ASCII (P21).
_BTC = re.compile(r"(0|[1-9][0-9]{0,7})(?:\.([0-9]{1,8}))?", re.ASCII)


def sats(value: int) -> Sats:
    """`value` satoshi, 0 to MAX_MONEY. Raises InvalidAmount."""
    if type(value) is not int:
        raise InvalidAmount("An amount in satoshi is a whole number.")
    if not 0 <= value <= MAX_MONEY:
        raise InvalidAmount("The amount is below zero or above 21 million bitcoin.")
    return Sats(value)


def parse_btc(text: str) -> Sats:
    """Exact satoshi of a decimal amount in bitcoin such as "0.00012345". Raises InvalidAmount."""
    match = _BTC.fullmatch(text)
    if "," in text:
        raise InvalidAmount("The amount has a comma. Write it with a point, as in 0.5.")
    if match is None:
        raise InvalidAmount("The amount is not a plain decimal number of bitcoin with at most eight places.")
    whole, fraction = match[1], match[2] or ""
    return sats(int(whole) * SATS_PER_BTC + int(fraction.ljust(8, "0")))


def format_btc(amount: Sats) -> str:
    """Bitcoin with all eight places: "0.00012345"."""
    whole, fraction = divmod(sats(amount), SATS_PER_BTC)
    return f"{whole}.{fraction:08d}"


@dataclass(frozen=True, order=True, repr=False)
class FeeRate(AsWritten):
    """A fee rate in satoshi per 1,000 virtual bytes, as Bitcoin Core counts it. Raises InvalidAmount."""

    sat_per_kvb: int

    def __post_init__(self) -> None:
        sats(self.sat_per_kvb)

    @classmethod
    def from_sat_per_vb(cls, rate: Decimal | int) -> Self:
        """From sat/vB with at most three decimal places. Raises InvalidAmount."""
        if isinstance(rate, bool) or not isinstance(rate, Decimal | int):
            raise InvalidAmount("A fee rate is a decimal or whole number, never a float.")
        exact = Decimal(rate)
        # The bound comes before any arithmetic: a huge exponent would need a huge amount of memory.
        if not exact.is_finite() or not 0 <= exact <= MAX_MONEY // 1000:
            raise InvalidAmount("The fee rate is out of range.")
        exponent = exact.as_tuple().exponent
        if not isinstance(exponent, int) or exponent < -3:
            raise InvalidAmount("A fee rate has at most three decimal places in sat/vB.")
        return cls(int(exact.scaleb(3)))

    @classmethod
    def of(cls, fee: Sats, vsize: int) -> Self:
        """The rate that `fee` pays over `vsize` virtual bytes, rounded down."""
        if vsize <= 0:
            raise InvalidAmount("A fee rate needs a size above zero.")
        return cls(sats(fee) * 1000 // vsize)

    @property
    def sat_per_vb(self) -> Decimal:
        return Decimal(self.sat_per_kvb) / 1000

    def fee_for(self, vsize: int) -> Sats:
        """The least whole fee that reaches this rate over `vsize` virtual bytes."""
        if vsize < 0:
            raise InvalidAmount("A size is not negative.")
        return sats(-(-self.sat_per_kvb * vsize // 1000))

    def __str__(self) -> str:
        return f"{self.sat_per_vb.normalize():f} sat/vB"
