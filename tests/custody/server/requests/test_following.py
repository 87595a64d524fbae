"""A commit wakes waiting threads, and long polls exactly when their workspace changes, in whichever process:
a change that readers of proposals see raises its revision.
"""

import threading
from collections.abc import AsyncIterator, Callable

import anyio
import anyio.lowlevel
import pytest

from custody.server.requests import changes as module
from custody.server.requests.changes import Changes, LongPolls, raise_revisions, read_revision, read_revisions
from custody.server.store import Store
from tests.support.custody import Desk, ok
from tests.support.workspaces import found_workspace

LONG = 30
pytestmark = pytest.mark.anyio


@pytest.fixture
def places(store: Store) -> tuple[int, int]:
    with store.write() as db:
        return found_workspace(db, "Main"), found_workspace(db, "Other")


def move(store: Store, changes: Changes, workspace_id: int) -> None:
    with store.write() as db:
        changes.moved(db, workspace_id)


async def waiting(following: LongPolls, count: int) -> None:
    with anyio.fail_after(LONG):
        while following.open != count:
            await anyio.lowlevel.checkpoint()


async def ended(following: LongPolls) -> None:
    """Without a waiter there is no follower: no thread reads a database that the test is about to close."""
    with anyio.fail_after(LONG):
        while following._thread is not None:
            await anyio.lowlevel.checkpoint()


@pytest.fixture
async def make_following(store: Store) -> AsyncIterator[Callable[..., LongPolls]]:
    made: list[LongPolls] = []

    def make(changes: Changes | None = None) -> LongPolls:
        made.append(LongPolls(store, changes or Changes()))
        return made[-1]

    yield make
    for following in made:
        await ended(following)


async def test_a_commit_of_this_process_wakes_the_polls_of_its_workspace_alone(store, make_following, places):
    changes = Changes()
    following, told = make_following(changes), []

    async def poll(workspace_id: int) -> None:
        told.append((workspace_id, await following.wait(workspace_id, 0, LONG)))

    async with anyio.create_task_group() as group:
        for workspace_id in (*places, places[0]):
            group.start_soon(poll, workspace_id)
        await waiting(following, 3)
        await anyio.to_thread.run_sync(move, store, changes, places[0])
        await waiting(following, 1)
        assert told == [(places[0], True)] * 2
        changes.close()
    assert told[2:] == [(places[1], False)]
    assert following.open == 0


async def test_a_commit_of_another_process_is_found_by_looking(store, make_following, places, monkeypatch):
    monkeypatch.setattr(module, "FOLLOW_SECONDS", 0.01)
    following = make_following()

    def elsewhere() -> None:
        with store.write() as db:
            raise_revisions(db, [places[0]])

    async with anyio.create_task_group() as group:
        group.start_soon(following.wait, places[0], 0, LONG)
        await waiting(following, 1)
        await anyio.to_thread.run_sync(elsewhere)
        await waiting(following, 0)


async def test_what_was_committed_between_the_look_and_the_wait_is_not_missed(store, make_following, places):
    """This process announces its own commits; the follower's first look finds another's. Neither waits a
    second.
    """
    changes = Changes()
    following = make_following(changes)
    assert not await following.wait(places[0], 0, 0.01)
    await anyio.to_thread.run_sync(move, store, changes, places[0])
    assert await following.wait(places[0], 0, LONG)
    with anyio.fail_after(LONG):
        assert await make_following().wait(places[0], 0, LONG)


async def test_a_poll_ends_at_its_time_out_or_with_the_server_and_no_thread_follows_without_polls(
    store, make_following, places
):
    changes = Changes()
    following = make_following(changes)
    move(store, Changes(), places[0])
    assert not await following.wait(places[0], 1, 0.01)
    assert following.open == 0
    await ended(following)
    changes.close()
    assert not await following.wait(places[0], 1, LONG)


async def test_a_database_that_is_away_ends_no_poll(store, make_following, places, monkeypatch):
    """The polls themselves ask again, and tell their callers."""
    monkeypatch.setattr(module, "FOLLOW_SECONDS", 0.01)
    following = make_following()
    asked = []

    def fail(_db, workspace_ids):
        asked.append(workspace_ids)
        if len(asked) < 3:
            raise module.DatabaseUnavailable("The database cannot be reached.")
        return {places[0]: 1}

    monkeypatch.setattr(module, "read_revisions", fail)
    with anyio.fail_after(LONG):
        assert await following.wait(places[0], 0, LONG)
    assert asked == [(places[0],)] * 3


def test_a_thread_is_woken():
    changes = Changes()
    woken = threading.Event()

    def wait():
        changes.wait(0, 30)
        woken.set()

    thread = threading.Thread(target=wait)
    thread.start()
    assert changes.wait(0, 0.01) == 0, "nothing new ends at the time out"
    changes.announce()
    assert woken.wait(10)
    thread.join()


def test_commits_and_the_closing_are_announced_and_what_is_rolled_back_is_not(store):
    changes = Changes()
    with store.write() as db:
        first, second = (found_workspace(db, name) for name in ("Main", "Other"))

    def move(error=None):
        with store.write() as db:
            for workspace_id in (first, first, second):
                changes.moved(db, workspace_id)
            assert changes.version == 0, "not before the commit"
            if error is not None:
                raise error

    with pytest.raises(RuntimeError):
        move(RuntimeError())
    with store.read() as db:
        assert (changes.version, read_revision(db, first)) == (0, 0)
    move()
    with store.read() as db:
        assert (changes.version, read_revisions(db, [first, second])) == (1, {first: 1, second: 1})
    changes.close()
    assert changes.version == 2


def revision(desk: Desk, workspace_id: int | None = None) -> int:
    with desk.store.read() as db:
        return read_revision(db, workspace_id or desk.workspace_id)


class TestWhatMovesAWorkspace:
    def test_a_block_where_proposals_stand_in_one(self, funded: Desk) -> None:
        """Their number of confirmations is another one: the record changes, and so must what a poll waits
        for.
        """
        with funded.store.write() as db:
            elsewhere = found_workspace(db, "Elsewhere")
            raise_revisions(db, [elsewhere])
        psbt_id = ok(funded.propose(1_000))["psbt_id"]
        before = revision(funded)
        funded.mine()
        assert revision(funded) == before, "nothing stands in a block yet"
        funded.sign_off(psbt_id)
        funded.settle()
        funded.mine()
        confirmed, told = revision(funded), funded.proposal(psbt_id)["confirmations"]
        assert told == 1
        funded.watcher.look()
        assert revision(funded) == confirmed, "no block, no move"
        funded.mine()
        assert revision(funded) == confirmed + 1
        assert funded.proposal(psbt_id)["confirmations"] == 2
        assert revision(funded, elsewhere) == 1
