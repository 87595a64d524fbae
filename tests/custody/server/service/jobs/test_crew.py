"""Several hands on one outbox, and what they do when the process is told to stop."""

import threading
from collections.abc import Callable

import pytest
from sqlalchemy import select

from custody.server.service.jobs.outbox import Done, Finish, Outbox, Task, enqueue
from custody.server.service.jobs.workers import OutboxThreads, survive
from custody.server.store import Store
from custody.server.store.models import Job
from tests.support.platform import Clock

PATIENCE = 90.0


def done(_db: object) -> Done:
    return Done()


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
def crew_of(store: Store, work: Work) -> Callable[[int], OutboxThreads]:
    def make(threads: int) -> OutboxThreads:
        with store.write() as db:
            for subject in ("slow", *map(str, range(5)), "last"):
                enqueue(db, "work", subject, Clock()())
        return OutboxThreads(
            Outbox(store, Clock(), "one", {"work": work}), threads, lambda act: survive("crew", act)
        )

    return make


def open_subjects(store: Store) -> dict[str, str | None]:
    with store.read() as db:
        return {job.subject: job.lease_owner for job in db.scalars(select(Job).where(Job.done_at.is_(None)))}


def test_a_slow_job_does_not_hold_up_the_others(
    store: Store, work: Work, crew_of: Callable[[int], OutboxThreads]
) -> None:
    pool = crew_of(2)
    pool.round()
    assert work.others.wait(PATIENCE)
    assert work.began.is_set()
    work.go.set()
    pool.stop()
    pool.join(PATIENCE)
    assert open_subjects(store) == {}


def test_one_hand_does_one_after_the_other(work: Work, crew_of: Callable[[int], OutboxThreads]) -> None:
    pool = crew_of(1)
    pool.round()
    assert work.began.wait(PATIENCE)
    pool.round()
    assert not work.others.is_set()
    work.go.set()
    assert work.others.wait(PATIENCE)
    pool.stop()
    pool.join(PATIENCE)


def test_told_to_stop_it_ends_what_is_under_way_and_takes_nothing_more(
    store: Store, work: Work, crew_of: Callable[[int], OutboxThreads]
) -> None:
    pool = crew_of(1)
    pool.round()
    assert work.began.wait(PATIENCE)
    pool.stop()
    work.go.set()
    pool.join(PATIENCE)
    pool.round()
    assert open_subjects(store) == dict.fromkeys((*map(str, range(5)), "last"))


def test_what_does_not_end_in_time_is_given_back(
    store: Store, work: Work, crew_of: Callable[[int], OutboxThreads]
) -> None:
    pool = crew_of(1)
    pool.round()
    assert work.began.wait(PATIENCE)
    assert open_subjects(store)["slow"] == "one"
    pool.stop()
    pool.join(0.01)
    assert open_subjects(store)["slow"] is None
    work.go.set()
    pool.join(PATIENCE)
