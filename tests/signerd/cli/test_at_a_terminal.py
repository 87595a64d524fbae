"""A person at a terminal: the real program at a real one. What is secret is not echoed, and Ctrl-C ends it at
once, at every question.
"""

import os
import pty
import select
import shutil
import subprocess
import sys
import termios
import time
from contextlib import contextmanager
from pathlib import Path

import pytest

from custody.common.terminal import Exit
from tests.signerd.cli.test_daemon import CONFIG
from tests.support.command import signerd
from tests.support.patience import PATIENCE
from tests.support.served import make_outer, served_daemon

CTRL_C, CTRL_D = b"\x03", b"\x04"

pytestmark = pytest.mark.skipif(
    shutil.which("setsid") is None, reason="setsid is not installed (Debian: util-linux)"
)


@contextmanager
def at_terminal(state, *arguments):
    """signerd at a terminal."""
    with program_at_terminal("signerd", "--state", str(state), *arguments) as both:
        yield both


@contextmanager
def program_at_terminal(module, *arguments):
    """The program, whose terminal it is, so that Ctrl-C is a signal to it; and our end of the terminal."""
    ours, theirs = pty.openpty()
    command = ["setsid", "--ctty", sys.executable, "-m", module, *arguments]
    program = subprocess.Popen(command, stdin=theirs, stdout=theirs, stderr=theirs)
    os.close(theirs)
    try:
        yield program, ours
    finally:
        os.close(ours)
        program.kill()
        program.wait()


def answer(terminal: int, question: bytes, typed: bytes, *, secret: bool) -> bytes:
    """Wait for the question, then type; what stood there."""
    seen = read_until(terminal, question)
    await_echo(terminal, wanted=not secret)
    os.write(terminal, typed)
    return seen


# A person whose key did nothing presses it again.
AGAIN_SECONDS = 5.0
PASSPHRASE = ((b"Choose a passphrase", b"phrase of mine\n", True), (b"epeat", b"phrase of mine\n", True))
EMAIL = (b"E-mail", b"alice@example.org\n", False)


def test_a_password_of_custody_that_is_refused_is_asked_for_again(tmp_path):
    names = "--organisation A --workspace Main --chain regtest --email ada@b.example"
    words = ("admin", "bootstrap", "--state", str(tmp_path / "platform"), *names.split())
    with program_at_terminal("custody.server", *words) as (program, terminal):
        answer(terminal, b"Password", b"password\n", secret=True)
        assert b"at least 12 characters" in answer(terminal, b"Password", b"password1234\n", secret=True)
        assert b"too easily" in answer(terminal, b"Password", b"a few words of mine\n", secret=True)
        answer(terminal, b"Repeat", b"a few words of mine\n", secret=True)
        assert b"ada@b.example is user 1" in read_until(terminal, None)
        assert program.wait(PATIENCE) == Exit.OK


def test_l10_a_typed_password_is_not_echoed(state):
    """Against a platform that is not there."""
    (state / "config.toml").write_text(CONFIG)
    with at_terminal(state, "login") as (program, terminal):
        seen = b""
        for question, typed, secret in (*PASSPHRASE, EMAIL, (b"Password", b"hunter2\n", True)):
            seen += answer(terminal, question, typed, secret=secret)
        seen += read_until(terminal, None)
        assert program.wait(PATIENCE) == Exit.PLATFORM, seen
    assert b"alice@example.org" in seen
    assert b"hunter2" not in seen
    assert b"phrase of mine" not in seen


def left_at(state, arguments, before, question, *, secret, key=CTRL_C) -> int:
    """The status of a program that is left at this question."""
    with at_terminal(state, *arguments) as (program, terminal):
        for earlier, typed, was_secret in before:
            answer(terminal, earlier, typed, secret=was_secret)
        read_until(terminal, question)
        await_echo(terminal, wanted=not secret)
        await_sleep(program)
        assert b"Traceback" not in leave(terminal, key)
        return program.wait(PATIENCE)


def leave(terminal: int, key: bytes) -> bytes:
    """Press until the program has ended: in the instant before Python reads, one is lost."""
    deadline = time.monotonic() + PATIENCE
    while True:
        os.write(terminal, key)
        try:
            return read_until(terminal, None, AGAIN_SECONDS)
        except AssertionError:
            assert time.monotonic() < deadline


@pytest.mark.parametrize(
    ("arguments", "before", "question", "secret"),
    [
        (["login"], PASSPHRASE, b"E-mail", False),
        (["login"], (*PASSPHRASE, EMAIL), b"Password", True),
        (["run"], (), b"Choose a passphrase", True),
    ],
    ids=["a line", "a password", "the daemon's start"],
)
def test_ctrl_c_ends_at_once(state, arguments, before, question, secret):
    (state / "config.toml").write_text(CONFIG)
    assert left_at(state, arguments, before, question, secret=secret) == Exit.INTERRUPTED


def test_ctrl_c_at_a_yes_or_no_and_while_waiting(tmp_path, state):
    with served_daemon(state, make_outer(tmp_path)) as daemon:
        daemon.until(lambda: bool(tuple(daemon.service.journal.records())))
        for key in (CTRL_C, CTRL_D):
            status = left_at(state, ["approve", "p-1"], (), b"Sign this", secret=False, key=key)
            assert status == Exit.INTERRUPTED
        assert left_at(state, ["pair"], (), b"Ctrl-C ends it.", secret=False) == Exit.INTERRUPTED
        assert signerd("show", "p-1", "--json", state=state).json["state"] == "waiting-for-person"


def await_sleep(program: "subprocess.Popen[bytes]", seconds: float = PATIENCE) -> None:
    """Until it waits for the answer: between the question and that, Python notices a signal at the next one
    alone, and no person is so fast.
    """
    deadline = time.monotonic() + seconds
    while Path(f"/proc/{program.pid}/stat").read_text().rpartition(")")[2].split()[0] != "S":
        assert time.monotonic() < deadline, "it does not wait"
        select.select([], [], [], 0.005)


def await_echo(terminal: int, *, wanted: bool, seconds: float = PATIENCE) -> None:
    """A person is slower than the program that switches the echo off; a test is not."""
    deadline = time.monotonic() + seconds
    while bool(termios.tcgetattr(terminal)[3] & termios.ECHO) is not wanted:
        assert time.monotonic() < deadline, "the echo stayed as it was"
        select.select([], [], [], 0.005)


def read_until(terminal: int, wanted: bytes | None, seconds: float = PATIENCE) -> bytes:
    """What the terminal shows, up to a word and the question's end; None: to the end of the program."""
    seen, deadline = b"", time.monotonic() + seconds
    while wanted is None or wanted not in seen or not seen.rstrip().endswith((b":", b"ends it.")):
        left = deadline - time.monotonic()
        if left <= 0 or not select.select([terminal], [], [], left)[0]:
            raise AssertionError(f"{wanted!r} did not come: {seen!r}")
        try:
            part = os.read(terminal, 4096)
        except OSError:  # Linux says so when the other end is closed.
            part = b""
        if not part:
            assert wanted is None, seen
            break
        seen += part
    return seen
