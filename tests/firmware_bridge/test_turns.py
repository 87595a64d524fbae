"""Taking turns at a device with other programs: one at a time, named, and never in the way of a program that has died."""

import subprocess
import sys

import pytest

from firmware_bridge import Endpoint
from firmware_bridge.errors import Busy
from firmware_bridge.presence.holders import no_turns, turns_in

TREZOR = Endpoint.parse("trezor:udp:127.0.0.1:21324")
OTHER = Endpoint.parse("trezor:udp:127.0.0.1:21325")


def test_one_has_it_and_the_other_is_told_who(tmp_path):
    ours, theirs = turns_in(tmp_path, "the first one"), turns_in(tmp_path, "the second one")
    with ours(TREZOR):
        with pytest.raises(Busy, match=r"^In use by the first one\.$"), theirs(TREZOR):
            pytest.fail("two have it")
        with theirs(OTHER):
            pass
    with theirs(TREZOR), pytest.raises(Busy, match="the second one"), ours(TREZOR):
        pytest.fail("two have it")


def test_an_error_gives_the_turn_back(tmp_path):
    turn = turns_in(tmp_path, "one")
    with pytest.raises(ValueError, match="no"), turn(TREZOR):
        raise ValueError("no")
    with turn(TREZOR):
        pass


def test_a_killed_program_holds_nothing(tmp_path):
    code = (
        "import sys, time\nfrom pathlib import Path\nfrom firmware_bridge import Endpoint\n"
        "from firmware_bridge.presence.holders import turns_in\n"
        f"with turns_in(Path(sys.argv[1]), 'other')(Endpoint.parse('{TREZOR}')):\n"
        "    print('has it', flush=True); time.sleep(60)\n"
    )
    with subprocess.Popen([sys.executable, "-c", code, str(tmp_path)], stdout=subprocess.PIPE) as program:
        try:
            assert program.stdout.readline() == b"has it\n"
            with pytest.raises(Busy, match="other"), turns_in(tmp_path, "one")(TREZOR):
                pytest.fail("two have it")
        finally:
            program.kill()
    with turns_in(tmp_path, "one")(TREZOR):
        pass


def test_a_name_that_would_play_with_the_screen_is_cleaned_and_cut(tmp_path):
    evil = turns_in(tmp_path, "evil\x1b[2J\u202e" + "y" * 5_000)
    with evil(TREZOR), pytest.raises(Busy) as told, turns_in(tmp_path, "one")(TREZOR):
        pytest.fail("two have it")
    assert str(told.value).isprintable()
    assert len(str(told.value)) < 160


def test_who_takes_no_turns_is_in_nobodys_way():
    with no_turns(TREZOR), no_turns(TREZOR):
        pass
