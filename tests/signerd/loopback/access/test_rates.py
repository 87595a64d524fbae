"""L6, L11: how much of the daemon an app gets, however it asks."""

import asyncio

import pytest

from signerd.errors import TooManyRequests
from signerd.loopback.access.gates import AT_ONCE, AppRates

pytestmark = pytest.mark.anyio


class Desk:
    """Rates under a clock of its own. ``done``: the requests that were answered; ``most``: at one time."""

    def __init__(self) -> None:
        self.now = 0.0
        self.rates = AppRates(lambda: self.now)
        self.done = self.running = self.most = 0

    async def ask(self, who: str = "a-1") -> None:
        async def request() -> None:
            self.running += 1
            self.most = max(self.most, self.running)
            await asyncio.sleep(0)
            self.running -= 1
            self.done += 1

        self.rates.take(who)
        await self.rates.in_turn(who, request)


async def test_l6_requests_cost_one_token_each_which_comes_back_with_time():
    desk = Desk()
    for _ in range(int(desk.rates.burst)):
        await desk.ask()
    with pytest.raises(TooManyRequests) as refused:
        await desk.ask()
    assert refused.value.seconds == 1
    # No other caller is limited for it.
    await desk.ask("a-2")
    desk.now += 1
    for _ in range(int(desk.rates.per_second)):
        await desk.ask()
    with pytest.raises(TooManyRequests):
        await desk.ask()


async def test_l11_of_many_that_come_at_once_few_are_answered_at_a_time():
    desk = Desk()
    await asyncio.gather(*(desk.ask() for _ in range(30)))
    assert (desk.done, desk.most) == (30, AT_ONCE)
