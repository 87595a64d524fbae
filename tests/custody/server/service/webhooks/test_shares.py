"""A workspace's receivers take so much of the workers' time, and no more (P51)."""

import pytest

from custody.server.service.webhooks.shares import (
    BURST_SECONDS,
    LEAST_SECONDS,
    MAX_WORKSPACES,
    SHORTEST_WAIT,
    Shares,
)


class Timer:
    def __init__(self) -> None:
        self.now = 1_000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def timer() -> Timer:
    return Timer()


@pytest.fixture
def shares(timer: Timer) -> Shares:
    return Shares(timer)


def test_whoever_took_nothing_waits_for_nothing(shares: Shares) -> None:
    assert shares.wait(1) == 0


def test_what_was_taken_comes_back_as_time_passes(shares: Shares, timer: Timer) -> None:
    shares.spend(1, BURST_SECONDS + 25)
    assert shares.wait(1) == 25
    assert shares.wait(2) == 0, "another's"
    timer.now += 10
    assert shares.wait(1) == 15
    timer.now += 15.5
    assert shares.wait(1) == 0


def test_it_never_has_more_than_a_burst(shares: Shares, timer: Timer) -> None:
    shares.spend(1, 1)
    timer.now += 10_000
    shares.spend(1, BURST_SECONDS + 2)
    assert shares.wait(1) == 2


def test_it_waits_for_a_moment_at_least(shares: Shares) -> None:
    shares.spend(1, BURST_SECONDS)
    assert shares.wait(1) == SHORTEST_WAIT


def test_an_answer_in_no_time_costs_something_too(shares: Shares) -> None:
    count = 0
    while not shares.wait(1):
        shares.spend(1, 0)
        count += 1
    assert count == pytest.approx(BURST_SECONDS / LEAST_SECONDS, abs=1)


def test_those_that_are_full_again_are_forgotten(shares: Shares, timer: Timer) -> None:
    for workspace_id in range(MAX_WORKSPACES):
        shares.spend(workspace_id, 1)
    timer.now += 1
    shares.spend(MAX_WORKSPACES, 1)
    assert list(shares._shares) == [MAX_WORKSPACES]
