"""A server's own threads: several on one outbox, and what they do when the process is told to stop."""

import threading
from collections.abc import Callable
from dataclasses import replace

import pytest
from sqlalchemy import select

from custody.server.jobs.outbox import Finish, JobDone, Outbox, Task, enqueue
from custody.server.jobs.workers import OutboxThreads
from custody.server.store import Store
from custody.server.store.models import JobRow
from multisig import Sats
from tests.support.custody import ok, open_desk
from tests.support.platform import Clock

# Nothing here takes a second; a machine under load may take some.
PATIENCE = 90.0


@pytest.fixture
def running(desk):
    """The desk with its workers at work."""
    background = desk.world.platform.background
    workers = background.workers()
    workers.start()
    yield desk
    workers.stop()


def until(desk, condition):
    """Waits for commits until the condition holds."""
    changes = desk.world.platform.background.tools.changes
    for _ in range(int(PATIENCE / 0.1)):
        seen = changes.version
        if condition():
            return
        changes.wait(seen, 0.1)
    raise AssertionError("it did not happen in time")


def seen_by_workers(desk, *amounts):
    """A deposit that they find by themselves: the watcher is theirs alone while they run."""
    for amount in amounts:
        desk.chain.fund(desk.vault["address"], Sats(amount))
    desk.chain.mine(6)
    until(desk, lambda: desk.wallets()[0]["confirmed_sats"] == sum(amounts))


def test_the_embedded_chain_mines_what_waits_where_it_is_told_how_often(desk):
    background = desk.world.platform.background
    desk.chain.tip()
    background.backends["regtest"] = desk.chain._opened
    assert "mining" not in {loop.name for loop in background._work()}
    sources = [replace(source, block_seconds=5) for source in background.sources]
    (mining,) = [loop for loop in replace(background, sources=sources)._work() if loop.name == "mining"]
    txid = desk.chain.fund(desk.vault["address"], Sats(500_000))
    height = desk.chain.tip().height + 1
    for _ in range(2):
        mining.round()
    assert (mining.seconds, desk.chain.transaction(txid).block.height, desk.chain.tip().height) == (
        5.0, height, height,
    )  # fmt: skip


def test_the_last_approval_waits_for_its_broadcast(tmp_path, database):
    with open_desk(tmp_path / "state", database_url=database, broadcast_wait_seconds=PATIENCE) as desk:
        background = desk.world.platform.background
        desk.deposit(500_000)
        psbt_id = ok(desk.propose(150_000))["psbt_id"]
        workers = background.workers()
        workers.start()
        try:
            desk.approve("alice", psbt_id)
            answer = desk.approve("bob", psbt_id)
        finally:
            workers.stop()
        assert answer["status"] == "BROADCASTING"
        assert answer["txid"] == desk.proposal(psbt_id)["txid_expected"]


def test_workers_complete_payments_by_themselves_and_survive_a_fault_of_ours(running, monkeypatch):
    """One bad row must not stop all work: it is logged and the next is tried."""
    faults = []

    def fail(self, task):
        faults.append(task.subject)
        raise RuntimeError("unexpected")

    psbt_ids = []
    seen_by_workers(running, 200_000, 200_000)
    with monkeypatch.context() as patched:
        patched.setattr("custody.server.network.broadcast.Broadcaster.__call__", fail)
        psbt_ids.append(ok(running.propose(100_000))["psbt_id"])
        running.sign_off(psbt_ids[0])
        until(running, lambda: faults == psbt_ids)
    psbt_ids.append(ok(running.propose(100_000))["psbt_id"])
    running.sign_off(psbt_ids[1])
    until(running, lambda: running.proposal(psbt_ids[1])["status"] == "BROADCASTING")
    running.world.clock.advance(seconds=61)
    until(running, lambda: running.proposal(psbt_ids[0])["status"] == "BROADCASTING")
    running.chain.mine(1)
    for psbt_id in psbt_ids:
        until(running, lambda psbt_id=psbt_id: running.proposal(psbt_id)["status"] == "CONFIRMED")


def done(_db: object) -> JobDone:
    return JobDone()


class Work:
    """A handler in which one job hangs until it is let go."""

    def __init__(self) -> None:
        self.began = threading.Event()
        self.go = threading.Event()
        self.others = threading.Event()

    def __call__(self, task: Task) -> Finish:
        if task.subject == "slow":
            self.began.set()
            assert self.go.wait(PATIENCE)
        elif task.subject == "last":
            self.others.set()
        return done


@pytest.fixture
def work() -> Work:
    return Work()


@pytest.fixture
def begun(store: Store, work: Work) -> Callable[[int], OutboxThreads]:
    def make(threads: int) -> OutboxThreads:
        with store.write() as db:
            for subject in ("slow", *map(str, range(5)), "last"):
                enqueue(db, "work", subject, Clock()())
        pool = OutboxThreads("work", Outbox(store, Clock(), "one", {"work": work}), threads)
        pool.round()
        assert work.began.wait(PATIENCE)
        return pool

    return make


def open_subjects(store: Store) -> dict[str, str | None]:
    with store.read() as db:
        return {
            job.subject: job.lease_owner for job in db.scalars(select(JobRow).where(JobRow.done_at.is_(None)))
        }


def test_a_slow_job_does_not_hold_up_the_others(store, work, begun) -> None:
    pool = begun(2)
    assert work.others.wait(PATIENCE)
    work.go.set()
    pool.stop()
    pool.join(PATIENCE)
    assert open_subjects(store) == {}


def test_a_stopping_worker_finishes_its_job_and_takes_no_more(store, work, begun) -> None:
    pool = begun(1)
    pool.stop()
    work.go.set()
    pool.join(PATIENCE)
    pool.round()
    assert open_subjects(store) == dict.fromkeys((*map(str, range(5)), "last"))


def test_a_job_that_does_not_end_in_time_is_released(store, work, begun) -> None:
    pool = begun(1)
    assert open_subjects(store)["slow"] == "one"
    pool.stop()
    pool.join(0.01)
    assert open_subjects(store)["slow"] is None
    work.go.set()
    pool.join(PATIENCE)
