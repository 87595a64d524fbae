"""What is counted of a request's time: what it holds the loop for, and not what it waits for (L11)."""

import asyncio

import pytest

from signerd.loopback.access.gates import Metered

pytestmark = pytest.mark.anyio


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock():
    return Clock()


async def test_its_own_steps_are_counted_and_nobody_elses(clock):
    go = asyncio.Event()

    async def other() -> None:
        clock.now += 100
        go.set()

    async def request() -> None:
        clock.now += 1
        await asyncio.sleep(0)
        clock.now += 2
        await go.wait()
        clock.now += 4

    metered = Metered(request(), clock)
    beside = asyncio.create_task(other())
    await metered
    await beside
    assert metered.spent == 7


async def test_one_that_fails_is_counted_and_its_error_is_its_own(clock):
    async def request() -> None:
        clock.now += 1
        await asyncio.sleep(0)
        clock.now += 2
        raise KeyError("as it was")

    metered = Metered(request(), clock)
    with pytest.raises(KeyError, match="as it was"):
        await metered
    assert metered.spent == 3


async def test_one_that_is_cancelled_hears_of_it_and_may_go_on(clock):
    heard: list[str] = []

    async def request() -> None:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            heard.append("cancelled")
            await asyncio.sleep(0)
            clock.now += 5
            heard.append("put away")
            raise

    metered = Metered(request(), clock)

    async def run() -> None:
        await metered

    task = asyncio.create_task(run())
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert heard == ["cancelled", "put away"]
    assert metered.spent == 5


async def test_a_time_out_within_it_ends_what_it_is_around(clock):
    async def request() -> None:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0):
                await asyncio.Event().wait()
        clock.now += 1

    metered = Metered(request(), clock)
    await metered
    assert metered.spent == 1
