"""L11: what is asked for again and again is made once for all who wait, and never from before they asked."""

import asyncio

import pytest

from signerd.daemon.single_flight import SingleFlight

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend():
    return "asyncio"


class Slow:
    def __init__(self):
        self.made = 0
        self.going = asyncio.Event()

    async def __call__(self):
        self.made += 1
        number = self.made
        await self.going.wait()
        if number == 3:
            raise ValueError("the third")
        return number


async def turns():
    for _ in range(10):
        await asyncio.sleep(0)


async def test_l11_any_number_at_once_cost_two():
    slow = Slow()
    shared = SingleFlight(slow)
    first = asyncio.create_task(shared.get())
    await turns()
    later = [asyncio.create_task(shared.get()) for _ in range(50)]
    await turns()
    slow.going.set()
    assert await first == 1
    # What was begun before they asked is not for them.
    assert await asyncio.gather(*later) == [2] * 50


async def test_one_that_fails_or_goes_away_is_not_the_others():
    slow = Slow()
    shared = SingleFlight(slow)
    slow.made = 2
    slow.going.set()
    found = await asyncio.gather(*(shared.get() for _ in range(2)), return_exceptions=True)
    assert isinstance(found[0], ValueError)
    assert found[1] == 4
    slow.going.clear()
    gone = asyncio.create_task(shared.get())
    await turns()
    gone.cancel()
    slow.going.set()
    assert await shared.get() == 6
