"""The sliding windows, in the database and in memory."""

from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import pytest
from sqlalchemy import func, select

from custody.server.domain.errors import RateLimited
from custody.server.service.sign_in import throttle as module
from custody.server.service.sign_in.throttle import LONGEST_WINDOW, AttemptLimit, Throttle, caller_at
from custody.server.store import Store
from custody.server.store.models import Attempt
from tests.support.platform import Clock


def test_allows_the_limit_within_the_window_and_says_how_long_to_wait() -> None:
    clock = Clock()
    throttle = Throttle(clock, limit=3, window=timedelta(seconds=60))
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


def test_tries_at_the_same_time_are_all_counted() -> None:
    throttle = Throttle(Clock(), limit=5, window=timedelta(seconds=60))

    def is_allowed(_: int) -> bool:
        try:
            throttle.take("a")
        except RateLimited:
            return False
        return True

    with ThreadPoolExecutor(8) as pool:
        assert sum(pool.map(is_allowed, range(200))) == 5


def test_keeps_a_bounded_number_of_keys(monkeypatch) -> None:
    monkeypatch.setattr(module, "MAX_KEYS", 3)
    throttle = Throttle(Clock(), limit=1, window=timedelta(seconds=60))
    for number in range(100):
        throttle.take(f"key {number}")
    assert len(throttle._tries) == 3
    with pytest.raises(RateLimited):
        throttle.take("key 99")


@pytest.mark.parametrize(
    ("address", "caller"),
    [
        ("192.0.2.7", "192.0.2.7"),
        ("::ffff:192.0.2.7", "192.0.2.7"),
        ("::ffff:c000:207", "192.0.2.7"),
        ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"),
        ("2001:DB8:1:2::", "2001:db8:1:2::/64"),
        ("2001:db8:1:3::1", "2001:db8:1:3::/64"),
        ("fe80::1%eth0", "fe80::/64"),
        ("local", "local"),
    ],
)
def test_one_site_is_one_caller(address: str, caller: str) -> None:
    """Whoever has an IPv6 network has 2^64 addresses in it; an IPv4 caller has one, however it is written."""
    assert caller_at(address) == caller


class TestInTheDatabase:
    MINUTE = timedelta(seconds=60)

    def limit(self, store: Store, clock: Clock, kind: str = "a kind", limit: int = 3) -> AttemptLimit:
        return AttemptLimit(store, clock, kind, limit=limit, window=self.MINUTE)

    def test_allows_the_limit_within_the_window_and_says_how_long_to_wait(self, store: Store) -> None:
        clock = Clock()
        one, another = self.limit(store, clock), self.limit(store, clock, "another kind")
        for _ in range(3):
            one.take("a")
            clock.advance(seconds=10)
        with pytest.raises(RateLimited) as refused:
            one.take("a")
        assert refused.value.retry_after == 30
        one.take("b")
        another.take("a")
        clock.advance(seconds=30)
        one.take("a")
        with pytest.raises(RateLimited):
            one.take("a")

    def test_holds_across_processes(self, database: str) -> None:
        """P38: two servers over one database count together."""
        clock = Clock()
        first, second = Store.open(database), Store.open(database)
        try:
            for _ in range(2):
                self.limit(first, clock, limit=4).take("a")
                self.limit(second, clock, limit=4).take("a")
            with pytest.raises(RateLimited):
                self.limit(first, clock, limit=4).take("a")
        finally:
            first.close()
            second.close()

    def test_tries_at_the_same_time_are_all_counted(self, store: Store) -> None:
        throttle = self.limit(store, Clock(), limit=5)

        def is_allowed(_: int) -> bool:
            try:
                throttle.take("a")
            except RateLimited:
                return False
            return True

        with ThreadPoolExecutor(4) as pool:
            assert sum(pool.map(is_allowed, range(20))) == 5

    def test_forgives_one_subject(self, store: Store) -> None:
        throttle = self.limit(store, Clock(), limit=1)
        throttle.take("a")
        throttle.take("b")
        with store.write() as db:
            throttle.forget(db, "a")
        throttle.take("a")
        with pytest.raises(RateLimited):
            throttle.take("b")

    def test_old_tries_are_deleted_in_passing_and_nobody_is_named(self, store: Store) -> None:
        clock = Clock()
        self.limit(store, clock).take("alice@example.org")
        clock.now += LONGEST_WINDOW
        self.limit(store, clock, "another kind").take("bob@example.org")
        with store.read() as db:
            assert db.scalar(select(func.count()).select_from(Attempt)) == 1
            assert b"bob" not in db.scalars(select(Attempt.subject_hash)).one()
