"""Metrics that are read from the database at each scrape."""

from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import Final

from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from custody.server.errors import DatabaseUnavailable, OutcomeUnknown
from custody.server.operations.readiness import Recent
from custody.server.operations.status import StatusFigures, read_figures
from custody.server.rules.ports import Clock
from custody.server.store import Store

# Prometheus usually scrapes each process every 15 seconds; more frequent scrapes get the same figures.
FRESH_SECONDS: Final = 5.0
# Below Prometheus's own ten seconds, so that the other metrics arrive also while the database hangs.
DEADLINE_SECONDS: Final = 3.0


class StoredFigures(Collector):
    """`StatusFigures` as metrics. Every process of a platform reports the same: take the maximum, no sum."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self._store = store
        self._clock = clock
        self._figures = Recent(self._read, fresh_seconds=FRESH_SECONDS)

    def describe(self) -> Iterable[Metric]:
        """Registering it must not ask the database."""
        return ()

    def collect(self) -> Iterable[Metric]:
        try:
            figures = self._figures.ask().result(DEADLINE_SECONDS)
        except (DatabaseUnavailable, OutcomeUnknown, TimeoutError):
            yield GaugeMetricFamily("custody_database_up", _UP, value=0)
            return
        yield GaugeMetricFamily("custody_database_up", _UP, value=1)
        yield from _families(figures, self._clock())

    def _read(self) -> StatusFigures:
        with self._store.read() as db:
            return read_figures(db, self._clock())


_UP = "1 where the database answered in time."


def _families(figures: StatusFigures, now: datetime) -> Iterator[Metric]:
    def gauge(
        name: str, text: str, labels: tuple[str, ...], rows: Iterable[tuple[tuple[str, ...], float]]
    ) -> Metric:
        family = GaugeMetricFamily(name, text, labels=labels)
        for values, figure in rows:
            family.add_metric(values, figure)
        return family

    def age(since: datetime) -> float:
        return max(0.0, (now - since).total_seconds())

    jobs = figures.jobs
    states = (
        ((job.kind, state), count)
        for job in jobs
        for state, count in (("waiting", job.due + job.waiting), ("leased", job.leased), ("dead", job.dead))
    )
    yield gauge("custody_jobs", "Jobs that are not done.", ("kind", "state"), states)
    yield gauge(
        "custody_jobs_oldest_seconds",
        "For how long the oldest job that is neither done nor given up has been there.",
        ("kind",),
        (((job.kind,), age(job.oldest_at)) for job in jobs if job.oldest_at is not None),
    )
    yield gauge(
        "custody_jobs_due_seconds",
        "For how long a job has been due that no worker has begun.",
        ("kind",),
        (((job.kind,), age(job.due_at)) for job in jobs if job.due_at is not None),
    )
    yield gauge(
        "custody_proposals",
        "Proposals under way.",
        ("status",),
        (((group.status,), group.count) for group in figures.proposals),
    )
    yield gauge(
        "custody_proposals_oldest_seconds",
        "For how long the proposal that changed least lately in this status is as it is.",
        ("status",),
        (((group.status,), age(group.oldest_at)) for group in figures.proposals),
    )
    yield gauge(
        "custody_chain_tip_height",
        "As far as the chain was read.",
        ("chain",),
        (((group.chain,), group.height) for group in figures.chains),
    )
    yield gauge(
        "custody_chain_tip_age_seconds",
        "For how long no newer block was read.",
        ("chain",),
        (((group.chain,), age(group.seen_at)) for group in figures.chains),
    )
