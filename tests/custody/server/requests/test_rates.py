"""Rate limits: token buckets, long polls, and sliding windows in the database."""

from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import timedelta

import pytest
from sqlalchemy import func, select

from custody.server.errors import RateLimited
from custody.server.requests import rates
from custody.server.requests.rates import (
    LONGEST_WINDOW,
    MAX_LONG_POLLS,
    MAX_LONG_POLLS_IN_ALL,
    MAX_LONG_POLLS_OF_A_WORKSPACE,
    SHORTEST_WAIT,
    AttemptLimit,
    Rates,
    Throttle,
    caller_at,
)
from custody.server.store import Store
from custody.server.store.models import AttemptRow
from custody.server.web.listen import MAX_CONNECTIONS
from tests.support.platform import Clock

ALICE, BOB, BOB_ELSEWHERE = 1, 2, 1_000_000
PLACE, OTHER, THIRD = 1, 2, 3


@pytest.mark.parametrize(("size", "wait"), [(60, 1), (30, 2), (1, 60), (1_200, 1)])
def test_a_full_bucket_is_a_minutes_worth_of_each_persons_own(clock: Clock, size: int, wait: int) -> None:
    """It says when there is one again, and then there is."""
    buckets = Throttle(clock, limit=size)
    for _ in range(size):
        buckets.take(ALICE)
    for _ in range(100):
        with pytest.raises(RateLimited) as refused:
            buckets.take(ALICE)
    assert refused.value.retry_after == wait
    buckets.take(BOB)
    clock.advance(seconds=wait)
    buckets.take(ALICE)


def test_a_bounded_number_of_keys_is_remembered(clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rates, "MAX_KEYS", 3)
    buckets = Throttle(clock, limit=60)
    for user_id in range(10):
        buckets.take(user_id)
    assert list(buckets._buckets) == [7, 8, 9]


def test_what_was_spent_comes_back_as_time_passes_up_to_a_burst(clock: Clock) -> None:
    buckets = Throttle(clock, limit=60)
    assert buckets.wait(ALICE) == 0
    buckets.spend(ALICE, 60)
    assert buckets.wait(ALICE) == SHORTEST_WAIT
    buckets.spend(ALICE, 25)
    assert buckets.wait(ALICE) == 25
    assert buckets.wait(BOB) == 0, "another's"
    clock.advance(seconds=10)
    assert buckets.wait(ALICE) == 15
    clock.advance(seconds=15.5)
    assert buckets.wait(ALICE) == 0
    clock.advance(seconds=10_000)
    buckets.spend(ALICE, 60)
    assert buckets.wait(ALICE) == SHORTEST_WAIT


def test_long_polls_are_counted_while_they_wait(clock: Clock) -> None:
    """A person's, a workspace's and all together: one tenant's people, of whom its administrators may invite
    any number, leave connections to the others.
    """
    assert MAX_LONG_POLLS_OF_A_WORKSPACE < MAX_LONG_POLLS_IN_ALL < MAX_CONNECTIONS
    bounded = Rates(clock)
    with ExitStack() as held:

        def wait(user_id: int, workspace_id: int) -> None:
            held.enter_context(bounded.long_poll(user_id, workspace_id))

        def refused(user_id: int, workspace_id: int) -> None:
            with pytest.raises(RateLimited):
                wait(user_id, workspace_id)

        for _ in range(MAX_LONG_POLLS):
            wait(0, PLACE)
        refused(0, PLACE)
        for user_id in range(1, MAX_LONG_POLLS_OF_A_WORKSPACE - MAX_LONG_POLLS + 1):
            wait(user_id, PLACE)
        refused(BOB_ELSEWHERE, PLACE)
        for user_id in range(MAX_LONG_POLLS_IN_ALL - MAX_LONG_POLLS_OF_A_WORKSPACE):
            wait(BOB_ELSEWHERE + user_id, OTHER)
        refused(BOB, THIRD)
    with bounded.long_poll(0, PLACE):
        pass
    assert not bounded._polling.counts
    assert not bounded._polled.counts


