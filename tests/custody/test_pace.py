"""Pauses: longer each time, bounded, and never in step with others. Buckets: filled by the clock alone."""

from custody.common.pace import Backoff, Bucket


def test_a_pause_doubles_to_its_bound_and_success_starts_anew() -> None:
    pause = Backoff(lambda: 1.0, first=1.0, longest=10.0)
    assert [pause.next() for _ in range(6)] == [1.0, 2.0, 4.0, 8.0, 10.0, 10.0]
    assert max(pause.next() for _ in range(5_000)) == 10.0, "without an overflow"
    pause.reset()
    assert pause.next() == 1.0
    assert Backoff(lambda: 0.0, first=4.0).next() == 2.0, "jitter takes at most half"


def test_a_bucket_fills_to_its_size_and_no_further() -> None:
    bucket = Bucket(10, 2, at=100.0, level=10)
    bucket.level -= 10
    assert bucket.fill(101.0).level == 2
    assert bucket.seconds_until(2) == 0
    assert bucket.seconds_until(5) == 1.5
    assert bucket.fill(1_000.0).level == 10


def test_a_clock_that_was_set_back_fills_nothing_and_takes_nothing() -> None:
    bucket = Bucket(10, 2, at=100.0, level=3)
    assert bucket.fill(50.0).level == 3
    assert bucket.fill(51.0).level == 5
