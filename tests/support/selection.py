"""Coin selection over coins in memory, which the database's statements are compared with."""

from collections.abc import Sequence
from typing import NamedTuple

from custody.server.rules.selection import (
    FOREIGN_DEPTH,
    OWN_CHANGE_DEPTH,
    Plan,
    RandomSource,
    Selection,
    Tier,
    select_from,
)
from multisig import FeeRate, Sats

# 2-of-3 P2WSH: 104.5 vB for an input, 43 for an output.
BASE, INPUT, OUTPUT = 54, 105, 43
DUST = 330


class Candidate(NamedTuple):
    """A coin and what decides its tier. `confirmations` is 0 in the mempool; `own_change`: it is change of a
    transaction of ours.
    """

    txid: str
    vout: int
    amount: Sats
    confirmations: int
    own_change: bool


def candidate(number: int, amount: int, confirmations: int = 6, *, own_change: bool = False) -> Candidate:
    return Candidate(f"{number:064x}", 0, Sats(amount), confirmations, own_change)


def vsize_of(inputs: int, with_change: bool) -> int:
    return BASE + INPUT * inputs + OUTPUT * with_change


def plan_for(target: int, rate: int = 2_000) -> Plan:
    """``rate`` in sat/kvB."""
    price = FeeRate(rate)
    return Plan(Sats(target), price, vsize_of, Sats(max(DUST, price.fee_for(INPUT))))


def select_coins(
    candidates: Sequence[Candidate], plan: Plan, rng: RandomSource
) -> Selection[Candidate] | None:
    """Selects from the first tier that suffices; None where all coins are too few."""
    for tier in Tier:
        chosen = select_from([coin for coin in candidates if _holds(tier, coin)], plan, rng)
        if chosen is not None:
            return chosen
    return None


def _holds(tier: Tier, coin: Candidate) -> bool:
    match tier:
        case Tier.DEEP:
            return coin.confirmations >= (OWN_CHANGE_DEPTH if coin.own_change else FOREIGN_DEPTH)
        case Tier.CONFIRMED:
            return coin.confirmations >= 1
        case Tier.OWN_UNCONFIRMED:
            return coin.confirmations >= 1 or coin.own_change
