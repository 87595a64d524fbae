"""Who waits is woken by a commit, and by nothing less."""

import threading

import pytest

from custody.server.service.requests.changes import Changes
from custody.server.service.requests.revisions import read_revision
from tests.support.workspaces import found_workspace


def test_a_commit_is_announced_and_a_rollback_is_not(store):
    changes = Changes()
    with store.write() as db:
        changes.after_commit(db)
        assert changes.version == 0
    assert changes.version == 1

    def fail():
        with store.write() as db:
            changes.after_commit(db)
            raise RuntimeError

    with pytest.raises(RuntimeError):
        fail()
    assert changes.version == 1


def test_a_thread_is_woken():
    changes = Changes()
    woken = threading.Event()

    def wait():
        changes.wait(0, 30)
        woken.set()

    thread = threading.Thread(target=wait)
    thread.start()
    changes.announce()
    assert woken.wait(10)
    thread.join()


def test_nothing_new_ends_at_the_time_out():
    assert Changes().wait(0, 0.01) == 0


def test_a_listener_hears_which_workspaces_moved_and_of_the_closing(store):
    changes, heard = Changes(), []
    changes.listen(heard.append)
    with store.write() as db:
        first, second = (found_workspace(db, name) for name in ("Main", "Other"))
    with store.write() as db:
        changes.moved(db, first)
        changes.moved(db, first)
        changes.moved(db, second)
        assert heard == []
    assert heard == [{first: 1, second: 1}]
    with store.write() as db:
        changes.moved(db, second)
    assert heard[1:] == [{second: 2}]
    assert changes.version == 2
    changes.close()
    assert heard[2:] == [None]


def test_a_move_that_is_rolled_back_is_none(store):
    changes, heard = Changes(), []
    changes.listen(heard.append)
    with store.write() as db:
        workspace_id = found_workspace(db, "Main")

    def fail():
        with store.write() as db:
            changes.moved(db, workspace_id)
            raise RuntimeError

    with pytest.raises(RuntimeError):
        fail()
    assert (heard, changes.version) == ([], 0)
    with store.read() as db:
        assert read_revision(db, workspace_id) == 0
