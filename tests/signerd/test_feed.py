"""What is kept for whoever comes late, and in which order."""

import pytest

from signerd.feed import ALARMS_KEPT, LINES_KEPT, Feed

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend():
    return "asyncio"


async def test_the_newest_lines_are_kept():
    feed = Feed(before=7)
    for n in range(LINES_KEPT + 5):
        feed.add(f"p-{n}", "ask", "x")
    assert [line.number for line in feed.since(0)] == list(range(13, 13 + LINES_KEPT))
    assert feed.since(feed.last) == ()


async def test_l6_an_alarm_is_kept_whatever_else_happens():
    feed = Feed()
    feed.add("p-0", "ask", "x")
    feed.add("p-1", "alarm", "ALARM: one")
    for n in range(LINES_KEPT):
        feed.add(f"q-{n}", "ask", "x")
    feed.add("p-2", "alarm", "ALARM: two")
    numbers = [line.number for line in feed.since(0)]
    # Each once, in its order.
    assert numbers == [2, *range(4, LINES_KEPT + 4)]
    assert [line.text for line in feed.since(0, "p-1")] == ["ALARM: one"]
    assert [line.text for line in feed.since(2) if line.kind == "alarm"] == ["ALARM: two"]
    assert (await feed.wait(1, None, 0))[0].text == "ALARM: one"


async def test_alarms_have_a_bound_of_their_own():
    feed = Feed()
    for n in range(ALARMS_KEPT + 1):
        feed.add(f"p-{n}", "alarm", "x")
    for _ in range(LINES_KEPT):
        feed.add("q", "ask", "x")
    alarms = [line.subject for line in feed.since(0) if line.kind == "alarm"]
    assert alarms == [f"p-{n}" for n in range(1, ALARMS_KEPT + 1)]
