"""audit verify: through the daemon where it runs, else directly on the held journal."""

import typer

from signerd.cli.desk import Desk, Json, desk_of
from signerd.cli.exits import Exit
from signerd.cli.output import answer, say
from signerd.loopback.shapes import AuditReport

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
        report = _directly(desk)
    if as_json:
        answer(report)
    elif report.fault is None:
        say(f"Whole: {report.entries} entries. Head: {report.head}")
        say("A tail that was cut off shows only by comparing this with a head that you wrote down before.")
    else:
        say(f"NOT WHOLE: {report.fault}.")
    raise typer.Exit(Exit.OK if report.fault is None else Exit.AUDIT)


def _directly(desk: Desk) -> AuditReport:
    from signerd.account.config import find_config, load_config
    from signerd.app import Outside, open_journal
    from signerd.journal.folder import StateFolder
    from signerd.loopback.views import audit_report

    with StateFolder.hold(desk.state):
        config = load_config(find_config(desk.state))
        with open_journal(config, desk.state, Outside()) as journal:
            return audit_report(tuple(journal.audit()))
