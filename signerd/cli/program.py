"""The program: its commands, its global options, and how errors become messages and exit statuses."""

import os
import sys
from importlib import import_module
from pathlib import Path
from typing import NoReturn

import click

from custody._version import __version__
from custody.common.terminal import Exit, answers, put, tell
from signerd.cli.desk import Desk
from signerd.errors import AnswerMissing, SignerdError

EPILOGUE = "Exit status: " + ", ".join(
    f"{status.value} {status.name.lower().replace('_', ' ')}" for status in Exit
)


# Words of the page and the platform that people type.
OTHER_WORDS = {
    "decline": "reject",
    "history": "movements",
    "deposits": "movements",
}


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
    "proposals": ("approve", "inspect", "proposals", "reject", "show", "sign"),
    "rules": ("rules",),
    "service": ("service",),
    "setup": ("setup",),
    "udev": ("udev",),
    "vaults": ("accounts", "addresses", "pin", "unpin", "vaults"),
}
MODULE_OF = {command: module for module, commands in MODULES.items() for command in commands}
OURS = ("signerd", "custody", "firmware_bridge", "device_simulators", "multisig")
# Functions of commands whose names are reserved in Python.
FUNCTIONS = {"import": "import_answer", "open": "open_page"}


class Commands(click.Group):
    def list_commands(self, ctx: click.Context) -> list[str]:
        for name in MODULE_OF:
            self.get_command(ctx, name)
        return super().list_commands(ctx)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name in MODULE_OF and cmd_name not in self.commands:
            module = import_module(f"signerd.cli.{MODULE_OF[cmd_name]}")
            command = getattr(module, FUNCTIONS.get(cmd_name, cmd_name))
            self.add_command(
                command if isinstance(command, click.Command) else click.command(cmd_name)(command)
            )
        return super().get_command(ctx, cmd_name)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Suggests the right command for other words."""
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
@click.version_option(__version__, prog_name="signerd", message="%(prog)s %(version)s")
@click.pass_context
def app(context: click.Context, state: Path | None) -> None:
    """Approve multisig spends on your own signing device, checked on your own machine."""
    context.obj = Desk(None if state is None else state.absolute(), answers(AnswerMissing))


def program() -> NoReturn:
    """Run with the process's arguments and end the process with the matching exit status.

    Without click's standalone mode, which gives Ctrl-C and other failures the same status.
    """
    as_json = "--json" in sys.argv[1:]
    try:
        status = app.main(prog_name="signerd", standalone_mode=False)
    except SignerdError as error:
        sys.exit(tell("signerd", error.code, str(error), error.hint, error.exit_status, as_json=as_json))
    except click.ClickException as error:
        error.show()
        sys.exit(error.exit_code)
    except (click.Abort, EOFError, KeyboardInterrupt):
        # A new line after the terminal's ^C.
        put("", err=True)
        sys.exit(Exit.INTERRUPTED)
    except BrokenPipeError:
        # The reader of the output has gone; the interpreter must not fail on it again when it flushes.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(Exit.FAILED)
    except ModuleNotFoundError as error:
        if (error.name or "").startswith(OURS):
            raise
        sentence = f"what this command needs is not installed here ({error.name} is missing)"
        hint = "Install it: pipx install 'signerd[desktop]', or 'signerd[desktop,server]' with a platform."
        sys.exit(tell("signerd", "not-installed", sentence, hint, Exit.FAILED, as_json=as_json))
    sys.exit(status if isinstance(status, int) else Exit.OK)
