"""The commands of ``custody`` and ``signerd``, whose modules are loaded when they are called; and how the
process ends.
"""

import sys
from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import Any, NoReturn

import click

from custody.common.terminal import Exit, put, tell


class CommandsOfModules(click.Group):
    """Imports a command's module when the command is called. ``modules``: of ``package``, with the names of
    their commands.
    """

    def __init__(self, *args: Any, package: str, modules: Mapping[str, Sequence[str]], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.module_of = {name: f"{package}.{module}" for module, names in modules.items() for name in names}

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted({*super().list_commands(ctx), *self.module_of})

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in self.module_of:
            return super().get_command(ctx, cmd_name)
        found = vars(import_module(self.module_of[cmd_name])).values()
        return next(each for each in found if isinstance(each, click.Command) and each.name == cmd_name)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Suggests commands that are not loaded, too."""
        try:
            return super().resolve_command(ctx, args)
        except click.NoSuchCommand as error:
            known = self.list_commands(ctx)
            raise click.NoSuchCommand(error.command_name, possibilities=known, ctx=ctx) from None


def run(app: click.Group, name: str, ours: tuple[str, ...], missing: str, hint: str) -> NoReturn:
    """Run with the process's arguments, and end the process with the matching exit status: click's own mode
    gives Ctrl-C and other failures the same one. ``missing``, ``hint``: where a library, of none of ``ours``,
    is not installed.
    """
    as_json = "--json" in sys.argv
    try:
        status = app.main(prog_name=name, standalone_mode=False)
    except click.UsageError as error:
        if not as_json:
            error.show()
            sys.exit(Exit.USAGE)
        hint = f"`{error.ctx.command_path if error.ctx else name} --help` says what it takes."
        status = tell(name, "usage", error.format_message(), hint, Exit.USAGE, as_json=True)
    except click.ClickException as error:
        error.show()
        status = error.exit_code
    except click.Abort:
        # Ctrl-C, or the end of the input at a question. A new line after the terminal's ^C.
        put("", err=True)
        status = Exit.INTERRUPTED
    except ModuleNotFoundError as error:
        if (error.name or "").startswith(ours):
            raise
        sentence = f"{missing} ({error.name} is missing)"
        status = tell(name, "not-installed", sentence, hint, Exit.FAILED, as_json=as_json)
    sys.exit(status if isinstance(status, int) else Exit.OK)
