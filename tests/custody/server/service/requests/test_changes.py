"""Who waits is woken by a commit, and by nothing less."""

import threading

import anyio
import pytest

from custody.server.service.requests.changes import Changes


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


@pytest.mark.anyio
async def test_a_task_is_woken_from_another_thread():
    changes = Changes()
    async with anyio.create_task_group() as group:
        group.start_soon(changes.wait_async, 0, 30)
        while not changes._waiters:
            await anyio.lowlevel.checkpoint()
        await anyio.to_thread.run_sync(changes.announce)
    assert changes._waiters == set()


@pytest.mark.anyio
async def test_a_task_that_is_late_does_not_wait():
    changes = Changes()
    changes.announce()
    assert await changes.wait_async(0, 30) == 1


@pytest.mark.anyio
async def test_a_task_times_out():
    changes = Changes()
    assert await changes.wait_async(0, 0.01) == 0
    assert changes._waiters == set()
