"""audit verify, through the daemon where it runs, else from the journal's file; audit start-over."""

from pathlib import Path
from typing import TYPE_CHECKING

import typer

from signerd.cli.desk import Json, Yes, desk_of
from signerd.cli.output import Exit, answer, aside, say
from signerd.shapes import AuditReport

if TYPE_CHECKING:
    from sqlite3 import Connection

app = typer.Typer(help="The chain of decisions.", no_args_is_help=True, rich_markup_mode=None)


@app.callback()
def audit() -> None:
    """The chain of decisions."""


@app.command()
def verify(context: typer.Context, as_json: Json = False) -> None:
    """Check that no entry of the journal's chain was edited, removed or put elsewhere."""
    desk = desk_of(context)
    if desk.running():
        with desk.daemon() as daemon:
            report = daemon.verify_audit()
    else:
        report = _directly(desk.state)
    if as_json:
        answer(report)
    elif report.fault is None:
        say(f"Whole: {report.entries} entries. Head: {report.head}")
        say("A tail that was cut off shows only by comparing this with a head that you wrote down before.")
    else:
        say(f"NOT WHOLE: {report.fault}.")
    raise typer.Exit(Exit.OK if report.fault is None else Exit.AUDIT)


@app.command("start-over")
def begin_anew(context: typer.Context, yes: Yes = False, as_json: Json = False) -> None:
    """Begin with an empty journal, where the old one is lost or was set aside as damaged."""
    from signerd.journal.storage import StateFolder, start_over

    desk, tell = desk_of(context), aside if as_json else say
    with StateFolder.hold(desk.state):
        tell(
            "What was signed before will be unknown here: a payment that was made already is not recognised."
        )
        tell(
            "Registered keys and pinned vaults are forgotten too. A journal that was set aside stays where it is."
        )
        if not yes and not desk.answers.yes("Begin with an empty journal?"):
            raise typer.Exit(Exit.DECLINED)
        start_over(desk.state)
    tell("The next start begins with an empty journal.")
    if as_json:
        answer({"begun_anew": True})


def _directly(state: Path) -> AuditReport:
    """Without a daemon: only read, so that a damaged journal stays where it is."""
    from contextlib import closing

    from signerd.journal.storage import fault_of, open_to_read

    with closing(open_to_read(state)) as journal:
        fault = fault_of(journal)
        report = _chain(journal)
    return report if report.fault is not None else report.model_copy(update={"fault": fault})


def _chain(journal: "Connection") -> AuditReport:
    """What the chain says of itself; of one that cannot be read, nothing: the journal's own fault stands then."""
    from sqlite3 import DatabaseError

    from signerd.daemon.views import audit_report
    from signerd.journal.rows import audit_entries

    try:
        return audit_report(tuple(audit_entries(journal)))
    except (DatabaseError, ValueError, KeyError, TypeError):
        return AuditReport(entries=0, head="", at=None, fault=None)
