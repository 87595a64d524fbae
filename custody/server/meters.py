"""Counters and histograms of a running platform, which has its own registry.
Label values come from fixed tables: routes, kinds, outcomes, chains. No id, no address and nothing that a
caller chose becomes one, so that their number is bounded and no user's activity is shown (P49).
"""

from functools import partial

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    GCCollector,
    Histogram,
    PlatformCollector,
    ProcessCollector,
)

# A read takes milliseconds, a password's hash a tenth of a second; deadlines end after ten seconds.
_REQUEST_SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10)
_WRITE_SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1, 2.5, 10)
_JOB_SECONDS = (0.01, 0.05, 0.1, 0.5, 1, 5, 15, 60)
# Blocks that a reorganisation removed: one is common, seven never happened by chance.
_DEPTHS = (1, 2, 3, 6, 10, 100)


class Meters:
    """``registry`` is what a scrape reads; a new one by default."""

    def __init__(self, registry: CollectorRegistry | None = None) -> None:
        self.registry = registry or CollectorRegistry()
        counter = partial(Counter, registry=self.registry)
        gauge = partial(Gauge, registry=self.registry)
        histogram = partial(Histogram, registry=self.registry)
        self.requests = counter(
            "custody_http_requests",
            "Requests answered; 429 is what rate limits refused.",
            ["route", "method", "status"],
        )
        self.request_seconds = histogram(
            "custody_http_request_seconds",
            "How long an answer took; requests that asked to wait for a change are left out.",
            ["route", "method"],
            buckets=_REQUEST_SECONDS,
        )
        self.in_flight = gauge("custody_http_requests_in_flight", "Requests under way, long polls included.")
        self.long_polls = gauge("custody_long_polls", "Long polls that wait.")
        self.write_wait_seconds = histogram(
            "custody_database_write_wait_seconds",
            "How long a writer waited for its turn, in its process and at the database.",
            buckets=_WRITE_SECONDS,
        )
        self.write_hold_seconds = histogram(
            "custody_database_write_hold_seconds",
            "How long a writer held up the others, to the end of its commit.",
            buckets=_WRITE_SECONDS,
        )
        self.database_troubles = counter(
            "custody_database_troubles",
            "Transactions that the database did not serve: busy, away, or undecided.",
            ["trouble"],
        )
        self.jobs = counter(
            "custody_job_attempts",
            "Attempts at jobs: done, again (later), dead (given up), failed (an error of ours), lost "
            "(another took over).",
            ["kind", "outcome"],
        )
        self.job_seconds = histogram(
            "custody_job_seconds", "How long an attempt took.", ["kind"], buckets=_JOB_SECONDS
        )
        self.broadcasts = counter(
            "custody_broadcasts",
            "What the network said of final transactions: accepted, already-known, unavailable, or why it "
            "was refused.",
            ["chain", "outcome"],
        )
        self.proposals = counter(
            "custody_proposals_moved",
            "Proposals that came into a status, in transactions of this process.",
            ["status"],
        )
        self.mails = counter(
            "custody_mails", "Mails handed to the mail server: sent, unavailable, refused.", ["outcome"]
        )
        self.backend_up = gauge(
            "custody_chain_backend_up",
            "1 where the chain's backend answered this process the last time it was asked.",
            ["chain"],
        )
        self.answered_at = gauge(
            "custody_chain_answered_timestamp_seconds",
            "When the chain's backend last answered this process.",
            ["chain"],
        )
        self.backend_tip = gauge(
            "custody_chain_backend_tip_height", "The tip as the backend told it last.", ["chain"]
        )
        self.reorganisation_depth = histogram(
            "custody_chain_reorganisation_depth_blocks",
            "Reorganisations that the watcher of this process met, by how many blocks they took away.",
            ["chain"],
            buckets=_DEPTHS,
        )

    def watch_process(self) -> None:
        """The process's own memory, processor time and open files; for a server, once."""
        ProcessCollector(registry=self.registry)
        PlatformCollector(registry=self.registry)
        GCCollector(registry=self.registry)
