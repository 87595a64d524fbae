"""The program: its commands, its global options, and the one place where an error becomes words
and a status.
"""

import sys
from pathlib import Path
from typing import NoReturn

import click

from signerd.cli import (
    account,
    advisories,
    airgap,
    apps,
    backup,
    daemon,
    debug,
    devices,
    explain,
    kit,
    movements,
    proposals,
    receive,
    rules,
    service,
    setup,
    udev,
    vaults,
)
from signerd.cli.desk import Desk
from signerd.cli.terminal import Exit, answers, end_with

EPILOGUE = "Exit status: " + ", ".join(
    f"{status.value} {status.name.lower().replace('_', ' ')}" for status in Exit
)


def _say_version(context: click.Context, _parameter: click.Parameter, wanted: bool) -> None:
    if wanted:
        from custody._version import __version__

        click.echo(f"signerd {__version__}")
        context.exit()


# What the page and the platform call it, and people type.
OTHER_WORDS = {
    "decline": "reject",
    "history": "movements",
    "deposits": "movements",
}


class Commands(click.Group):
    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """In the place of click's guess by the spelling."""
        meant = OTHER_WORDS.get(args[0])
        if meant is not None:
            ctx.fail(f"There is no command '{args[0]}': it is `signerd {meant}`.")
        return super().resolve_command(ctx, args)


@click.group(cls=Commands, epilog=EPILOGUE, context_settings={"show_default": True})
@click.option(
    "--state",
    type=click.Path(path_type=Path),
    envvar="SIGNERD_STATE",
    metavar="DIR",
    help="The state folder; default: the desktop's own.",
)
@click.option("--version", is_flag=True, is_eager=True, expose_value=False, callback=_say_version)
@click.pass_context
def app(context: click.Context, state: Path | None) -> None:
    """Approve multisig spends on your own signing device, checked on your own machine."""
    context.obj = Desk(None if state is None else state.absolute(), answers())


for command in (
    daemon.run,
    daemon.status,
    setup.setup,
    account.login,
    account.logout,
    devices.register,
    vaults.vaults,
    vaults.pin,
    vaults.unpin,
    receive.receive,
    vaults.addresses,
    movements.movements,
    vaults.accounts,
    proposals.proposals,
    proposals.show,
    proposals.approve,
    proposals.reject,
    proposals.inspect,
    proposals.sign,
    airgap.export,
    apps.pair,
    backup.backup,
    backup.restore,
    kit.kit,
    daemon.doctor,
    explain.explain,
    daemon.completion,
):
    app.command()(command)
for group in (
    devices.devices,
    apps.apps,
    daemon.audit,
    rules.rules,
    advisories.advisory,
    devices.device,
    debug.debug,
    service.service,
    udev.udev,
):
    app.add_command(group)
app.command("open")(apps.open_page)
app.command("import")(airgap.import_answer)
app.command()(devices.demo)


def program() -> NoReturn:
    """Run with the process's arguments and end the process."""
    end_with(_run)


def _run() -> NoReturn:
    """Not click's own ending, which makes Ctrl-C and every other failure one status."""
    try:
        status = app.main(prog_name="signerd", standalone_mode=False)
    except click.Abort:
        raise KeyboardInterrupt from None
    except click.ClickException as error:
        error.show()
        sys.exit(error.exit_code)
    sys.exit(status if isinstance(status, int) else Exit.OK)
