"""A kept task: begun again later each time, well again after a while, and our own errors go up."""

import asyncio
from itertools import pairwise

import pytest

from signerd.errors import JournalUnwritable
from signerd.feed import MOST_TOLD, Feed, Troubles
from signerd.supervisor import STEADY_SECONDS, Supervisor
from tests.support.patience import PATIENCE

pytestmark = pytest.mark.anyio


@pytest.fixture
def troubles() -> Troubles:
    return Troubles(Feed())


class Pauses:
    """A clock that only writes down: pauses before a new try pass at once, a steady while passes when it is told."""

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

    await Supervisor(troubles, lambda: 1.0, pauses.sleep).supervise("devices", "Looking", fails)
    assert len(pauses.between) == 11
    assert all(one <= other for one, other in pairwise(pauses.between))
    assert pauses.between[-1] == 60.0
    assert troubles.sentences() == ()


async def test_it_is_well_once_it_has_gone_on_for_a_while(troubles: Troubles) -> None:
    pauses, begun, fail = Pauses(), asyncio.Event(), asyncio.Event()
    tries = 0

    async def fails_at_first() -> None:
        nonlocal tries
        tries += 1
        if tries == 1:
            raise OSError("no descriptors")
        begun.set()
        await fail.wait()
        fail.clear()
        raise OSError("again")

    keeping = asyncio.create_task(
        Supervisor(troubles, lambda: 1.0, pauses.sleep).supervise("devices", "Looking", fails_at_first)
    )
    await begun.wait()
    assert len(troubles.sentences()) == 1
    pauses.steady.set()
    async with asyncio.timeout(PATIENCE):
        while troubles.sentences():  # noqa: ASYNC110 - another task's word, without an event
            await asyncio.sleep(0)
    # A failure after that begins with the first pause again.
    fail.set()
    async with asyncio.timeout(PATIENCE):
        while len(pauses.between) < 2:  # noqa: ASYNC110
            await asyncio.sleep(0)
    assert pauses.between == [1.0, 1.0]
    keeping.cancel()


async def test_an_error_of_ours_goes_up(troubles: Troubles) -> None:
    async def unwritable() -> None:
        raise JournalUnwritable("disk full")

    with pytest.raises(JournalUnwritable):
        await Supervisor(troubles, lambda: 1.0).supervise("devices", "Looking", unwritable)


async def test_troubles_are_told_once_while_they_last_and_anew_when_they_come_back() -> None:
    feed = Feed()
    troubles = Troubles(feed)
    for found in ({"p-1": "Bad."}, {"p-1": "Bad."}, {}, {"p-1": "Bad."}):
        troubles.stand("proposals", found)
    assert [line.text for line in feed.since(0, "p-1")] == ["Bad.", "Bad."]
    assert troubles.sentences() == ("Bad.",)
    troubles.stand("devices", {"devices": "Gone."})
    assert troubles.sentences() == ("Bad.", "Gone.")


async def test_a_flood_of_troubles_is_counted() -> None:
    feed = Feed()
    troubles = Troubles(feed)
    troubles.stand("proposals", {f"p-{n}": f"Bad {n}." for n in range(1_000)})
    assert len(feed.since(0)) == len(troubles.sentences()) == MOST_TOLD + 1
    assert troubles.sentences()[-1] == f"And {1_000 - MOST_TOLD} more of this kind."
