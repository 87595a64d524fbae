"""What the feed keeps and in which order; a supervised task is restarted later each time, and our own errors
are raised.
"""

import asyncio
from itertools import pairwise

import pytest

from signerd.errors import JournalUnwritable
from signerd.feed import LINES_KEPT, MOST_TOLD, STEADY_SECONDS, Feed, Troubles, supervise
from signerd.runtime import DaemonDependencies

pytestmark = pytest.mark.anyio


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


@pytest.fixture
def troubles() -> Troubles:
    return Troubles(Feed())


class Pauses:
    """A clock that only writes down: pauses before a new try pass at once, a steady while passes when it is
    told.
    """

    def __init__(self) -> None:
        self.between: list[float] = []
        self.steady = asyncio.Event()

    async def sleep(self, seconds: float) -> None:
        if seconds == STEADY_SECONDS:
            await self.steady.wait()
        else:
            self.between.append(seconds)
            await asyncio.sleep(0)


async def test_the_pauses_grow_to_a_bound_and_it_is_told_once(troubles: Troubles) -> None:
    pauses, tries = Pauses(), 0

    async def fails() -> None:
        nonlocal tries
        tries += 1
        if tries < 12:
            raise OSError("no descriptors")

    await supervise(
        "devices", "Looking", fails, troubles, DaemonDependencies(jitter=lambda: 1.0, sleep=pauses.sleep)
    )
    assert len(pauses.between) == 11
    assert all(one <= other for one, other in pairwise(pauses.between))
    assert pauses.between[-1] == 60.0
    assert troubles.sentences() == ()


async def test_an_error_of_ours_goes_up(troubles: Troubles) -> None:
    async def unwritable() -> None:
        raise JournalUnwritable("disk full")

    with pytest.raises(JournalUnwritable):
        await supervise("devices", "Looking", unwritable, troubles, DaemonDependencies())


async def test_troubles_are_told_once_while_they_last_and_anew_when_they_come_back() -> None:
    feed = Feed()
    troubles = Troubles(feed)
    for found in ({"p-1": "Bad."}, {"p-1": "Bad."}, {}, {"p-1": "Bad."}):
        troubles.report("proposals", found)
    assert [line.text for line in feed.since(0, "p-1")] == ["Bad.", "Bad."]
    assert troubles.sentences() == ("Bad.",)
    troubles.report("devices", {"devices": "Gone."})
    assert troubles.sentences() == ("Bad.", "Gone.")


async def test_a_flood_of_troubles_is_counted() -> None:
    feed = Feed()
    troubles = Troubles(feed)
    troubles.report("proposals", {f"p-{n}": f"Bad {n}." for n in range(1_000)})
    assert len(feed.since(0)) == len(troubles.sentences()) == MOST_TOLD + 1
    assert troubles.sentences()[-1] == f"And {1_000 - MOST_TOLD} more of this kind."
