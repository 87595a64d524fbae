"""Rolling limits against a model that tries every way in which signed transactions can confirm."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import combinations

from hypothesis import given
from hypothesis import strategies as st

from multisig import OutPoint
from signerd.core.rules.spending import Moment, Spent, most_spent, worst_case

NOON = datetime(2026, 1, 2, 12, tzinfo=UTC)
DAY = timedelta(days=1)
COINS = [OutPoint(f"{n:064x}", n) for n in range(5)]


def coins(*numbers: int) -> frozenset[OutPoint]:
    return frozenset(COINS[n] for n in numbers)


def spent(name: str, amount: int, *numbers: int, hours: float = 0) -> Spent:
    """Signed so many hours before noon."""
    return Spent(name, "v", NOON - timedelta(hours=hours), amount, coins(*numbers))


some_spent = st.builds(
    Spent,
    psbt_id=st.uuids().map(str),
    quorum=st.just("v"),
    at=st.integers(-30 * 60, 60).map(lambda minutes: NOON + timedelta(minutes=minutes)),
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


@given(several, some_spent, st.integers(-48 * 60, 48 * 60), st.integers(-48 * 60, 48 * 60))
def test_a_window_counts_what_the_model_counts(items: list[Spent], this: Spent, now: int, seen: int) -> None:
    moment = Moment(NOON + timedelta(minutes=now), NOON + timedelta(minutes=seen))
    counted = [item for item in items if item.at > moment.furthest - DAY]
    total = most_spent(DAY, moment, items, this)
    assert brute_force([*counted, this]) <= total <= sum(item.amount for item in [*counted, this])
    assert total >= this.amount


@given(several, some_spent, st.integers(0, 72 * 60))
def test_f_a_clock_set_back_frees_nothing(items: list[Spent], this: Spent, back: int) -> None:
    true = Moment(NOON, NOON)
    wrong = Moment(NOON - timedelta(minutes=back), NOON)
    assert most_spent(DAY, wrong, items, this) == most_spent(DAY, true, items, this)


def test_a_payment_leaves_the_window_exactly_when_it_is_as_old_as_the_window() -> None:
    this, moment = spent("this", 1, 0), Moment(NOON, NOON)
    assert most_spent(DAY, moment, [spent("old", 10, 1, hours=24)], this) == 1
    assert most_spent(DAY, moment, [spent("new", 10, 1, hours=23.999)], this) == 11
    assert most_spent(7 * DAY, moment, [spent("old", 10, 1, hours=24)], this) == 11


def test_the_one_that_is_judged_counts_once() -> None:
    this = spent("this", 5, 0)
    assert most_spent(DAY, Moment(NOON, NOON), [this, spent("other", 7, 1)], this) == 12


def test_a_fee_bump_is_not_counted_beside_what_it_replaces() -> None:
    first = spent("first", 50, 0, 1)
    bump = spent("bump", 50, 0, 1, 2)
    assert most_spent(DAY, Moment(NOON, NOON), [first], bump) == 50


def test_a_cancel_frees_nothing_before_the_window_ends() -> None:
    first, cancel = spent("first", 50, 0), spent("cancel", 0, 0)
    assert most_spent(DAY, Moment(NOON, NOON), [first, cancel], spent("this", 3, 4)) == 53
