"""The outbox: one open job for each subject, leases, retries, and workers that die."""

import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import pytest
from sqlalchemy import select, text

from custody.server.errors import ChainUnavailable, NotFound
from custody.server.jobs.leases import LEASE, MAX_HOLD
from custody.server.jobs.outbox import (
    MAX_FAILURES,
    MAX_RETRY,
    Again,
    JobDone,
    Outbox,
    enqueue,
)
from custody.server.store import Store
from custody.server.store.models import JobRow
from tests.support.patience import PATIENCE


def worker(store, clock, handler, owner="one"):
    return Outbox(store, clock, owner, {"work": handler})


def add(store, clock, subject="a", kind="work", **payload):
    with store.write() as db:
        enqueue(db, kind, subject, clock(), payload)


def jobs(store):
    with store.read() as db:
        return list(db.scalars(select(JobRow).order_by(JobRow.id)))


def always(verdict):
    return lambda _task: lambda _db: verdict


def into(done):
    """Notes each job's subject."""

    def handler(task):
        done.append(task.subject)
        return lambda _db: JobDone()

    return handler


def test_each_job_is_done_once_in_the_order_they_fell_due(store, clock):
    for subject in "abc":
        add(store, clock, subject, what=subject)
        clock.advance(seconds=1)
    seen = []

    def handler(task):
        seen.append((task.subject, task.payload, task.attempts))
        return lambda _db: JobDone()

    assert [worker(store, clock, handler).run_due() for _ in range(2)] == [3, 0]
    assert seen == [(subject, {"what": subject}, 1) for subject in "abc"]
    assert [(job.payload, job.done_at) for job in jobs(store)] == [
        ({"what": each}, clock()) for each in "abc"
    ]


def test_one_open_job_for_each_subject_and_a_new_one_after_it(store, clock):
    add(store, clock)
    add(store, clock)
    assert len(jobs(store)) == 1
    worker(store, clock, always(JobDone())).run_due()
    add(store, clock)
    assert len(jobs(store)) == 2
    add(store, clock, kind="else")
    assert worker(store, clock, always(JobDone())).run_due() == 1, "other kinds are left alone"


def test_a_leased_job_is_not_taken_until_the_lease_lapses(store, clock):
    add(store, clock)

    with pytest.raises(Killed):
        worker(store, clock, raises(Killed()), "one").run_due()
    two = worker(store, clock, always(JobDone()), "two")
    assert two.run_due() == 0
    clock.now += LEASE - timedelta(seconds=1)
    assert two.run_due() == 0
    clock.now += timedelta(seconds=1)
    assert two.run_due() == 1
    assert jobs(store)[0].attempts == 2


@pytest.mark.parametrize("how", ["slept", "hung", "gave it back"])
def test_who_lost_the_lease_does_not_write(store, clock, how):
    """The first comes back while another is at it: another worker, or another thread of the same one."""
    add(store, clock)
    written, begun, go = [], threading.Event(), threading.Event()

    def work(_task):
        by = "another" if begun.is_set() else "the first"
        if by == "another":
            go.set()
            first.result(PATIENCE)
        else:
            begun.set()
            assert go.wait(PATIENCE)
        return lambda _db: written.append(by) or JobDone()

    one, two = (worker(store, clock, work, owner) for owner in ("one", "two"))
    with ThreadPoolExecutor(1) as pool:
        first = pool.submit(one.run_due)
        assert begun.wait(PATIENCE)
        match how:
            case "slept":
                clock.now += LEASE
            case "hung":
                clock.now += MAX_HOLD + LEASE
                one.renew()
            case "gave it back":
                one.release()
        assert (one if how == "slept" else two).run_due() == 1
    (job,) = jobs(store)
    assert written == ["another"]
    assert (job.done_at is not None, job.failures) == (True, 0)


def test_the_effect_and_the_end_of_the_job_are_one_transaction(store, clock):
    add(store, clock)

    def handler(_task):
        def finish(db):
            enqueue(db, "work", "effect", clock())
            raise RuntimeError("the disk is full")

        return finish

    assert worker(store, clock, handler).run_due() == 1
    (job,) = jobs(store)
    assert (job.subject, job.done_at, job.failures) == ("a", None, 1)


def raises(error):
    def handler(_task):
        raise error

    return handler


def wait_out(clock):
    clock.now += MAX_RETRY


def test_a_handler_that_raises_is_tried_again_and_then_given_up(store, clock):
    add(store, clock)
    add(store, clock, "b")
    one = worker(store, clock, raises(KeyError("what nobody should read")))
    assert one.run_due() == 2
    assert one.run_due() == 0, "not at once"
    for _ in range(MAX_FAILURES):
        wait_out(clock)
        one.run_due()
    first, second = jobs(store)
    assert first.dead_at is not None
    assert second.dead_at is not None
    assert first.attempts == MAX_FAILURES
    assert first.last_error.startswith("KeyError in test_outbox.py, line ")


