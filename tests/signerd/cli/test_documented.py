"""docs/sign/cli.md, docs/build/client.md and the program say the same; every command answers a program."""

import pytest
from click.testing import CliRunner

from signerd.cli.program import app

# What prints something else than an answer.
WITHOUT_JSON = {"completion", "demo"}


def commands(group, before=""):
    for name in group.list_commands(None):
        command = group.get_command(None, name)
        if hasattr(command, "commands"):
            yield from commands(command, f"{before}{name} ")
        else:
            yield f"{before}{name}", command


ALL = dict(commands(app))


@pytest.mark.parametrize("name", ALL)
def test_a_command_answers_with_json(name):
    options = {option for parameter in ALL[name].params for option in parameter.opts}
    assert ("--json" in options) != (name in WITHOUT_JSON)


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_is_printed(shell):
    done = CliRunner().invoke(app, ["completion", shell])
    assert done.exit_code == 0
    assert "_SIGNERD_COMPLETE" in done.stdout
