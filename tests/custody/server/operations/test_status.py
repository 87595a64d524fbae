"""What waits, in figures, on both databases; a value that many ask for."""

import threading
from datetime import timedelta

import pytest

from custody.server.jobs.outbox import enqueue
from custody.server.operations.readiness import Recent
from custody.server.operations.status import JobFigures, StatusFigures, read_figures
from custody.server.store import Store
from custody.server.store.models import JobRow
from tests.support.platform import START

NOW = START + timedelta(minutes=10)


def test_nothing_waits_in_an_empty_database(store: Store) -> None:
    with store.read() as db:
        assert read_figures(db, NOW) == StatusFigures((), (), ())


def test_jobs_by_kind(store: Store) -> None:
    """What waits for its next try is old and not due: a receiver that is away for days is its tenant's
    trouble, and no alarm of the operator's.
    """
    later, soon = START + timedelta(minutes=1), NOW + timedelta(seconds=1)
    with store.write() as db:
        for subject in ("dead", "leased", "waiting", "lapsed", "done"):
            enqueue(db, "mail", subject, START if subject == "dead" else later)
        enqueue(db, "broadcast", "one", later)
        enqueue(db, "webhook", "tried", START)
        enqueue(db, "webhook", "held", START)
        by_subject = {job.subject: job for job in db.query(JobRow)}
        by_subject["dead"].dead_at = by_subject["done"].done_at = by_subject["lapsed"].lease_until = NOW
        by_subject["leased"].lease_until = by_subject["held"].lease_until = by_subject["tried"].run_at = soon
    with store.read() as db:
        assert read_figures(db, NOW).jobs == (
            JobFigures("broadcast", 1, 0, 0, 0, later, later),
            JobFigures("mail", 2, 0, 1, 1, later, later),
            JobFigures("webhook", 0, 1, 1, 0, START, None),
        )
        assert read_figures(db, soon).jobs[-1].due_at == START, "its lease has lapsed: whoever had it is gone"


SECONDS = 20


class Time:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def test_the_same_answer_or_error_is_given_while_it_is_fresh() -> None:
    time, asked = Time(), []

    def answer() -> int:
        asked.append(1)
        if len(asked) == 2:
            raise OSError
        return len(asked)

    recent = Recent(answer, fresh_seconds=5, monotonic=time)
    for time.now in (0, 0, 4.9):
        assert recent.ask().result(SECONDS) == 1
    for time.now in (5, 9.9):
        with pytest.raises(OSError):
            recent.ask().result(SECONDS)
    time.now = 10
    assert recent.ask().result(SECONDS) == 3


def test_what_hangs_is_asked_once_however_many_wait() -> None:
    time, go, asked = Time(), threading.Event(), []

    def hang() -> str:
        asked.append(1)
        go.wait(SECONDS)
        return "at last"

    recent = Recent(hang, fresh_seconds=5, monotonic=time)
    waiting = [recent.ask() for _ in range(3)]
    with pytest.raises(TimeoutError):
        waiting[0].result(0.01)
    time.now = 60
    assert recent.ask() is waiting[0]
    go.set()
    assert {future.result(SECONDS) for future in waiting} == {"at last"}
    assert len(asked) == 1
