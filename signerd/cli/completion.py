"""completion."""

from enum import StrEnum

from signerd.cli.output import put

PROGRAM = "signerd"
# As typer reads it from the environment.
VARIABLE = "_SIGNERD_COMPLETE"


class Shell(StrEnum):
    BASH = "bash"
    ZSH = "zsh"
    FISH = "fish"


def completion(shell: Shell) -> None:
    """Print what completes commands in your shell; it writes no file. For bash: eval "$(signerd completion bash)"."""
    from typer._completion_shared import get_completion_script

    put(get_completion_script(prog_name=PROGRAM, complete_var=VARIABLE, shell=shell.value))


COMMANDS = (completion,)
