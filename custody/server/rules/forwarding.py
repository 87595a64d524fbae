"""Which of a profile's coins a forward spends, and how much reaches the vault. The caller fixes the fee, to
the satoshi.

Confirmed coins first, then the change of an earlier forward that itself spent confirmed coins alone, then,
where the caller allows it, unconfirmed deposits. The largest first: a fee that was named beforehand pays for
few inputs best.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from custody.server.errors import Dust, Invalid
from custody.server.rules.fees import CEILING, FLOOR, MAX_FEE
from custody.server.rules.selection import MAX_INPUTS, Candidate, largest_first
from multisig.units import FeeRate, Sats


@dataclass(frozen=True)
class ForwardTerms:
    """The request. ``amount`` is None for a sweep of all coins."""

    amount: Sats | None
    fee: Sats
    allow_unconfirmed: bool = False


@dataclass(frozen=True)
class Sizes:
    """``vsize(inputs, with_change)`` estimates the signed transaction in vB; below the two bounds an output
    is dust.
    """

    vsize: Callable[[int, bool], int]
    least_payment: Sats
    least_change: Sats


@dataclass(frozen=True)
class Allocation:
    """The coins to spend, the payment to the vault, and the change (0: none). The coins' sum is exactly
    payment + change + fee.
    """

    coins: tuple[Candidate, ...]
    payment: Sats
    change: Sats

    def vsize(self, sizes: Sizes) -> int:
        return sizes.vsize(len(self.coins), self.change > 0)


def require_sensible(wish: ForwardTerms, sizes: Sizes) -> None:
    """Checks what is wrong whatever the coins are (P48). Raises Invalid, Dust."""
    if wish.fee > MAX_FEE:
        raise _too_high(f"The fee of {wish.fee} sat is above the cap of {MAX_FEE} sat.")
    if wish.amount is None:
        return
    if wish.amount < sizes.least_payment:
        sentence = f"{wish.amount} sat is dust: a vault's address takes {sizes.least_payment} sat at least."
        raise Dust.at("/amount_sats", sentence, "dust")
    _require_less_than(wish.fee, wish.amount)


def allocate(pool: Sequence[Candidate], wish: ForwardTerms, sizes: Sizes) -> Allocation | None:
    """None where the coins do not suffice. ``pool``: all coins that may be spent, unconfirmed deposits
    included.

    Raises Invalid for a fee that makes no sense for these coins (P48), Dust for a payment or change that
    would be dust.
    """
    found = _sweep(pool, wish, sizes) if wish.amount is None else _fixed(pool, wish, wish.amount, sizes)
    if found is not None:
        _require_rate(wish.fee, found.vsize(sizes))
    return found


def _sweep(pool: Sequence[Candidate], wish: ForwardTerms, sizes: Sizes) -> Allocation | None:
    """All coins, or the largest where there are more than a transaction takes: a stranger's dust must not
    block a sweep.
    """
    *_, widest = _tiers(pool, allow_unconfirmed=wish.allow_unconfirmed)
    coins = tuple(widest[:MAX_INPUTS])
    if not coins:
        return None
    total = sum(coin.amount for coin in coins)
    payment = total - wish.fee
    if payment <= 0:
        raise _too_high(f"The fee of {wish.fee} sat is all of the {total} sat that there are, or more.")
    if payment < sizes.least_payment:
        sentence = (
            f"The fee of {wish.fee} sat leaves {payment} sat, and a vault's address takes "
            f"{sizes.least_payment} sat at least."
        )
        raise Dust.at("/fee_sats", sentence, "dust")
    _require_less_than(wish.fee, Sats(payment))
    return Allocation(coins, Sats(payment), Sats(0))


def _fixed(pool: Sequence[Candidate], wish: ForwardTerms, amount: Sats, sizes: Sizes) -> Allocation | None:
    left_over = 0
    for tier in _tiers(pool, allow_unconfirmed=wish.allow_unconfirmed):
        total = 0
        for count, coin in enumerate(tier[:MAX_INPUTS], start=1):
            total += coin.amount
            change = total - amount - wish.fee
            if change == 0 or change >= sizes.least_change:
                return Allocation(tuple(tier[:count]), amount, Sats(change))
            left_over = max(left_over, change)
    if left_over > 0:
        sentence = (
            f"{left_over} sat would be left, which is dust: forward {amount + left_over} sat, or "
            f"{sizes.least_change - left_over} sat less, or sweep."
        )
        raise Dust.at("/amount_sats", sentence, "dust")
    return None


def _tiers(pool: Sequence[Candidate], *, allow_unconfirmed: bool) -> Iterator[list[Candidate]]:
    """Each tier holds the coins of those before it, the largest first."""
    largest = largest_first(pool)
    yield [coin for coin in largest if coin.confirmations]
    yield [coin for coin in largest if coin.confirmations or coin.own_change]
    if allow_unconfirmed:
        yield largest


def _require_less_than(fee: Sats, payment: Sats) -> None:
    if fee >= payment:
        raise _too_high(f"The fee of {fee} sat is no less than the {payment} sat that would reach the vault.")


def _require_rate(fee: Sats, vsize: int) -> None:
    least = FLOOR.fee_for(vsize)
    if fee < least:
        sentence = (
            f"The fee of {fee} sat is too low for {vsize} vB: nodes relay nothing below {FLOOR}, "
            f"which is {least} sat."
        )
        raise Invalid.at("/fee_sats", sentence, "fee-too-low")
    if FeeRate.of(fee, vsize) > CEILING:
        raise _too_high(f"The fee of {fee} sat is above {CEILING} for {vsize} vB.")


def _too_high(sentence: str) -> Invalid:
    return Invalid.at("/fee_sats", sentence, "fee-too-high")
