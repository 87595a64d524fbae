"""``custody``, as ``signerd``: every command has JSON output, and none draws boxes."""

import sys

import click
import pytest
from click.testing import CliRunner

from custody.cli.program import app
from custody.common.terminal import Exit
from tests.support.processes import ended

# Commands that run until they are stopped, or print lines, a document or a secret.
WITHOUT_JSON = {"serve", "worker", "openapi", "audit export", "proof download", "admin webhook-secret"}


def commands(group, before=""):
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        if isinstance(command, click.Group):
            yield from commands(command, f"{before}{name} ")
        else:
            yield f"{before}{name}", command


ALL = dict(commands(app))


@pytest.mark.parametrize("name", ALL)
def test_a_command_answers_with_json(name):
    options = {option for parameter in ALL[name].params for option in parameter.opts}
    assert ("--json" in options) != (name in WITHOUT_JSON)


def test_p49_no_option_takes_a_secret():
    options = {option for command in ALL.values() for one in command.params for option in one.opts}
    assert not options & {"--password", "--passphrase", "--code", "--otp", "--secret", "--token"}


def test_an_error_is_one_json_value_where_one_was_asked_for(tmp_path):
    refused = CliRunner().invoke(app, ["status", "--state", str(tmp_path / "typo"), "--json"])
    assert refused.exit_code == Exit.STATE
    assert refused.stderr.startswith('{"error": {"code": "state", "sentence": "There is no platform in')
    assert '"status": 10' in refused.stderr
    plain = CliRunner().invoke(app, ["status", "--state", str(tmp_path / "typo")]).stderr
    assert plain.startswith("custody: There is no platform in")
    assert plain.splitlines()[1].startswith("  Check --state")


def test_where_the_server_is_not_installed_an_operators_command_says_so(tmp_path):
    """As with the desktop's libraries alone; the help still works."""
    program = "import sys; sys.modules['structlog'] = None\nfrom custody.cli import main\nmain()"
    words = ["status", "--state", str(tmp_path)]
    told, helped = (ended([sys.executable, "-c", program, *words, *more]) for more in ([], ["--help"]))
    assert told.returncode == Exit.FAILED
    sentence = "the platform's server is not installed here (structlog is missing)"
    assert told.stderr.startswith(f"custody: {sentence}")
    assert helped.returncode == Exit.OK
