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
from multisig import Sats


class Candidate(NamedTuple):
    """A coin and what decides its tier. `confirmations` is 0 in the mempool; `own_change`: it is change of a
    transaction of ours.
    """

    txid: str
    vout: int
    amount: Sats
    confirmations: int
    own_change: bool


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
