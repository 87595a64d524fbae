"""run, status: the real program as a process of its own, over a platform that is not there
(docs/sign/accounts.md). audit verify, audit start-over; rules show.
"""

import json
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
from contextlib import closing, contextmanager
from functools import partial

import pytest

from custody.common.terminal import Exit
from signerd.cli import foreground
from signerd.core.audit import Note
from signerd.endpoint import socket_path
from signerd.errors import JournalUnwritable
from signerd.journal import held
from signerd.runtime import DaemonDependencies
from signerd.service.supervised import Supervisor
from tests.support.command import signerd
from tests.support.daemons import MemoryStore, hurried_sleep, make_config
from tests.support.desk import VAULT_ID, open_journal
from tests.support.fake_platform import EMAIL, URL
from tests.support.served import make_outer, served_daemon

CONFIG = """network = "regtest"
[platform]
url = "http://127.0.0.1:9"
[devices]
usb = false
[secrets]
store = "file"
[loopback]
port = 0
"""


@pytest.fixture
def state(state):
    (state / "config.toml").write_text(CONFIG)
    return state


@contextmanager
def running(state, *options: str):
    """`signerd run` with its passphrase on standard input, until it serves."""
    command = [sys.executable, "-m", "signerd", "--state", str(state), "run", *options]
    program = subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    try:
        program.stdin.write("phrase\n")
        program.stdin.close()
        program.first = program.stdout.readline()
        yield program
    finally:
        if program.poll() is None:
            program.kill()
        program.wait()
        program.stdout.close()
        program.stderr.close()


def test_run_serves_until_it_is_told_to_stop_and_leaves_nothing(state):
    with running(state) as program:
        assert f"serves {socket_path(state)}, REGTEST" in program.first
        page = f"serves the page (`signerd --state {state} open`), and apps at http://127.0.0.1:"
        assert page in program.stdout.readline()
        assert "You are not signed in" in program.stdout.readline()
        for command, part in (
            (["status"], "not registered"),
            (["devices"], "No device is connected."),
            (["proposals"], "No proposal is here."),
            (["vaults"], "no vault yet"),
            (["audit", "verify"], "Whole: 0 entries"),
        ):
            assert part in signerd(*command, state=state).out
        program.send_signal(signal.SIGINT)
        rest = program.stdout.read()
        assert program.wait(20) == 0, program.stderr.read()
        assert "signerd: stops" in rest
        assert program.stderr.read() == ""
    assert not socket_path(state).exists()
    signerd("status", state=state, ends=Exit.NOT_RUNNING)


def test_f_a_daemon_that_was_suspended_goes_on_and_its_folder_was_held(state):
    with running(state) as program:
        program.send_signal(signal.SIGSTOP)
        # Returns once it stands still.
        os.waitpid(program.pid, os.WUNTRACED)
        second = signerd("run", "--json", state=state, typed="phrase\n", ends=Exit.STATE)
        assert second.error["code"] == "already-running"
        program.send_signal(signal.SIGCONT)
        signerd("status", state=state)
        program.kill()
        program.wait()
    # A killed one leaves a folder that the next one takes over.
    assert socket_path(state).exists()
    signerd("status", state=state, ends=Exit.NOT_RUNNING)
    with running(state) as program:
        assert "Whole: 0 entries" in signerd("audit", "verify", state=state).out
        program.send_signal(signal.SIGTERM)
        assert program.wait(20) == 0


def test_a_wrong_passphrase_stops_before_anything_is_served(state):
    from custody.common.session_store import SECRETS_FILE
    from signerd.account.secrets import file_store

    file_store(state / SECRETS_FILE, lambda: "right").save("{}")
    ended = signerd("run", "--json", state=state, typed="wrong\n", ends=Exit.SIGNED_OUT)
    assert ended.error["code"] == "secrets-locked"
    assert not socket_path(state).exists()


def test_while_a_folder_is_held_nothing_else_works_on_it(state):
    with held(state):
        for command in (["run"], ["login"], ["logout"]):
            signerd(*command, state=state, typed="phrase\n", ends=Exit.STATE)


# --- status -------------------------------------------------------------------------------------------------


