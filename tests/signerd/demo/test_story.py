"""The story names the commands that do the same for a person."""

import re
from pathlib import Path

import pytest

from custody.server.cli import app as custody
from custody.server.service.mail.jobs import TEXTS, Template, checked_url
from custody.server.settings import Settings
from signerd.cli.program import app as signerd
from signerd.demo import asking, stage, story
from signerd.demo.programs import Programs
from signerd.demo.stage import Demo

COMMANDS = {"signerd": signerd.list_commands(None), "custody": custody.commands}


def test_every_command_that_the_story_names_is_there() -> None:
    given = re.findall(
        r"\(((?:signerd|custody) [a-z]+(?:, (?:signerd|custody) [a-z]+)*)\)", text_of_the_story()
    )
    named = [command.split() for together in given for command in together.split(", ")]
    assert {name for _, name in named} == {"login", "register", "pin", "fund", "mine", "approve"}
    assert [(program, name) for program, name in named if name not in COMMANDS[program]] == []


def test_every_command_at_the_end_is_there(tmp_path: Path) -> None:
    demo = Demo(tmp_path, Programs(tmp_path), auto=False)
    text = asking._what_there_is(demo)
    assert f"{demo.owner.email}, password {demo.owner.password};" in text
    named = re.findall(r"\b(signerd|custody)(?: --state \S+)? ([a-z]+)", text)
    assert {name for _, name in named} == {"proposals", "audit", "fund"}
    assert [(program, name) for program, name in named if name not in COMMANDS[program]] == []


def test_mails_of_the_demos_platform_lead_to_its_console(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    demo = Demo(tmp_path, Programs(tmp_path), auto=False, url="http://127.0.0.1:20000")
    for name, value in demo.platform_settings.items():
        monkeypatch.setenv(name, value)
    text = TEXTS[Template.INVITATION]
    values = dict.fromkeys(text.values, "7")
    mail = text.fill("first@demo.example", values, checked_url(Settings(state=tmp_path).public_url))
    assert f"{demo.url}/invitations/7" in mail.text


def text_of_the_story() -> str:
    return "".join(Path(part.__file__).read_text(encoding="utf-8") for part in (stage, story))
