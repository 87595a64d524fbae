"""The program: its commands, and the one place where it ends with a status."""

import sys
from importlib import import_module
from typing import NoReturn

import click

from custody.terminal import Exit, put

EPILOGUE = "Exit status: " + ", ".join(
    f"{status.value} {status.name.lower().replace('_', ' ')}"
    for status in Exit
    if status not in {Exit.DEVICE, Exit.NOT_SIGNED}
)
# Named by its text: a command that asks the platform over its API does not load the platform.
OPERATORS = "custody.server.cli"


class WithOperators(click.Group):
    """Its own commands, and those of the operators' group of the same name."""

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        return super().get_command(ctx, cmd_name) or self._operators().get_command(ctx, cmd_name)

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted({*super().list_commands(ctx), *self._operators().list_commands(ctx)})

    def _operators(self) -> click.Group:
        operators: click.Group = import_module(OPERATORS).app
        return operators


def _say_version(context: click.Context, _parameter: click.Parameter, wanted: bool) -> None:
    if wanted:
        from custody._version import __version__

        put(f"custody {__version__}")
        context.exit()


@click.group(cls=WithOperators, epilog=EPILOGUE, context_settings={"show_default": True})
@click.option("--version", is_flag=True, is_eager=True, expose_value=False, callback=_say_version)
def app() -> None:
    """Spend from an organisation's vaults, and run the platform that keeps them."""


def program() -> NoReturn:
    """Run with the process's arguments and end the process."""
    try:
        status = app.main(prog_name="custody", standalone_mode=False)
    except click.Abort:
        # Ctrl-C, or a question that was left.
        sys.exit(Exit.INTERRUPTED)
    except click.ClickException as error:
        error.show()
        sys.exit(error.exit_code)
    sys.exit(status if isinstance(status, int) else Exit.OK)
