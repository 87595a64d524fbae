"""L6, L11: how much of the daemon an app gets, however it asks. What is counted of a request's time: what it
holds the loop for, and not what it waits for (L11).
"""

import asyncio

import pytest

from signerd.errors import TooManyRequests
from signerd.loopback.access.gates import AT_ONCE, DEEPEST, TOKEN_SECONDS, Metered, Rates

pytestmark = pytest.mark.anyio


class Desk:
    """Rates under a clock that a request moves by what it costs. ``done``: the requests that were
    answered.
    """

    def __init__(self, work=None) -> None:
        self.now = 0.0
        self.rates = Rates(lambda: self.now, work or (lambda: self.now))
        self.done = 0

    async def ask(self, seconds: float, who: str = "a-1") -> None:
        async def request() -> None:
            self.now += seconds
            await asyncio.sleep(0)
            self.done += 1

        self.rates.take(who)
        await self.rates.in_turn(who, request)


async def test_requests_that_cost_little_cost_one_token_each():
    desk = Desk()
    for _ in range(int(desk.rates.burst)):
        await desk.ask(0.0)
    with pytest.raises(TooManyRequests) as refused:
        await desk.ask(0.0)
    assert refused.value.seconds == 1


async def test_l11_a_request_is_paid_for_by_the_time_that_it_took():
    desk = Desk()
    seconds = (desk.rates.burst + 100) * TOKEN_SECONDS
    await desk.ask(seconds)
    with pytest.raises(TooManyRequests) as refused:
        await desk.ask(0.0)
    # What is missing, and one, at so many a second; while it was answered some came already.
    missing = 101 - seconds * desk.rates.per_second
    assert missing / 20 <= refused.value.seconds < missing / 20 + 1
    desk.now += refused.value.seconds
    await desk.ask(0.0)
    assert desk.done == 2


async def test_an_app_does_not_pay_for_what_keeps_the_machine_busy():
    desk = Desk(work=lambda: 0.0)
    for _ in range(int(desk.rates.burst)):
        await desk.ask(1.0)
    assert desk.done == desk.rates.burst


async def test_l11_of_many_that_come_at_once_no_more_are_answered_than_an_app_may_have():
    desk = Desk()
    came = await asyncio.gather(*(desk.ask(1.0) for _ in range(30)), return_exceptions=True)
    assert desk.done == AT_ONCE
    assert {type(one) for one in came} == {type(None), TooManyRequests}
    # No other caller is limited for it.
    await desk.ask(0.0, "a-2")


async def test_l11_an_app_that_asks_as_fast_as_it_may_has_a_tenth_of_the_time():
    desk, busy = Desk(), 0.0
    for _ in range(1_000):
        try:
            await desk.ask(0.2)
        except TooManyRequests as refused:
            desk.now += refused.seconds
        else:
            busy += 0.2
    assert busy / desk.now < 0.11


async def test_one_that_waits_for_a_device_keeps_one_place_and_pays_for_its_own_time():
    desk, shown = Desk(), asyncio.Event()

    async def display() -> None:
        await shown.wait()

    desk.rates.take("a-1")
    waiting = asyncio.create_task(desk.rates.in_turn("a-1", display))
    await asyncio.sleep(0)
    desk.now += 60
    for _ in range(int(desk.rates.burst)):
        await desk.ask(0.0)
    shown.set()
    await waiting


async def test_whatever_it_cost_the_app_is_answered_again_half_a_minute_later():
    desk = Desk()
    await desk.ask(3_600.0)
    with pytest.raises(TooManyRequests) as refused:
        await desk.ask(0.0)
    assert refused.value.seconds == (DEEPEST + 1) // desk.rates.per_second + 1
    desk.now += refused.value.seconds
    await desk.ask(0.0)


async def test_one_that_fails_has_cost_what_it_took_and_gives_its_place_back():
    desk = Desk()

    async def fails() -> None:
        desk.now += 1.0
        raise KeyError

    for _ in range(AT_ONCE + 1):
        desk.now += 100
        desk.rates.take("a-1")
        with pytest.raises(KeyError):
            await desk.rates.in_turn("a-1", fails)
        with pytest.raises(TooManyRequests):
            await desk.ask(0.0)


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock():
    return Clock()


async def test_only_its_own_steps_are_counted(clock):
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
