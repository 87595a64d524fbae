"""The command line: a thin layer over ``signerd.client``, quick to start because it imports what a command
needs.
"""

import os
import sys
from typing import NoReturn


def main() -> NoReturn:
    """The ``signerd`` program."""
    plain = _plain_run(sys.argv[1:])
    if plain is not None:
        _run(*plain)
    from signerd.cli.program import program

    program()


def _plain_run(arguments: list[str]) -> tuple[str | None, bool] | None:
    """The state folder and whether to write JSON, of ``[--state DIR] run [--json]``; None for everything
    else.

    So a daemon is started by people and service managers, and so it goes without the library that reads a
    command line, which it would keep in memory for weeks. Whatever is written otherwise takes the long way to
    the same daemon.
    """
    match arguments:
        case ["--state", given, "run", *options]:
            state: str | None = given
        case ["run", *options]:
            state = os.environ.get("SIGNERD_STATE") or None
        case _:
            return None
    return (state, bool(options)) if options in ([], ["--json"]) else None


def _run(state: str | None, as_json: bool) -> NoReturn:
    from signerd.runtime import COMMAND_LINES, leave_out

    leave_out(COMMAND_LINES)
    from pathlib import Path

    from signerd.account.config import default_state_folder
    from signerd.cli.foreground import run_daemon
    from signerd.cli.terminal import answers, end_with

    folder = default_state_folder() if state is None else Path(state).absolute()
    end_with(lambda: run_daemon(folder, answers(), as_json=as_json))
