"""Figures from a real daemon behind its real socket, the audit chain a page at a time, and one answer for all
callers that ask at the same time (L11).
"""

import asyncio
import re
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from prometheus_client.parser import text_string_to_metric_families

from firmware_bridge import DeviceState
from signerd.core.audit import Note
from signerd.core.states import State
from signerd.core.values import Limits
from signerd.daemon import reports as history
from signerd.daemon.reports import ChainReader, Figure, SingleFlight
from signerd.daemon.views import audit_report
from signerd.errors import UnknownProposal
from signerd.journal import Journal, StateFolder
from signerd.loopback.metrics_text import exposition
from tests.support.desk import NETWORK
from tests.support.examples import examples
from tests.support.served import make_outer, served_daemon


@pytest.fixture(scope="module")
def desk(tmp_path_factory):
    folder = tmp_path_factory.mktemp("metrics")
    with served_daemon(folder / "s", make_outer(folder)) as found:
        found.until(lambda: len(found.service.journal.records()) == 1)
        yield found


def read(desk):
    with desk.client() as client:
        text = client.metrics()
    families = {family.name: family for family in text_string_to_metric_families(text)}
    return text, families


def value(family, **labels):
    (found,) = [sample.value for sample in family.samples if sample.labels == labels]
    return found


def test_what_there_is(desk):
    _text, families = read(desk)
    waiting = families["signerd_proposals"]
    assert value(waiting, state="waiting-for-person") == 1
    assert value(families["signerd_platform_reachable"]) == 1
    assert value(families["signerd_platform_heard_age_seconds"]) >= 0
    assert value(families["signerd_feed_position"]) == desk.service.feed.last
    assert value(families["signerd_memory_bytes"]) > 2**20
    assert value(families["signerd_signatures"]) == 0
    assert value(families["signerd_streams"]) == 0
    entries, _head = desk.on_loop(desk.service.journal.head)
    assert sum(sample.value for sample in families["signerd_decisions"].samples) == entries


def test_labels_are_bounded_by_what_the_code_names(desk):
    _text, families = read(desk)
    labels = {sample.labels["state"] for sample in families["signerd_proposals"].samples}
    assert labels == {state.value for state in State}
    labels = {sample.labels["state"] for sample in families["signerd_devices"].samples}
    assert labels == {state.value for state in DeviceState}


def test_who_was_refused_is_counted_by_reason(desk):
    with desk.client() as client, pytest.raises(UnknownProposal):
        client.proposal("nobody")
    _text, families = read(desk)
    assert value(families["signerd_calls_refused"], reason="unknown-proposal") >= 1


def test_l10_no_name_and_no_amount_is_told(desk):
    text, _families = read(desk)
    assert "p-1" not in text
    assert "Treasury" not in text
    assert re.search(r"tb1|bcrt1|[0-9a-f]{64}", text) is None


def test_a_label_cannot_break_a_line():
    text = exposition([Figure("x", "y", {'a"b\n': 1.0}, "l")]).decode()
    (family,) = text_string_to_metric_families(text)
    assert family.samples[0].labels == {"l": 'a"b\n'}


pytestmark = pytest.mark.anyio


@pytest.fixture(scope="module")
def journal(tmp_path_factory):
    folder = tmp_path_factory.mktemp("chain") / "s"
    folder.mkdir(mode=0o700)
    with StateFolder.hold(folder), Journal(folder, network=NETWORK, limits=Limits()) as open_journal:
        for n in range(40):
            open_journal.note(
                Note("pinned" if n % 2 else "signed-in", f"subject-{n}", {"place": n, "Who": "Álice%_"})
            )
        yield open_journal


async def pages(reader, *, newest_first, limit, search=""):
    """All places, page by page, as a program would ask for them."""
    places, after, before = [], None if newest_first else 0, None
    while True:
        page = await reader.entries(search=search, limit=limit, after=after, before=before)
        assert len(page.entries) <= limit
        places += [entry.sequence for entry in page.entries]
        if not page.more:
            return places
        after, before = (None, places[-1]) if newest_first else (places[-1], None)


@pytest.mark.parametrize("newest_first", [True, False])
@pytest.mark.parametrize("limit", [1, 7, 20, 40, 41])
async def test_page_by_page_it_is_the_whole_chain_once(journal, newest_first, limit):
    found = await pages(ChainReader(journal), newest_first=newest_first, limit=limit)
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
    assert len(await pages(ChainReader(journal), newest_first=True, limit=13, search=search)) == count


@settings(max_examples=examples(50))
@given(st.text(max_size=20))
def test_no_search_is_more_than_text(journal, search):
    found = journal.audit_page(search, 100, after=None, before=None)
    assert len(found) <= 40


def test_the_interface_gives_both(tmp_path):
    with served_daemon(tmp_path / "s", make_outer(tmp_path)) as daemon, daemon.client() as client:
        newest = client.audit_entries(limit=1)
        assert [entry.sequence for entry in newest.entries] == [newest.total]
        assert newest.more
        assert [entry.sequence for entry in client.audit_entries(after=0, limit=2).entries] == [1, 2]
        shown = client.settings()
        assert (shown.network, shown.state_folder) == ("regtest", str(tmp_path / "s"))
        assert shown.lowered == shown.rules == ()


async def test_l11_others_are_served_while_the_chain_is_read(journal, monkeypatch):
    monkeypatch.setattr(history, "AT_ONCE", 3)
    turns, done = 0, False

    async def another():
        nonlocal turns
        while not done:
            turns += 1
            await asyncio.sleep(0)

    beside = asyncio.create_task(another())
    report = await ChainReader(journal).verified()
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


@pytest.mark.parametrize("place", range(10))
@pytest.mark.parametrize("how", ["changed", "gone"])
async def test_a_fault_is_told_wherever_it_is(journal, monkeypatch, how, place):
    monkeypatch.setattr(history, "AT_ONCE", 3)
    entries = list(journal.audit())[:10]
    if how == "gone":
        del entries[place]
    else:
        entries[place] = replace(entries[place], at="another time")
    report = await ChainReader(Shown(entries)).verified()
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
