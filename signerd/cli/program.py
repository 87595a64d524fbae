"""The program: its commands, its global options, and the one place where an error becomes words
and a status.
"""

from pathlib import Path
from typing import Annotated, NoReturn

import typer

from signerd.cli import account, apps, daemon, devices, proposals, rules, vaults
from signerd.cli.desk import Desk
from signerd.cli.terminal import Exit, answers, end_with

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


for command in (
    daemon.run,
    daemon.status,
    account.login,
    account.logout,
    devices.register,
    vaults.vaults,
    vaults.pin,
    vaults.unpin,
    vaults.addresses,
    vaults.accounts,
    proposals.proposals,
    proposals.show,
    proposals.approve,
    proposals.reject,
    proposals.inspect,
    proposals.sign,
    apps.pair,
    daemon.doctor,
    daemon.completion,
):
    app.command()(command)
app.add_typer(devices.devices_app, name="devices")
app.add_typer(apps.app, name="apps")
app.add_typer(daemon.audit_app, name="audit")
app.add_typer(rules.app, name="rules")
app.add_typer(devices.device_app, name="device")
app.command("open")(apps.open_page)
app.command()(devices.demo)


def program() -> NoReturn:
    """Run with the process's arguments and end the process."""
    end_with(lambda: app(prog_name="signerd"))
