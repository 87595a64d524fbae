"""A commit wakes waiting threads, and a change that readers of proposals see raises their workspace's
revision.
"""

import threading

import pytest

from custody.server.requests.changes import Changes, raise_revisions, read_revision, read_revisions
from tests.support.custody import Desk, ok
from tests.support.workspaces import found_workspace


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
    def test_every_step_of_a_proposal(self, funded: Desk) -> None:
        seen = [revision(funded)]

        def moved() -> bool:
            seen.append(revision(funded))
            return seen[-1] > seen[-2]

        psbt_id = ok(funded.propose(1_000))["psbt_id"]
        assert moved(), "proposed"
        funded.wallets()
        ok(funded.admin.get("/api/v1/psbt", workspace_id=funded.workspace_id))
        assert not moved(), "reading does not"
        funded.approve("alice", psbt_id)
        assert moved(), "signed"
        funded.approve("bob", psbt_id)
        assert moved(), "finalised"
        funded.outbox.run_due()
        assert moved(), "broadcast"
        funded.mine()
        assert moved(), "confirmed"
        other = ok(funded.propose(1_000))["psbt_id"]
        assert moved(), "proposed again"
        ok(funded.decline("carol", other))
        assert moved(), "declined"
        funded.world.clock.advance(days=30)
        funded.world.platform.background.expiry()()
        assert moved(), "expired"

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
