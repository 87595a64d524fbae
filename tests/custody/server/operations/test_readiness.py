"""A value that many callers ask for is read once, by one thread, and no caller has to wait for it."""

import threading

import pytest

from custody.server.operations.readiness import Recent

SECONDS = 20


class Time:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def test_the_same_answer_or_error_is_given_while_it_is_fresh() -> None:
    time, asked = Time(), []

    def answer() -> int:
        asked.append(1)
        if len(asked) == 2:
            raise OSError
        return len(asked)

    recent = Recent(answer, fresh_seconds=5, monotonic=time)
    for time.now in (0, 0, 4.9):
        assert recent.ask().result(SECONDS) == 1
    for time.now in (5, 9.9):
        with pytest.raises(OSError):
            recent.ask().result(SECONDS)
    time.now = 10
    assert recent.ask().result(SECONDS) == 3


def test_what_hangs_is_asked_once_however_many_wait() -> None:
    time, go, asked = Time(), threading.Event(), []

    def hang() -> str:
        asked.append(1)
        go.wait(SECONDS)
        return "at last"

    recent = Recent(hang, fresh_seconds=5, monotonic=time)
    waiting = [recent.ask() for _ in range(3)]
    with pytest.raises(TimeoutError):
        waiting[0].result(0.01)
    time.now = 60
    assert recent.ask() is waiting[0]
    go.set()
    assert {future.result(SECONDS) for future in waiting} == {"at last"}
    assert len(asked) == 1
