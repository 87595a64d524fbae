"""``custody status``: the state of the platform at a glance."""

from collections.abc import Iterator
from dataclasses import asdict
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

import click

from custody._version import __version__
from custody.cli.common import json_option
from custody.server.cli.common import plain_values, refusals, state_option, stored_at
from custody.terminal import answer, say

if TYPE_CHECKING:
    from custody.server.service.operations.status import Status


@click.command("status")
@state_option
@json_option
def status_command(state: Path, as_json: bool) -> None:
    """Version, database, chains, jobs and the last checkpoint of the audit log, from the database alone."""
    from custody.server.service.operations.status import read_status
    from custody.server.settings import utc_now

    with refusals(), stored_at(state) as stored:
        now = utc_now()
        status = read_status(stored.store, now)
    if as_json:
        answer({"version": __version__, **plain_values(asdict(status))})
        return
    for line in _lines(status, now):
        say(line)


def _lines(status: "Status", now: datetime) -> Iterator[str]:
    from custody.schemas.common import format_time

    figures, database = status.figures, status.database
    yield f"custody {__version__} on {database.kind}, {database.size_bytes / 1e6:.1f} MB"
    for chain in figures.chains:
        yield f"{chain.chain}: block {chain.height}, read {_ago(chain.seen_at, now)}"
    if not figures.chains:
        yield "No chain was read yet."
    if not status.leases:
        yield "No worker runs: no chain is followed, no job is done. Start custody serve or custody worker."
    for lease in status.leases:
        yield (
            f"{lease.name}: {'a process has it' if lease.held else 'no process has it'} (until "
            f"{format_time(lease.until)})"
        )
    for job in figures.jobs:
        oldest = "" if job.oldest_at is None else f", the oldest from {_ago(job.oldest_at, now)}"
        yield f"jobs, {job.kind}: {job.waiting} waiting, {job.leased} under way, {job.dead} given up{oldest}"
    if not figures.jobs:
        yield "No job waits."
    for found in figures.proposals:
        yield (
            f"proposals, {found.status}: {found.count}, the one at rest for longest since "
            f"{_ago(found.oldest_at, now)}"
        )
    signed = status.checkpoint_at
    yield (
        "The audit log was never signed."
        if signed is None
        else f"The audit log was signed {_ago(signed, now)}."
    )


def _ago(then: datetime, now: datetime) -> str:
    seconds = max(0, round((now - then).total_seconds()))
    for size, word in ((86_400, "d"), (3_600, "h"), (60, "min")):
        if seconds >= 2 * size:
            return f"{seconds // size} {word} ago"
    return f"{seconds} s ago"
