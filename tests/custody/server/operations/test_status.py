"""What waits, in figures, on both databases."""

from datetime import timedelta

from custody.server.jobs.outbox import enqueue
from custody.server.operations.status import JobFigures, StatusFigures, read_figures
from custody.server.store import Store
from custody.server.store.models import JobRow
from tests.support.custody import Desk, ok
from tests.support.platform import START

NOW = START + timedelta(minutes=10)


def test_nothing_waits_in_an_empty_database(store: Store) -> None:
    with store.read() as db:
        assert read_figures(db, NOW) == StatusFigures((), (), ())


def test_jobs_by_kind(store: Store) -> None:
    later = START + timedelta(minutes=1)
    with store.write() as db:
        for subject in ("dead", "leased", "waiting", "lapsed", "done"):
            enqueue(db, "mail", subject, START if subject == "dead" else later)
        enqueue(db, "broadcast", "one", later)
        by_subject = {job.subject: job for job in db.query(JobRow)}
        by_subject["dead"].dead_at = NOW
        by_subject["done"].done_at = NOW
        by_subject["leased"].lease_until = NOW + timedelta(seconds=1)
        by_subject["lapsed"].lease_until = NOW
    with store.read() as db:
        figures = read_figures(db, NOW)
    assert figures.jobs == (
        JobFigures("broadcast", 1, 0, 0, 0, later, later),
        JobFigures("mail", 2, 0, 1, 1, later, later),
    )


def test_what_waits_for_its_next_try_is_old_and_not_due(store: Store) -> None:
    """A webhook's receiver that is away for days is its tenant's trouble, and no alarm of the operator's."""
    with store.write() as db:
        enqueue(db, "webhook", "tried", START)
        enqueue(db, "webhook", "leased", START)
        by_subject = {job.subject: job for job in db.query(JobRow)}
        by_subject["tried"].run_at = NOW + timedelta(seconds=1)
        by_subject["leased"].lease_until = NOW + timedelta(seconds=1)
    with store.read() as db:
        assert read_figures(db, NOW).jobs == (JobFigures("webhook", 0, 1, 1, 0, START, None),)
        (later,) = read_figures(db, NOW + timedelta(minutes=1)).jobs
    assert later.due_at == START, "its lease has lapsed: whoever had it is gone"


def test_proposals_under_way_and_the_chain(funded: Desk) -> None:
    first = ok(funded.propose(1_000))["psbt_id"]
    funded.world.clock.advance(minutes=3)
    ok(funded.propose(2_000))
    funded.reject(first)
    funded.mine()
    now = funded.world.clock.now
    with funded.world.platform.services.store.read() as db:
        figures = read_figures(db, now)
    (waiting,), (chain,), tip = figures.proposals, figures.chains, funded.chain.tip()
    assert (waiting.status, waiting.count, waiting.oldest_at) == ("PENDING", 1, now)
    assert (chain.chain, chain.height, chain.block_hash) == ("regtest", tip.height, tip.hash)
    assert chain.seen_at == now
