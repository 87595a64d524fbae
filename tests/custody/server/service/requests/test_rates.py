"""How much one person may ask: buckets that fill with time, and long polls at once."""

from contextlib import ExitStack

import pytest

from custody.server.connections import MAX_CONNECTIONS
from custody.server.domain.errors import RateLimited
from custody.server.service.requests import rates
from custody.server.service.requests.rates import (
    MAX_LONG_POLLS,
    MAX_LONG_POLLS_IN_ALL,
    MAX_LONG_POLLS_OF_A_WORKSPACE,
    Buckets,
    Rates,
)
from tests.support.platform import Clock

ALICE, BOB = 1, 2
PLACE, OTHER, THIRD = 1, 2, 3


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def buckets(clock: Clock) -> Buckets:
    return Buckets(clock, 60)


def empty(buckets: Buckets, user_id: int = ALICE, count: int = 60) -> None:
    for _ in range(count):
        buckets.take(user_id)


def test_a_full_bucket_is_a_minutes_worth(buckets: Buckets) -> None:
    empty(buckets)
    with pytest.raises(RateLimited):
        buckets.take(ALICE)


def test_is_each_persons_own(buckets: Buckets) -> None:
    empty(buckets)
    buckets.take(BOB)


@pytest.mark.parametrize(("size", "wait"), [(60, 1), (30, 2), (1, 60), (1_200, 1)])
def test_says_when_there_is_one_again_and_then_there_is(clock: Clock, size: int, wait: int) -> None:
    buckets = Buckets(clock, size)
    empty(buckets, count=size)
    with pytest.raises(RateLimited) as refused:
        buckets.take(ALICE)
    assert refused.value.retry_after == wait
    clock.advance(seconds=wait)
    buckets.take(ALICE)


def test_fills_with_time_and_no_further(buckets: Buckets, clock: Clock) -> None:
    empty(buckets)
    clock.advance(seconds=30)
    empty(buckets, count=30)
    with pytest.raises(RateLimited):
        buckets.take(ALICE)
    clock.advance(days=1)
    empty(buckets)
    with pytest.raises(RateLimited):
        buckets.take(ALICE)


def test_being_refused_costs_nothing(buckets: Buckets, clock: Clock) -> None:
    empty(buckets)
    for _ in range(100):
        with pytest.raises(RateLimited):
            buckets.take(ALICE)
    clock.advance(seconds=1)
    buckets.take(ALICE)


def test_a_clock_that_is_set_back_gives_and_takes_nothing(buckets: Buckets, clock: Clock) -> None:
    empty(buckets, count=59)
    clock.advance(days=-1)
    buckets.take(ALICE)
    with pytest.raises(RateLimited):
        buckets.take(ALICE)


def test_a_bounded_number_of_people_is_remembered(buckets: Buckets, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rates, "MAX_PEOPLE", 3)
    for user_id in range(10):
        buckets.take(user_id)
    assert len(buckets._buckets) == 3
    assert list(buckets._buckets) == [7, 8, 9]


def test_changes_are_counted_with_the_calls_and_by_themselves(clock: Clock) -> None:
    bounded = Rates(clock, calls=10, writes=2)
    bounded.take(ALICE, is_write=True)
    bounded.take(ALICE, is_write=True)
    with pytest.raises(RateLimited):
        bounded.take(ALICE, is_write=True)
    for _ in range(7):
        bounded.take(ALICE, is_write=False)
    with pytest.raises(RateLimited):
        bounded.take(ALICE, is_write=False)


def test_long_polls_are_counted_while_they_wait(clock: Clock) -> None:
    bounded = Rates(clock)
    held = [bounded.long_poll(ALICE, PLACE) for _ in range(MAX_LONG_POLLS)]
    for poll in held:
        poll.__enter__()
    with pytest.raises(RateLimited), bounded.long_poll(ALICE, PLACE):
        pass
    with bounded.long_poll(BOB, PLACE):
        pass
    for poll in held:
        poll.__exit__(None, None, None)
    with bounded.long_poll(ALICE, PLACE):
        pass
    assert not bounded._polling


def test_one_tenants_people_leave_connections_to_the_others(clock: Clock) -> None:
    """Sixteen each, and as many people as its administrators invite."""
    assert MAX_LONG_POLLS_OF_A_WORKSPACE < MAX_LONG_POLLS_IN_ALL < MAX_CONNECTIONS
    bounded = Rates(clock)
    with ExitStack() as held:

        def wait(count: int, workspace_id: int) -> None:
            for user_id in range(count):
                held.enter_context(bounded.long_poll(workspace_id * 1_000 + user_id, workspace_id))

        wait(MAX_LONG_POLLS_OF_A_WORKSPACE, PLACE)
        with pytest.raises(RateLimited):
            wait(1, PLACE)
        wait(MAX_LONG_POLLS_IN_ALL - MAX_LONG_POLLS_OF_A_WORKSPACE, OTHER)
        with pytest.raises(RateLimited):
            wait(1, THIRD)
    assert not bounded._polling
    assert not bounded._polled
