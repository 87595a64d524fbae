"""``custody admin jobs``: what the workers have before them, what was given up, and what to do about it."""

import json
from dataclasses import asdict
from datetime import datetime
from pathlib import Path
from typing import Any

import click

from custody.server.cli.common import MAX_INT64, fail, json_option, platform_at, refusals, state_option


@click.group("jobs", invoke_without_command=True)
@click.pass_context
@click.option(
    "--state", type=click.Path(path_type=Path), envvar="CUSTODY_STATE", help="The platform's state folder."
)
@click.option("--after", default=0, type=click.IntRange(min=0, max=MAX_INT64), help="Go on after this id.")
@json_option
def jobs_command(context: click.Context, state: Path | None, after: int, as_json: bool) -> None:
    """Lists how many jobs of each kind are due, waiting, leased and dead; and those that failed, with the
    last error.
    """
    if context.invoked_subcommand is not None:
        return
    from custody.server.service.operations.jobs import MAX_JOBS, in_words, summary

    if state is None:
        fail("No state folder is named.", "Add --state, or set CUSTODY_STATE.")
    with refusals(), platform_at(state) as platform, platform.services.store.read() as db:
        figures = platform.jobs.figures(db)
        lines = platform.jobs.troubled(db, after=after)
    if as_json:
        click.echo(
            _json({"kinds": [asdict(each) for each in figures], "jobs": [asdict(each) for each in lines]})
        )
        return
    click.echo(summary(figures))
    for line in lines:
        click.echo(in_words(line))
    if len(lines) == MAX_JOBS:
        click.echo(f"There may be more: go on with --after {lines[-1].id}.")


@jobs_command.command("retry")
@state_option
@click.argument("job", required=False, type=click.IntRange(min=1, max=MAX_INT64), help="The job's id.")
@click.option("--kind", help="All that were given up of this kind, instead of one.")
def retry_command(state: Path, job: int | None, kind: str | None) -> None:
    """Tries a job again, at once, and as if it had never failed."""
    if (job is None) == (kind is None):
        fail("Name either a job or a kind.", "Like custody admin jobs retry 17, or retry --kind mail.")
    with refusals(), platform_at(state) as platform, platform.services.store.write() as db:
        lines = [platform.jobs.retry(db, job)] if job else platform.jobs.retry_kind(db, kind or "")
    for line in lines:
        click.echo(f"Job {line.id} ({line.kind} of {line.subject}) is due now.")


@jobs_command.command("discard")
@click.argument(
    "job", type=click.IntRange(min=1, max=MAX_INT64), help="The job's id, as listed by custody admin jobs."
)
@state_option
def discard_command(job: int, state: Path) -> None:
    """Throws a job away that will never work. The audit log keeps its name."""
    with refusals(), platform_at(state) as platform, platform.services.store.write() as db:
        line = platform.jobs.discard(db, job)
    click.echo(f"Job {line.id} ({line.kind} of {line.subject}) is discarded.")


def _json(value: Any) -> str:
    from custody.schemas.common import format_time

    return json.dumps(
        value, default=lambda each: format_time(each) if isinstance(each, datetime) else str(each)
    )
