"""The story names the commands that do the same for a person."""

import re
from pathlib import Path

from custody.server.cli import app as custody
from signerd.cli.program import app as signerd
from signerd.demo import stage, story

COMMANDS = {"signerd": signerd.list_commands(None), "custody": custody.commands}


def test_every_command_that_the_story_names_is_there() -> None:
    given = re.findall(
        r"\(((?:signerd|custody) [a-z]+(?:, (?:signerd|custody) [a-z]+)*)\)", text_of_the_story()
    )
    named = [command.split() for together in given for command in together.split(", ")]
    assert {name for _, name in named} == {"login", "register", "pin", "fund", "mine", "approve"}
    assert [(program, name) for program, name in named if name not in COMMANDS[program]] == []


def text_of_the_story() -> str:
    return "".join(Path(part.__file__).read_text(encoding="utf-8") for part in (stage, story))
