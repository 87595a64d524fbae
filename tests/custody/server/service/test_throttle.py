"""The sliding window."""

from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import pytest

from custody.server.domain.errors import RateLimited
from custody.server.service import throttle as module
from custody.server.service.throttle import Throttle
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


def test_forgives_when_cleared() -> None:
    throttle = Throttle(Clock(), limit=1, window=timedelta(seconds=60))
    throttle.take("a")
    throttle.clear("a")
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
