"""The audit chain a page at a time, and one answer for all
callers that ask at the same time (L11).
"""

import asyncio
from dataclasses import replace

import pytest

from signerd.core.audit import Note
from signerd.daemon import reports as history
from signerd.daemon.reports import audit_entries, verified
from signerd.daemon.views import audit_report
from signerd.feed import SingleFlight
from signerd.journal import held
from tests.support.desk import open_journal

pytestmark = pytest.mark.anyio


@pytest.fixture(scope="module")
def journal(tmp_path_factory):
    folder = tmp_path_factory.mktemp("chain") / "s"
    folder.mkdir(mode=0o700)
    with held(folder), open_journal(folder) as made:
        for n in range(40):
            made.note(
                Note("pinned" if n % 2 else "signed-in", f"subject-{n}", {"place": n, "Who": "Álice%_"})
            )
        yield made


async def pages(journal, *, newest_first, limit, search=""):
    """All places, page by page, as a program would ask for them."""
    places, after, before = [], None if newest_first else 0, None
    while True:
        page = await audit_entries(journal, search=search, limit=limit, after=after, before=before)
        assert len(page.entries) <= limit
        places += [entry.sequence for entry in page.entries]
        if not page.more:
            return places
        after, before = (None, places[-1]) if newest_first else (places[-1], None)


@pytest.mark.parametrize("newest_first", [True, False])
@pytest.mark.parametrize("limit", [7, 20, 40])
async def test_page_by_page_it_is_the_whole_chain_once(journal, newest_first, limit):
    found = await pages(journal, newest_first=newest_first, limit=limit)
    assert (found[::-1] if newest_first else found) == list(range(1, 41))


@pytest.mark.parametrize(
    ("search", "count"),
    [
        ("PINNED", 20),
        ("subject-7", 1),
        ('"place":7', 1),
        ("álice", 0),
        ("Álice", 40),
        ("%", 40),
        ("_x", 0),
        ("'; DROP", 0),
    ],
)
async def test_a_search_is_for_the_text_itself(journal, search, count):
    assert len(await pages(journal, newest_first=True, limit=13, search=search)) == count


async def test_l11_others_are_served_while_the_chain_is_read(journal, monkeypatch):
    monkeypatch.setattr(history, "AT_ONCE", 3)
    turns, done = 0, False

    async def another():
        nonlocal turns
        while not done:
            turns += 1
            await asyncio.sleep(0)

    beside = asyncio.create_task(another())
    report = await verified(journal)
    done = True
    await beside
    assert turns > 40 // 3
    assert report == audit_report(tuple(journal.audit()))
    assert (report.entries, report.fault) == (40, None)


class Shown:
    """A chain with the given entries."""

    def __init__(self, entries):
        self.entries = entries

    def audit(self, after=0):
        return (entry for entry in self.entries if entry.sequence > after)


@pytest.mark.parametrize("how", ["changed", "gone"])
async def test_a_fault_is_told_wherever_it_is(journal, monkeypatch, how):
    monkeypatch.setattr(history, "AT_ONCE", 3)
    for place in range(10):
        entries = list(journal.audit())[:10]
        entries[place : place + 1] = [] if how == "gone" else [replace(entries[place], at="another time")]
        report = await verified(Shown(entries))
        assert report == audit_report(entries)
        # A tail that was cut shows by its hash alone.
        assert (report.fault is None) == (how == "gone" and place == 9)


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
