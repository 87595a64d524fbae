"""Longer each time, bounded, and never in step with others."""

from signerd.supervisor import Backoff


def test_it_doubles_to_its_bound() -> None:
    pause = Backoff(lambda: 1.0, first=1.0, longest=10.0)
    assert [pause.next() for _ in range(6)] == [1.0, 2.0, 4.0, 8.0, 10.0, 10.0]


def test_jitter_takes_at_most_half() -> None:
    assert Backoff(lambda: 0.0, first=4.0).next() == 2.0


def test_success_starts_anew() -> None:
    pause = Backoff(lambda: 1.0)
    pause.next()
    pause.next()
    pause.reset()
    assert pause.next() == 1.0


def test_it_never_overflows() -> None:
    pause = Backoff(lambda: 1.0)
    assert max(pause.next() for _ in range(5_000)) == 60.0
