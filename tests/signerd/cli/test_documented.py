"""docs/sign/cli.md, docs/build/client.md and the program say the same; every command answers a program."""

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


def test_every_command_answers_with_json():
    with_json = {name for name in ALL if "--json" in {o for one in ALL[name].params for o in one.opts}}
    assert set(ALL) - with_json == WITHOUT_JSON


def test_completion_is_printed():
    for shell in ("bash", "zsh", "fish"):
        assert "_SIGNERD_COMPLETE" in CliRunner().invoke(app, ["completion", shell]).stdout