def test_status_says_what_there_is_and_what_is_missing(tmp_path):
    with served_daemon(tmp_path / "s", make_outer(tmp_path)) as desk:
        desk.until(lambda: bool(desk.service.journal.records()))
        text = signerd("status", state=desk.state).out
        for part in ("REGTEST", "signed in as alice@example.org", "1 ready", "1 pinned", "1 wait for you"):
            assert part in text
        found = signerd("status", "--json", state=desk.state).json
        assert (found["network"], found["waiting_for_you"], found["vaults_pinned"]) == ("regtest", 1, 1)


def test_the_state_folder_may_come_from_the_environment(state, monkeypatch):
    monkeypatch.setenv("SIGNERD_STATE", str(state))
    assert str(state) in signerd("status", ends=Exit.NOT_RUNNING).err
    monkeypatch.delenv("SIGNERD_STATE")
    monkeypatch.setenv("XDG_STATE_HOME", str(state / "home"))
    assert str(state / "home" / "signerd") in signerd("status", ends=Exit.NOT_RUNNING).err


@pytest.mark.anyio
async def test_f_a_daemon_that_can_no_longer_write_stops_with_the_reason(state, tmp_path, monkeypatch):
    outer = make_outer(tmp_path)

    def full(_request: object) -> None:
        raise JournalUnwritable("the disk is full")

    outer.platform.before = full
    outside = DaemonDependencies(transport=outer.platform.transport, bridge=outer.bridge, sleep=hurried_sleep)
    monkeypatch.setattr(foreground, "open_daemon", partial(foreground.open_daemon, outside=outside))
    session = {"email": EMAIL, "refresh_token": "refresh-0", "sid": "sid-0123456789abcdef", "url": URL}
    said = []
    with pytest.raises(JournalUnwritable, match="disk is full"):
        await foreground._serve(
            make_config(),
            state,
            MemoryStore(json.dumps(session)),
            lambda *line: said.append(line),
            Supervisor(),
        )
    assert said[-1] == ("signerd", "state", "stops")
    assert not socket_path(state).exists()


def test_p42_what_was_done_to_the_chain_is_named_and_left_as_it_is(prepared):
    with closing(sqlite3.connect(prepared / "journal.sqlite3")) as database, database:
        for (trigger,) in database.execute(
            "SELECT name FROM sqlite_master WHERE type = 'trigger'"
        ).fetchall():
            database.execute(f'DROP TRIGGER "{trigger}"')
        database.execute("DELETE FROM audit WHERE sequence = 2")
    database.close()
    assert signerd("audit", "verify", "--json", state=prepared, ends=Exit.AUDIT).json["at"] == 2
    assert "NOT WHOLE" in signerd("audit", "verify", state=prepared, ends=Exit.AUDIT).out
    assert not list(prepared.glob("damaged-*"))


# --- start-over ---------------------------------------------------------------------------------------------


def test_a_lost_journal_is_begun_anew_on_the_persons_word_only(prepared):
    signerd("audit", "start-over", "--yes", state=prepared, ends=Exit.STATE)
    assert "Whole: 3 entries" in signerd("audit", "verify", state=prepared).out
    shutil.move(prepared / "journal.sqlite3", prepared / "elsewhere")
    declined = signerd("audit", "start-over", state=prepared, typed="n\n", ends=Exit.DECLINED)
    assert (prepared / "journal.born").exists()
    assert "unknown here" in declined.out
    signerd("audit", "start-over", state=prepared, typed="y\n")
    with open_journal(prepared) as journal:
        journal.note(Note("anew", "x"))
        assert journal.head()[0] == 1


def test_the_rules_that_count_are_shown(prepared):
    state = prepared
    (state / "config.toml").write_text(CONFIG)
    assert "No rules" in signerd("rules", "show", state=state).out
    path = state / "rules.toml"
    path.write_text(f'[vaults.{VAULT_ID}.ask]\nalways = true\n[refuse]\nabove_per_day = "60000 sat"\n')
    ended = signerd("rules", "show", state=state)
    assert f"Rules of {path}" in ended.out
    assert (
        "refuse: more than 0.00060000 BTC (60,000 sats) within 24 hours, from all vaults together"
        "  [rule-refuse-per-day]" in ended.out
    )
    assert "when it started" in ended.out
    views = signerd("rules", "show", "--json", state=state).json
    assert [(view["name"], view["vault_id"]) for view in views] == [
        ("rule-refuse-per-day", None),
        ("rule-vault-ask-always", VAULT_ID),
    ]
    (state / "config.toml").unlink()
    assert signerd("rules", "show", "--json", state=state, ends=Exit.STATE).error["code"] == "config-missing"
