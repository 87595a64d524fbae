"""Gathered, merged, throttled; and whatever the desktop does, it goes on."""

import asyncio

import pytest

from signerd.feed import LINES_KEPT, Feed
from signerd.notifying.notifier import GATHER_SECONDS, PAUSE_SECONDS, Notifier, notifying

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend():
    return "asyncio"


class Desk:
    """The desktop and the clock of one notifier; every wait is let go by hand."""

    def __init__(self, *, broken=False):
        self.feed, self.shown, self.waits, self.broken = Feed(), [], [], broken
        self.go = asyncio.Semaphore(0)
        self.asleep = asyncio.Event()

    async def show(self, notice):
        self.shown.append(notice)
        if self.broken:
            raise OSError("no more processes")
        return True

    async def sleep(self, seconds):
        self.waits.append(seconds)
        self.asleep.set()
        await self.go.acquire()

    async def let_go(self):
        await asyncio.wait_for(self.asleep.wait(), 10)
        self.asleep.clear()
        self.go.release()

    def notifier(self):
        return Notifier(self.feed, details=False, show=self.show, sleep=self.sleep)


async def running(desk):
    task = asyncio.create_task(desk.notifier().run())
    await asyncio.sleep(0)
    return task


async def ended(task):
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def test_a_burst_is_one_notice_and_the_next_one_waits():
    desk = Desk()
    task = await running(desk)
    for number in range(1000):
        desk.feed.add(f"p-{number}", "ask", "x")
    await desk.let_go()
    await asyncio.wait_for(desk.asleep.wait(), 10)
    assert [notice.title for notice in desk.shown] == ["1000 payments wait for your decision."]
    assert desk.waits == [GATHER_SECONDS, PAUSE_SECONDS]
    desk.feed.add("p-x", "ask", "x")
    await asyncio.sleep(0)
    assert len(desk.shown) == 1
    await ended(task)


async def test_l6_an_alarm_is_told_whatever_comes_after_it_while_nobody_may_be_disturbed():
    desk = Desk()
    task = await running(desk)
    desk.feed.add("p-0", "ask", "x")
    await desk.let_go()
    await asyncio.wait_for(desk.asleep.wait(), 10)
    assert desk.waits == [GATHER_SECONDS, PAUSE_SECONDS]
    desk.feed.add("p-1", "alarm", "ALARM: the platform shows another transaction under this proposal's id.")
    for number in range(LINES_KEPT):
        desk.feed.add(f"q-{number}", "ask", "x")
    await desk.let_go()
    await desk.let_go()
    await asyncio.wait_for(desk.asleep.wait(), 10)
    assert desk.shown[1].title == "signerd warns you."
    assert desk.shown[1].urgent
    await ended(task)


@pytest.mark.parametrize("broken", [True, False])
async def test_a_desktop_that_fails_ends_nothing(broken):
    desk = Desk(broken=broken)
    task = await running(desk)
    for _ in range(2):
        desk.feed.add("p-1", "ask", "x")
        await desk.let_go()
        await desk.let_go()
    await ended(task)
    assert len(desk.shown) == 2


async def test_what_nobody_need_know_costs_no_pause():
    desk = Desk()
    task = await running(desk)
    desk.feed.add("p-1", "progress", "x")
    await desk.let_go()
    for _ in range(20):  # Until it waits for the feed again: what comes before would be gathered with it.
        await asyncio.sleep(0)
    desk.feed.add("p-1", "ask", "x")
    await desk.let_go()
    await asyncio.wait_for(desk.asleep.wait(), 10)
    assert desk.waits == [GATHER_SECONDS, GATHER_SECONDS, PAUSE_SECONDS]
    await ended(task)


@pytest.mark.parametrize(("mode", "more"), [("off", 0), ("plain", 1), ("details", 1)])
async def test_switched_off_nothing_runs(mode, more):
    before = len(asyncio.all_tasks())
    async with notifying(Feed(), mode):
        assert len(asyncio.all_tasks()) == before + more
    assert len(asyncio.all_tasks()) == before
