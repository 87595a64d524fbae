"""``custody admin jobs``: what the workers have before them, what was given up, and what to do about it."""

import json
from dataclasses import asdict
from datetime import datetime
from pathlib import Path
from typing import Annotated, Any

import typer

from custody.server.cli.common import MAX_INT64, AsJson, State, fail, platform_at, refusals

app = typer.Typer(invoke_without_command=True, rich_markup_mode=None)

JobId = Annotated[
    int, typer.Argument(help="The job's id, as listed by custody admin jobs.", min=1, max=MAX_INT64)
]
MaybeState = Annotated[
    Path | None, typer.Option("--state", help="The platform's state folder.", envvar="CUSTODY_STATE")
]


@app.callback()
def jobs_command(
    context: typer.Context,
    state: MaybeState = None,
    after: Annotated[int, typer.Option(help="Go on after this id.", min=0, max=MAX_INT64)] = 0,
    as_json: AsJson = False,
) -> None:
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
        typer.echo(
            _json({"kinds": [asdict(each) for each in figures], "jobs": [asdict(each) for each in lines]})
        )
        return
    typer.echo(summary(figures))
    for line in lines:
        typer.echo(in_words(line))
    if len(lines) == MAX_JOBS:
        typer.echo(f"There may be more: go on with --after {lines[-1].id}.")


@app.command("retry")
def retry_command(
    state: State,
    job: Annotated[int | None, typer.Argument(help="The job's id.", min=1, max=MAX_INT64)] = None,
    kind: Annotated[
        str | None, typer.Option(help="All that were given up of this kind, instead of one.")
    ] = None,
) -> None:
    """Tries a job again, at once, and as if it had never failed."""
    if (job is None) == (kind is None):
        fail("Name either a job or a kind.", "Like custody admin jobs retry 17, or retry --kind mail.")
    with refusals(), platform_at(state) as platform, platform.services.store.write() as db:
        lines = [platform.jobs.retry(db, job)] if job else platform.jobs.retry_kind(db, kind or "")
    for line in lines:
        typer.echo(f"Job {line.id} ({line.kind} of {line.subject}) is due now.")


@app.command("discard")
def discard_command(job: JobId, state: State) -> None:
    """Throws a job away that will never work. The audit log keeps its name."""
    with refusals(), platform_at(state) as platform, platform.services.store.write() as db:
        line = platform.jobs.discard(db, job)
    typer.echo(f"Job {line.id} ({line.kind} of {line.subject}) is discarded.")


def _json(value: Any) -> str:
    from custody.schemas.common import format_time

    return json.dumps(
        value, default=lambda each: format_time(each) if isinstance(each, datetime) else str(each)
    )
