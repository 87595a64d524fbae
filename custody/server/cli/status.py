"""``custody status``: the state of the platform at a glance. ``custody admin jobs``: the workers' queue: list
jobs, retry or discard those that were given up.
"""

from collections.abc import Iterator
from dataclasses import asdict
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

import click

from custody._version import __version__
from custody.cli.common import fail, give, json_option, wants_json
from custody.common.terminal import Exit, answer, say, table
from custody.server.cli.admin import admin
from custody.server.cli.common import MAX_INT64, state_option, stored_at

if TYPE_CHECKING:
    from custody.server.operations.status import JobLine, PlatformStatus


@click.command("status")
@state_option
@json_option
def status_command(state: Path) -> None:
    """Version, database, chains, jobs and the last checkpoint of the audit log, from the database alone."""
    from custody.server.operations.status import read_status
    from custody.server.settings import utc_now

    with stored_at(state) as stored:
        now = utc_now()
        status = read_status(stored.store, now)
    give({"version": __version__, **asdict(status)}, *_lines(status, now))


def _lines(status: "PlatformStatus", now: datetime) -> Iterator[str]:
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
        waiting = job.due + job.waiting
        yield f"jobs, {job.kind}: {waiting} waiting, {job.leased} under way, {job.dead} given up{oldest}"
    if not figures.jobs:
        yield "No job waits."
    for group in figures.proposals:
        yield (
            f"proposals, {group.status}: {group.count}, the one at rest for longest since "
            f"{_ago(group.oldest_at, now)}"
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


@admin.group("jobs", invoke_without_command=True)
@click.pass_context
@click.option(
    "--state", type=click.Path(path_type=Path), envvar="CUSTODY_STATE", help="The platform's state folder."
)
@click.option("--after", default=0, type=click.IntRange(min=0, max=MAX_INT64), help="Go on after this id.")
@json_option
def jobs_command(context: click.Context, state: Path | None, after: int) -> None:
    """List how many jobs of each kind are due, waiting, leased and dead; and those that failed, with the
    last error.
    """
    if context.invoked_subcommand is not None:
        return
    from custody.server.operations.status import MAX_JOBS, job_figures, troubled

    if state is None:
        fail("No state folder is named.", "Add --state, or set CUSTODY_STATE.", Exit.USAGE)
    with stored_at(state) as stored, stored.store.read() as db:
        figures = job_figures(db, now := stored.clock())
        lines = troubled(db, now, after=after)
    if wants_json():
        answer({"kinds": figures, "jobs": lines})
        return
    for each in figures:
        # One that was made for later counts from when it is due.
        first = "the first due at" if each.oldest_at and each.oldest_at > now else "the oldest since"
        oldest = f", {first} {each.oldest_at:%Y-%m-%d %H:%M:%S} UTC" if each.oldest_at else ""
        waiting = f"{each.due} due, {each.waiting} waiting, {each.leased} leased, {each.dead} dead"
        say(f"{each.kind}: {waiting}{oldest}")
    if not figures:
        say("Nothing waits, and nothing was given up.")
    if lines:
        table(("ID", "STATE", "JOB", "TRIED", "LAST ERROR"), [_row(line) for line in lines])
    if len(lines) == MAX_JOBS:
        say(f"There may be more: go on with --after {lines[-1].id}.")


@jobs_command.command("retry")
@state_option
@click.argument("job", required=False, type=click.IntRange(min=1, max=MAX_INT64), help="The job's id.")
@click.option("--kind", help="All that were given up of this kind, instead of one.")
@json_option
def retry_command(state: Path, job: int | None, kind: str | None) -> None:
    """Try a job again at once, with its count of failures at zero."""
    if (job is None) == (kind is None):
        fail(
            "Name either a job or a kind.",
            "Like custody admin jobs retry 17, or retry --kind mail.",
            Exit.USAGE,
        )
    from custody.server.operations.status import retry

    with stored_at(state) as stored, stored.store.write() as db:
        lines = retry(db, stored.audit, stored.clock(), job, kind or "")
    words = (f"Job {line.id} ({line.kind} of {line.subject}) is due now." for line in lines)
    give(lines, *words)


@jobs_command.command("discard")
@click.argument(
    "job", type=click.IntRange(min=1, max=MAX_INT64), help="The job's id, as listed by custody admin jobs."
)
@state_option
@json_option
def discard_command(job: int, state: Path) -> None:
    """Delete a job that will never succeed. The audit log records it."""
    from custody.server.operations.status import discard

    with stored_at(state) as stored, stored.store.write() as db:
        line = discard(db, stored.audit, job)
    give(line, f"Job {line.id} ({line.kind} of {line.subject}) is discarded.")


def _row(line: "JobLine") -> tuple[str, ...]:
    """For a person's table: id, state, job, how often it was tried, the last error."""
    tried = f"{line.attempts} time{'' if line.attempts == 1 else 's'}"
    return str(line.id), line.state, f"{line.kind} of {line.subject}", tried, line.error or ""
