"""docs/sign/cli.md, docs/build/client.md and the program say the same; every command answers a program."""

import re
import subprocess
from pathlib import Path

import pytest
from click.testing import CliRunner

from signerd.cli.program import app
from signerd.cli.terminal import Exit
from signerd.doctor.examining import CHECKS

PAGE = (Path(__file__).parents[3] / "docs" / "sign" / "cli.md").read_text()
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


@pytest.mark.parametrize("status", list(Exit))
def test_an_exit_status_is_in_the_table(status):
    name = status.name.lower().replace("_", " ")
    assert re.search(rf"^\| {status.value} \| {name} \| ", PAGE, re.MULTILINE)


def test_the_table_of_statuses_has_no_others():
    assert len(re.findall(r"^\| [0-9]+ \| ", PAGE, re.MULTILINE)) == len(Exit)


def test_the_checks_of_the_doctor_are_listed_in_their_order():
    listed = re.findall(r"^\| ([a-z-]+) \| ", PAGE.split("## signerd doctor")[1], re.MULTILINE)
    assert [name for name in listed if name != "check"] == list(CHECKS)


@pytest.mark.parametrize("name", ALL)
def test_a_command_answers_with_json(name):
    options = {option for parameter in ALL[name].params for option in parameter.opts}
    assert ("--json" in options) != (name in WITHOUT_JSON)


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_is_printed(shell):
    done = CliRunner().invoke(app, ["completion", shell])
    assert done.exit_code == 0
    assert "_SIGNERD_COMPLETE" in done.stdout


def test_bash_takes_it():
    script = CliRunner().invoke(app, ["completion", "bash"]).stdout
    done = subprocess.run(
        ["bash", "-n"], input=script, capture_output=True, text=True, timeout=300, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")


def test_another_shell_is_no_shell():
    assert CliRunner().invoke(app, ["completion", "tcsh"]).exit_code == Exit.USAGE
