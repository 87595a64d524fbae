"""Coin selection of a forward: the figures add up, and only permitted coins are spent (P48)."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from custody.server.errors import Dust, Invalid
from custody.server.proposals.forwards import Sizes, allocate, require_rate, require_sensible
from custody.server.rules.fees import CEILING, FLOOR, MAX_FEE
from custody.server.rules.selection import MAX_INPUTS, Selection, largest_first
from multisig import FeeRate, Sats
from tests.support.selection import Candidate, candidate

DUST, CHANGE_DUST = Sats(330), Sats(294)
SIZES = Sizes(DUST, CHANGE_DUST)


CONFIRMED = [candidate(1, 100_000), candidate(2, 60_000, 1)]
OWN, FOREIGN = candidate(3, 50_000, 0, own_change=True), candidate(4, 900_000, 0)


def tiers(pool: list[Candidate], *, unconfirmed: bool = False) -> list[list[Candidate]]:
    largest = largest_first(pool)
    confirmed = [each for each in largest if each.confirmations]
    own = [each for each in largest if each.confirmations or each.own_change]
    return [confirmed, own, *([largest] if unconfirmed else [])]


def found_of(
    pool: list[Candidate], amount: int | None, fee: int, *, unconfirmed: bool = False, floor: FeeRate = FLOOR
) -> Selection[Candidate] | None:
    wanted = None if amount is None else Sats(amount)
    require_sensible(wanted, Sats(fee), SIZES)
    found = allocate(tiers(pool, unconfirmed=unconfirmed), wanted, Sats(fee), SIZES)
    if found is not None:
        require_rate(Sats(fee), vsize_of(found), floor)
    return found


def vsize_of(found: Selection[Candidate]) -> int:
    return 60 + 68 * len(found.coins) + 31 * (found.change > 0)


def of(
    pool: list[Candidate], amount: int | None, fee: int = 1_000, *, unconfirmed: bool = False
) -> Selection[Candidate]:
    found = found_of(pool, amount, fee, unconfirmed=unconfirmed)
    assert found is not None
    return found


def payment(found: Selection[Candidate]) -> int:
    return sum(each.amount for each in found.coins) - found.change - found.fee


def numbers(found: Selection[Candidate]) -> list[int]:
    return [int(each.txid, 16) for each in found.coins]


@st.composite
def pools(draw: st.DrawFn) -> list[Candidate]:
    kinds = st.sampled_from([(6, False), (1, True), (0, True), (0, False)])
    drawn = draw(st.lists(st.tuples(st.integers(294, 10**6), kinds), max_size=8))
    return [
        candidate(number, amount, depth, own_change=own)
        for number, (amount, (depth, own)) in enumerate(drawn)
    ]


@given(
    pools(),
    st.none() | st.integers(1, 2 * 10**6),
    st.integers(1, 50_000),
    st.booleans(),
    st.integers(100, 5_000).map(FeeRate),
)
def test_what_is_found_adds_up_and_may_be_spent(
    pool: list[Candidate], amount: int | None, fee: int, unconfirmed: bool, floor: FeeRate
) -> None:
    try:
        found = found_of(pool, amount, fee, unconfirmed=unconfirmed, floor=floor)
    except (Invalid, Dust):
        return
    may_spend = tiers(pool, unconfirmed=unconfirmed)[-1]
    if found is None:
        assert sum(each.amount for each in may_spend) < max(fee + (amount or 0), 1)
        return
    assert set(found.coins) <= set(may_spend)
    assert found.fee == fee < payment(found) >= DUST
    assert found.change == 0 or found.change >= CHANGE_DUST
    assert floor <= FeeRate.of(Sats(fee), vsize_of(found)) <= CEILING
    if amount is None:
        assert (found.change, len(found.coins)) == (0, len(may_spend))
    else:
        assert payment(found) == amount


def test_confirmed_coins_go_first_then_ones_own_then_what_is_allowed() -> None:
    pool = [FOREIGN, OWN, *CONFIRMED]
    assert numbers(of(pool, 90_000, unconfirmed=True)) == [1]
    assert numbers(of(pool, 150_000, unconfirmed=True)) == [1, 2]
    assert numbers(of(pool, 180_000, unconfirmed=True)) == [1, 2, 3]
    assert numbers(of(pool, 500_000, unconfirmed=True)) == [4]
    assert found_of(pool, 500_000, 1_000) is None


def test_dust_that_one_coin_would_leave_is_avoided_with_another() -> None:
    found = of(CONFIRMED, 98_900)
    assert (numbers(found), found.change) == ([1, 2], 60_100)


def test_of_many_coins_the_largest_are_taken() -> None:
    pool = [candidate(number, 1_000 + number) for number in range(1, 151)]
    assert numbers(of(pool, None, 20_000)) == list(range(150, 150 - MAX_INPUTS, -1))
    assert found_of(pool, 150_000, 20_000) is None


@pytest.mark.parametrize(
    ("amount", "fee", "error"),
    [
        (329, 100, Dust),
        (330, 330, Invalid),
        (50_000, 50_000, Invalid),
        # Of which dust would come back.
        (158_999, 1_000, Dust),
        (158_707, 1_000, Dust),
        (158_706, 1_000, None),
        # Everything, and what is left of it.
        (None, 160_000, Invalid),
        (None, 159_671, Dust),
        (None, 159_670, Invalid),
        (None, 80_000, Invalid),
        (None, 79_999, None),
        # Below what nodes relay.
        (None, 195, Invalid),
        (None, 196, None),
        (90_000, 158, Invalid),
        (90_000, 159, None),
        (10**12, MAX_FEE + 1, Invalid),
    ],
)
def test_p48_absurd_fees_and_dust_are_refused_and_the_bounds_themselves_pass(
    amount: int | None, fee: int, error: type[Exception] | None
) -> None:
    if error is None:
        found = of(CONFIRMED, amount, fee)
        assert payment(found) == (160_000 - fee if amount is None else amount)
        return
    with pytest.raises(error):
        of(CONFIRMED, amount, fee)


def test_p48_the_highest_rate_itself_passes() -> None:
    rich = [candidate(1, 10**9)]
    assert payment(of(rich, None, 128_000)) == 10**9 - 128_000
    with pytest.raises(Invalid, match="above 1000 sat/vB"):
        of(rich, None, 128_001 + 128)
