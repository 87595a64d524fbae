"""audit verify: through the daemon where it runs, else directly on the held journal."""

import typer

from signerd.cli.desk import Desk, Json, Yes, desk_of
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


@app.command("start-over")
def begin_anew(context: typer.Context, yes: Yes = False) -> None:
    """Begin with an empty journal, where the old one is lost or was set aside as damaged."""
    from signerd.journal.folder import StateFolder
    from signerd.journal.storage import start_over

    desk = desk_of(context)
    with StateFolder.hold(desk.state):
        say("What was signed before will be unknown here: a payment that was made already is not recognised.")
        say(
            "Registered keys and pinned vaults are forgotten too. A journal that was set aside stays where it is."
        )
        if not yes and not desk.answers.yes("Begin with an empty journal?"):
            raise typer.Exit(Exit.DECLINED)
        start_over(desk.state)
    say("The next start begins with an empty journal.")


def _directly(desk: Desk) -> AuditReport:
    from signerd.account.config import find_config, load_config
    from signerd.app import Outside, open_journal
    from signerd.journal.folder import StateFolder
    from signerd.loopback.views import audit_report

    with StateFolder.hold(desk.state):
        config = load_config(find_config(desk.state))
        with open_journal(config, desk.state, Outside()) as journal:
            return audit_report(tuple(journal.audit()))
