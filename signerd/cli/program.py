"""The program: its commands, its global options, and the one place where an error becomes words and a status."""

from pathlib import Path
from typing import Annotated, NoReturn

import typer

from signerd.cli import (
    account,
    addresses,
    apps,
    audit,
    completion,
    daemon,
    devices,
    doctor,
    opening,
    proposals,
    psbts,
    rules,
    vaults,
    virtual,
)
from signerd.cli.answers import answers
from signerd.cli.desk import Desk
from signerd.cli.output import Exit, end_with

EPILOGUE = "Exit status: " + ", ".join(
    f"{status.value} {status.name.lower().replace('_', ' ')}" for status in Exit
)

app = typer.Typer(
    help="Approve multisig spends on your own signing device, checked on your own machine.",
    epilog=EPILOGUE,
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)


def _version(*, wanted: bool) -> None:
    if wanted:
        from multisig._version import __version__

        typer.echo(f"signerd {__version__}")
        raise typer.Exit


@app.callback()
def common(
    context: typer.Context,
    state: Annotated[
        Path | None,
        typer.Option(
            envvar="SIGNERD_STATE", metavar="DIR", help="The state folder; default: the desktop's own."
        ),
    ] = None,
    version: Annotated[  # noqa: ARG001 - its callback has done all
        bool,
        typer.Option("--version", is_eager=True, callback=lambda wanted: _version(wanted=wanted)),
    ] = False,
) -> None:
    context.obj = Desk(None if state is None else state.absolute(), answers())


for module in (daemon, account, devices, vaults, addresses, proposals, psbts, apps, doctor, completion):
    for command in module.COMMANDS:
        app.command()(command)
app.add_typer(devices.app, name="devices")
app.add_typer(apps.app, name="apps")
app.add_typer(audit.app, name="audit")
app.add_typer(rules.app, name="rules")
app.add_typer(virtual.app, name="device")
app.command("open")(opening.open_page)
app.command()(virtual.demo)


def program() -> NoReturn:
    """Run with the process's arguments and end the process."""
    end_with(lambda: app(prog_name="signerd"))
