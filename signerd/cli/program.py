"""The program: its commands, its global options, and how errors become messages and exit statuses."""

import sys
from importlib import import_module
from pathlib import Path
from typing import Any, NoReturn

import click

from custody._version import __version__
from custody.common.commands import CommandsOfModules, run
from custody.common.terminal import Exit, answers, tell
from signerd.cli.desk import Desk
from signerd.errors import AnswerMissing, SignerdError

EPILOGUE = "Exit status: " + ", ".join(
    f"{status.value} {status.name.lower().replace('_', ' ')}" for status in Exit
)


# Words of the page and the platform that people type.
OTHER_WORDS = {"reject": "decline", "history": "movements", "deposits": "movements"}


# By module: running a command imports only its own module.
MODULES = {
    "account": ("login", "logout"),
    "airgap": ("export", "import"),
    "apps": ("apps", "open", "pair"),
    "backup": ("backup", "kit", "restore"),
    "daemon": ("audit", "completion", "debug", "doctor", "run", "status"),
    "devices": ("demo", "device", "devices", "register"),
    "explain": ("explain",),
    "funds": ("movements", "receive"),
    "labels": ("labels",),
    "proposals": ("approve", "decline", "inspect", "proposals", "show", "sign"),
    "rules": ("rules",),
    "service": ("service",),
    "setup": ("setup",),
    "udev": ("udev",),
    "vaults": ("accounts", "addresses", "pin", "policy", "unpin", "vaults"),
}
# Functions of commands whose names are reserved in Python.
FUNCTIONS = {"import": "import_answer", "open": "open_page"}


class Commands(CommandsOfModules):
    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name in self.module_of and cmd_name not in self.commands:
            module = import_module(self.module_of[cmd_name])
            command = getattr(module, FUNCTIONS.get(cmd_name, cmd_name))
            self.add_command(
                command if isinstance(command, click.Command) else click.command(cmd_name)(command)
            )
        return click.Group.get_command(self, ctx, cmd_name)

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except SignerdError as error:
            as_json = "--json" in sys.argv[1:]
            return tell("signerd", error.code, str(error), error.hint, error.exit_status, as_json=as_json)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Suggests the right command for other words."""
        meant = OTHER_WORDS.get(args[0])
        if meant is not None:
            ctx.fail(f"There is no command '{args[0]}': it is `signerd {meant}`.")
        return super().resolve_command(ctx, args)


@click.group(
    cls=Commands,
    package="signerd.cli",
    modules=MODULES,
    epilog=EPILOGUE,
    context_settings={"show_default": True},
)
@click.option(
    "--state",
    type=click.Path(path_type=Path),
    envvar="SIGNERD_STATE",
    metavar="DIR",
    help="The state folder; default: the desktop's own.",
)
@click.version_option(__version__, prog_name="signerd", message="%(prog)s %(version)s")
@click.pass_context
def app(context: click.Context, state: Path | None) -> None:
    """Approve multisig spends on your own signing device, checked on your own machine."""
    context.obj = Desk(None if state is None else state.absolute(), answers(AnswerMissing))


def program() -> NoReturn:
    """Run with the process's arguments, and exit."""
    ours = ("signerd", "custody", "firmware_bridge", "device_simulators", "multisig")
    hint = "Install it: pipx install 'signerd[desktop]', or 'signerd[desktop,server]' with a platform."
    run(app, "signerd", ours, "what this command needs is not installed here", hint)
