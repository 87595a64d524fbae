"""The program as a whole: every command without a daemon, its help, its statuses, and what `signerd explain`
says of each code.
"""

import json
import re
import subprocess
import sys

import pytest
from click.testing import CliRunner

from custody.cli.program import app as custody
from custody.common.terminal import Exit, answer, table
from custody.schemas.errors import ErrorCode
from firmware_bridge.errors import BridgeError
from signerd.cli import explain as explanations
from signerd.cli.program import OTHER_WORDS, app
from signerd.core.checks.table import CHECKS
from signerd.errors import StaleApproval, leaves
from tests.support.code_page import PAGE, page
from tests.support.command import is_tame, signerd


@pytest.mark.parametrize("command", ["status", "devices", "register", "vaults", "pin v-1", "approve p-1"])
def test_without_a_daemon_every_command_says_so_and_how_to_start_one(tmp_path, command):
    for options in ([], ["--json"]):
        ended = signerd(*command.split(), *options, state=tmp_path / "s", ends=Exit.NOT_RUNNING)
        assert ended.out == ""
        assert "`signerd run`" in ended.err
    assert ended.error["code"] == "daemon-not-running"
    assert not (tmp_path / "s").exists()


@pytest.mark.parametrize("options", [[], ["--json"]])
def test_a_hint_names_the_state_folder_of_the_command_line(tmp_path, options):
    state = tmp_path / "my state"
    ended = signerd("--state", str(state), "status", *options, ends=Exit.NOT_RUNNING)
    assert f"`signerd --state '{state}' run`" in ended.err


@pytest.mark.parametrize(("typed", "meant"), OTHER_WORDS.items())
def test_a_word_of_the_page_is_told_as_the_command_that_it_is(typed, meant):
    ended = signerd(typed, "abcd", ends=Exit.USAGE)
    assert f"There is no command '{typed}': it is `signerd {meant}`." in ended.err
    signerd(meant, "--help")


def test_l10_no_option_takes_a_secret():
    assert signerd("--version").out.startswith("signerd ")
    for command in (["login"], ["run"], ["register"], ["pin"], ["device", "virtual"]):
        text = signerd(*command, "--help").out
        assert not re.search(r"--(password|passphrase|otp|pin|secret)\b", text), text


def test_a_reader_that_goes_away_is_no_crash(tmp_path):
    command = [sys.executable, "-m", "signerd", "--help"]
    program = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    program.stdout.close()
    said = program.stderr.read()
    program.stderr.close()
    assert program.wait(20) in {Exit.OK, Exit.FAILED}
    assert b"Traceback" not in said


def test_a_command_says_what_is_not_installed_here():
    """As with the platform's libraries alone, which bring this program, too."""
    program = "import sys; sys.modules['mnemonic'] = None\nfrom signerd.cli import main\nmain()"
    command = [sys.executable, "-c", program, "device", "virtual", "trezor"]
    told = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
    assert told.returncode == Exit.FAILED
    assert told.stderr.startswith(
        "signerd: what this command needs is not installed here (mnemonic is missing)"
    )
    assert "signerd[desktop]" in told.stderr


# --- output -------------------------------------------------------------------------------------------------


def test_l8_a_table_and_json_are_tame_whatever_is_in_them(capsys):
    hostile = "x\x1b[2J\u202ey\r\n\x9b1m\u2028 é"
    table(("A", "B"), [(hostile, hostile)])
    told = capsys.readouterr().out
    assert (is_tame(told), len(told.splitlines())) == (True, 2)
    answer({"name": hostile})
    told = capsys.readouterr().out
    assert (told.isascii(), is_tame(told), json.loads(told)["name"]) == (True, True, hostile)


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


ERRORS = {kind.code for kind in leaves()}
OUTCOMES = {kind.code for kind in BridgeError.__subclasses__()}
ANSWERS = {code.value for code in ErrorCode}


def explain(*arguments):
    return CliRunner().invoke(app, ["explain", *arguments])


def test_each_code_has_an_entry_and_each_entry_a_code():
    assert set(explanations.table()) == ERRORS | set(CHECKS) | OUTCOMES | ANSWERS


def test_the_page_is_the_table():
    """Where they differ: ``python -m tests.support.code_page``."""
    assert PAGE.read_text(encoding="utf-8").rstrip() == page().rstrip()


def test_it_says_what_to_do_and_the_exit_status():
    said = explain("stale-approval").stdout
    assert "something else than what you approved" in said
    assert StaleApproval.default_hint in said
    assert f"Exit status {StaleApproval.exit_status:d}." in said


def test_both_programs_say_the_same_of_the_platforms_codes_and_who_can_act():
    for code in ANSWERS:
        ours, theirs = explain(code).stdout, CliRunner().invoke(custody, ["explain", code.lower()]).stdout
        assert theirs.splitlines()[0] == code
        assert theirs.splitlines()[1:] == ours.splitlines()[1:]
        assert theirs.splitlines()[-1].startswith("  Who can: ")


def test_a_mistyped_code_is_told_its_neighbours():
    assert "paid-twice" in signerd("explain", "payed-twice", ends=Exit.USAGE).err
