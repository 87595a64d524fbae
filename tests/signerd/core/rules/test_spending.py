"""What counts as spent, against a model that tries every way in which signed transactions can confirm."""

from dataclasses import replace
from itertools import combinations

from hypothesis import given
from hypothesis import strategies as st

from multisig import OutPoint
from signerd.core.rules.spending import Spent, worst_case

COINS = [OutPoint(f"{n:064x}", n) for n in range(5)]


def coins(*numbers: int) -> frozenset[OutPoint]:
    return frozenset(COINS[n] for n in numbers)


some_spent = st.builds(
    Spent,
    psbt_id=st.uuids().map(str),
    quorum=st.just("v"),
    amount=st.integers(0, 1000),
    outpoints=st.frozensets(st.sampled_from(COINS), min_size=1, max_size=3),
)
several = st.lists(some_spent, max_size=6)


def can_confirm_together(group: tuple[Spent, ...]) -> bool:
    return sum(len(item.outpoints) for item in group) == len(
        frozenset().union(*(item.outpoints for item in group))
    )


def brute_force(items: list[Spent]) -> int:
    """The most that any set of transactions that share no coin pays."""
    groups = (group for size in range(len(items) + 1) for group in combinations(items, size))
    return max(sum(item.amount for item in group) for group in groups if can_confirm_together(group))


@given(several)
def test_the_worst_case_is_never_below_what_can_confirm_and_never_above_the_sum(items: list[Spent]) -> None:
    assert brute_force(items) <= worst_case(items) <= sum(item.amount for item in items)


@given(several)
def test_where_no_coin_is_shared_it_is_the_sum(items: list[Spent]) -> None:
    apart = [replace(item, outpoints=frozenset({OutPoint("00" * 32, n)})) for n, item in enumerate(items)]
    assert worst_case(apart) == sum(item.amount for item in items) == brute_force(apart)


@given(several)
def test_where_all_spend_one_coin_the_largest_counts(items: list[Spent]) -> None:
    rivals = [replace(item, outpoints=item.outpoints | coins(0)) for item in items]
    assert worst_case(rivals) == max((item.amount for item in items), default=0) == brute_force(rivals)
