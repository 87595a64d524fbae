"""What waits, in figures, on both databases."""

from datetime import timedelta

from custody.server.jobs.outbox import enqueue
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