def test_a_chain_that_is_away_is_no_failure(store, clock):
    add(store, clock)
    one = worker(store, clock, raises(ChainUnavailable("The node does not answer.")))
    for _ in range(MAX_FAILURES + 1):
        one.run_due()
        wait_out(clock)
    (job,) = jobs(store)
    assert (job.dead_at, job.failures, job.last_error) == (None, 0, "The node does not answer.")
    worker(store, clock, raises(NotFound("There is no such proposal."))).run_due()
    (job,) = jobs(store)
    assert (job.failures, job.last_error) == (1, "There is no such proposal."), "in its own words"


def test_what_must_not_end_is_never_given_up(store, clock):
    """A signed payment whose coins are locked: STALLED is tried for ever, at most a minute apart (P14)."""
    add(store, clock)
    one = Outbox(store, clock, "one", {"work": raises(KeyError())}, endless={"work"})
    for _ in range(3 * MAX_FAILURES):
        wait_out(clock)
        assert one.run_due() == 1
    assert jobs(store)[0].dead_at is None


class Killed(BaseException):
    """The process ends: nothing after it is run."""


def test_a_job_that_kills_its_worker_is_given_up_before_it_killed_them_all(store, clock):
    add(store, clock, "poison")
    killed = 0
    for _ in range(2 * MAX_FAILURES):
        try:
            worker(store, clock, raises(Killed()), f"worker {killed}").run_due()
        except Killed:
            killed += 1
        clock.now += LEASE + MAX_RETRY
    assert killed == MAX_FAILURES
    (job,) = jobs(store)
    assert job.dead_at is not None
    assert job.last_error == "The worker ended in the middle of it."


def test_after_a_second_death_the_job_is_not_retried_at_once(store, clock):
    add(store, clock, "poison")
    add(store, clock, "good")
    for _ in range(2):
        with pytest.raises(Killed):
            worker(store, clock, raises(Killed())).run_due()
        clock.now += LEASE
    done = []
    worker(store, clock, into(done)).run_due()
    assert done == ["good"]
    wait_out(clock)
    worker(store, clock, into(done)).run_due()
    assert done == ["good", "poison"]


def test_a_heartbeat_keeps_what_takes_longer_than_a_lease(store, clock):
    add(store, clock)
    two = worker(store, clock, always(JobDone()), "two")

    def slow(_task):
        for _ in range(5):
            clock.now += LEASE / 2
            one.renew()
            assert two.run_due() == 0
        return lambda _db: JobDone()

    one = worker(store, clock, slow, "one")
    one.run_due()
    assert jobs(store)[0].done_at is not None


def test_several_workers_take_different_jobs(database, store, clock):
    """Two programs with connections of their own: no job is taken twice, none is left."""
    for number in range(30):
        add(store, clock, str(number))
    other, taken = Store.open(database), []
    threads = [
        threading.Thread(target=worker(each, clock, into(taken), f"{number}").run_due)
        for number, each in enumerate((store, other, store, other))
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    other.close()
    assert sorted(taken, key=int) == [str(number) for number in range(30)]


def test_a_handler_with_a_timetable_of_its_own_says_when(store, clock):
    add(store, clock)
    one = worker(store, clock, always(Again("later", timedelta(hours=2))))
    assert one.run_due() == 1
    clock.advance(minutes=119)
    assert one.run_due() == 0
    clock.advance(minutes=1)
    assert one.run_due() == 1
    assert one.run_due() == 0
    add(store, clock)
    assert one.run_due() == 1, "asked for again it is due at once"


ALTERED = {
    "run_at": "", "payload": "nonsense", "attempts": "many", "lease_until": "1", "failures": "many",
    "lease_owner": 7, "subject": "", "trace_id": "nonsense", "last_error": 7,
}  # fmt: skip


@pytest.mark.parametrize("column", ALTERED)
def test_p102_an_altered_job_keeps_no_other_from_being_done(store, clock, column):
    """Whatever its row holds: it is done, tried again or given up, and what comes behind it is done."""
    if store._database.writing.dialect.name != "sqlite":
        pytest.skip("the types of PostgreSQL's columns refuse most of these values")
    add(store, clock, "first")
    with store._database.writing.begin() as db:
        db.execute(text(f"UPDATE jobs SET {column} = :value"), {"value": ALTERED[column]})
    add(store, clock, "second")
    done = []
    worker(store, clock, into(done)).run_due()
    assert "second" in done
    (altered, other) = jobs(store)
    assert other.done_at == clock()
    assert altered.done_at == clock() or altered.dead_at == clock()
