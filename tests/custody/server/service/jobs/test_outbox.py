"""The outbox: one open job for each subject, leases, retries, and what happens to a worker that dies."""

from datetime import timedelta

import pytest
from sqlalchemy import select

from custody.server.service.jobs.outbox import LEASE, Again, Dead, Done, Outbox, enqueue
from custody.server.store.models import Job
from tests.support.platform import Clock


@pytest.fixture
def clock():
    return Clock()


def worker(store, clock, handler, owner="one"):
    return Outbox(store, clock, owner, {"work": handler})


def add(store, clock, subject="a", kind="work", **payload):
    with store.write() as db:
        enqueue(db, kind, subject, clock(), payload)


def jobs(store):
    with store.read() as db:
        return list(db.scalars(select(Job).order_by(Job.id)))


def always(verdict):
    return lambda _task: lambda _db: verdict


def test_a_job_is_done_once(store, clock):
    add(store, clock, what="ever")
    seen = []

    def handler(task):
        seen.append((task.subject, task.payload, task.attempts))
        return lambda _db: Done({"answer": 42})

    assert worker(store, clock, handler).run_due() == 1
    assert worker(store, clock, handler).run_due() == 0
    assert seen == [("a", {"what": "ever"}, 1)]
    (job,) = jobs(store)
    assert job.payload == {"what": "ever", "result": {"answer": 42}}


def test_one_open_job_for_each_subject_and_a_new_one_after_it(store, clock):
    add(store, clock)
    add(store, clock)
    assert len(jobs(store)) == 1
    worker(store, clock, always(Done())).run_due()
    add(store, clock)
    assert len(jobs(store)) == 2


def test_asking_again_makes_a_waiting_job_due(store, clock):
    add(store, clock)
    one = worker(store, clock, always(Again("later")))
    for _ in range(5):
        one.run_due()
        clock.advance(seconds=60)
    one.run_due()
    assert one.run_due() == 0
    add(store, clock)
    assert one.run_due() == 1


def test_a_dead_job_is_kept_with_its_reason_and_never_run_again(store, clock):
    add(store, clock)
    one = worker(store, clock, always(Dead("no use")))
    assert one.run_due() == 1
    clock.advance(days=365)
    assert one.run_due() == 0
    (job,) = jobs(store)
    assert (job.last_error, job.dead_at is not None, job.done_at) == ("no use", True, None)


def test_a_leased_job_is_nobody_elses_until_the_lease_lapses(store, clock):
    add(store, clock)

    class Killed(BaseException):
        pass

    def die(_task):
        raise Killed

    with pytest.raises(Killed):
        worker(store, clock, die, "one").run_due()
    two = worker(store, clock, always(Done()), "two")
    assert two.run_due() == 0
    clock.now += LEASE - timedelta(seconds=1)
    assert two.run_due() == 0
    clock.now += timedelta(seconds=1)
    assert two.run_due() == 1
    assert jobs(store)[0].attempts == 2


def test_who_lost_the_lease_does_not_write(store, clock):
    """It slept through its lease; another did the work meanwhile."""
    add(store, clock)
    two = worker(store, clock, always(Done({"by": "two"})), "two")

    def slow(_task):
        clock.now += LEASE
        assert two.run_due() == 1
        return lambda _db: Done({"by": "one"})

    worker(store, clock, slow, "one").run_due()
    (job,) = jobs(store)
    assert job.payload["result"] == {"by": "two"}


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


def test_other_kinds_are_left_alone(store, clock):
    add(store, clock, kind="else")
    assert worker(store, clock, always(Done())).run_due() == 0


def test_jobs_are_done_in_the_order_they_fell_due(store, clock):
    for subject in "abc":
        add(store, clock, subject)
        clock.advance(seconds=1)
    seen = []

    def handler(task):
        seen.append(task.subject)
        return lambda _db: Done()

    worker(store, clock, handler).run_due()
    assert seen == ["a", "b", "c"]