def test_one_site_is_one_caller() -> None:
    """An IPv6 site has 2^64 addresses; an IPv4 caller has one, however it is written."""
    for caller, addresses in {
        "192.0.2.7": ("192.0.2.7", "::ffff:192.0.2.7", "::ffff:c000:207"),
        "2001:db8:1:2::/64": ("2001:db8:1:2:3:4:5:6", "2001:DB8:1:2::"),
        "2001:db8:1:3::/64": ("2001:db8:1:3::1",),
        "fe80::/64": ("fe80::1%eth0",),
        "local": ("local",),
    }.items():
        assert {caller_at(address) for address in addresses} == {caller}


MINUTE = timedelta(seconds=60)


@dataclass(frozen=True)
class InTheDatabase:
    """A limit in the database, whose tries are each committed."""

    store: Store
    clock: Clock
    limit: AttemptLimit

    def take(self, subject: str) -> None:
        with self.store.write() as db:
            self.limit.take(db, subject, self.clock())


def in_the_database(store: Store, clock: Clock, kind: str = "a kind", limit: int = 3) -> InTheDatabase:
    return InTheDatabase(store, clock, AttemptLimit(kind, limit, MINUTE))


@pytest.fixture(params=["in memory", "in the database"])
def make(request: pytest.FixtureRequest, store: Store, clock: Clock):
    """A limit of so many tries a minute."""
    if request.param == "in memory":
        return lambda limit: Throttle(clock, limit=limit, window=MINUTE)
    return lambda limit: in_the_database(store, clock, limit=limit)


def test_allows_the_limit_within_the_window_and_says_how_long_to_wait(store: Store, clock: Clock) -> None:
    throttle = in_the_database(store, clock)
    for _ in range(3):
        throttle.take("a")
        clock.advance(seconds=10)
    with pytest.raises(RateLimited) as refused:
        throttle.take("a")
    assert refused.value.retry_after == 30
    throttle.take("b")
    clock.advance(seconds=30)
    throttle.take("a")
    with pytest.raises(RateLimited):
        throttle.take("a")


def test_tries_at_the_same_time_are_all_counted(make) -> None:
    throttle = make(5)

    def is_allowed(_: int) -> bool:
        try:
            throttle.take("a")
        except RateLimited:
            return False
        return True

    with ThreadPoolExecutor(4) as pool:
        assert sum(pool.map(is_allowed, range(20))) == 5


class TestInTheDatabase:
    def test_holds_across_processes(self, database: str) -> None:
        """P38: two servers over one database count together."""
        clock = Clock()
        first, second = Store.open(database), Store.open(database)
        try:
            for _ in range(2):
                in_the_database(first, clock, limit=4).take("a")
                in_the_database(second, clock, limit=4).take("a")
            with pytest.raises(RateLimited):
                in_the_database(first, clock, limit=4).take("a")
        finally:
            first.close()
            second.close()

    def test_forgives_one_subject(self, store: Store) -> None:
        throttle = in_the_database(store, Clock(), limit=1)
        throttle.take("a")
        throttle.take("b")
        in_the_database(store, Clock(), "another kind", limit=1).take("a")
        with store.write() as db:
            throttle.limit.forget(db, "a")
        throttle.take("a")
        with pytest.raises(RateLimited):
            throttle.take("b")

    def test_old_tries_are_deleted_and_none_is_stored_by_name(self, store: Store) -> None:
        clock = Clock()
        in_the_database(store, clock).take("alice@example.org")
        clock.now += LONGEST_WINDOW
        in_the_database(store, clock, "another kind").take("bob@example.org")
        with store.read() as db:
            assert db.scalar(select(func.count()).select_from(AttemptRow)) == 1
            assert b"bob" not in db.scalars(select(AttemptRow.subject_hash)).one()
