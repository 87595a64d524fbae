"""The daemon under systemd: what it takes out of the environment, and what it tells. The real programs of
systemd do the rest where they are installed: one hands a socket over, one reads the units.
"""

import asyncio
import contextlib
import os
import shutil
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from signerd.api.account import AccountApi
from signerd.endpoint import socket_path
from signerd.errors import SocketUnusable, UnsafeFolder
from signerd.loopback.access import listening
from signerd.loopback.access.listening import private_socket
from signerd.service.supervised import Supervisor
from tests.signerd.cli.test_daemon import CONFIG
from tests.support.command import signerd

PID = 77
# Longer than any machine of ours is busy.
SECONDS = 120.0


@pytest.fixture(params=["file", "abstract"])
def notified(request, tmp_path):
    """The address of systemd's socket for datagrams, as its variable has it."""
    return str(tmp_path / "notify") if request.param == "file" else f"@signerd-test-{os.getpid()}"


@pytest.fixture
def manager(notified):
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as peer:
        peer.bind(notified.replace("@", "\0"))
        peer.settimeout(SECONDS)
        yield peer


@contextlib.contextmanager
def opened(path):
    """As systemd opens the socket of the unit."""
    with socket.socket(socket.AF_UNIX) as one:
        one.bind(str(path))
        path.chmod(0o600)
        one.listen()
        yield one


def test_its_variables_are_taken_out_of_the_environment_so_that_no_child_has_them():
    environment = {
        "HOME": "/h",
        "NOTIFY_SOCKET": "/n",
        "WATCHDOG_USEC": "3000000",
        "WATCHDOG_PID": str(PID),
        "LISTEN_PID": "1",
        "LISTEN_FDS": "1",
        "LISTEN_FDNAMES": "signerd.socket",
    }
    assert Supervisor.taken(environment, PID) == Supervisor("/n", 3.0, None)
    assert environment == {"HOME": "/h"}


@pytest.mark.parametrize("count", ["2", "-1", "x"])
def test_more_or_less_than_the_one_socket_of_the_unit_is_refused(count):
    with pytest.raises(SocketUnusable):
        Supervisor.taken({"LISTEN_PID": str(PID), "LISTEN_FDS": count}, PID)


@pytest.mark.anyio
async def test_it_tells_that_it_is_ready_that_its_loop_lives_and_that_it_stops(manager, notified):
    manager.settimeout(0)
    loop = asyncio.get_running_loop()
    async with Supervisor(notified, 0.002).notified(), asyncio.timeout(SECONDS):
        told = [await loop.sock_recv(manager, 100) for _ in range(4)]
    assert told == [b"READY=1", b"WATCHDOG=1", b"WATCHDOG=1", b"WATCHDOG=1"]
    with contextlib.suppress(BlockingIOError):
        while True:
            told.append(manager.recv(100))
    assert told[-1] == b"STOPPING=1"


def test_the_socket_that_is_handed_over_is_served_and_its_file_stays(state):
    with opened(socket_path(state)) as theirs:
        ours = socket.socket(fileno=os.dup(theirs.fileno()))
        with private_socket(state, ours) as found, socket.socket(socket.AF_UNIX) as caller:
            caller.connect(str(socket_path(state)))
            found.settimeout(SECONDS)
            accepted, _ = found.accept()
            accepted.close()
        assert found.fileno() == -1
        assert socket_path(state).exists()


def test_l12_a_socket_that_is_another_does_not_listen_or_is_open_to_others_is_refused(state, tmp_path):
    with opened(tmp_path / "other.sock") as other, pytest.raises(SocketUnusable, match="another socket"):
        private_socket(state, other).__enter__()
    with socket.socket(socket.AF_UNIX) as mute:
        mute.bind(str(socket_path(state)))
        with pytest.raises(SocketUnusable, match="another socket"):
            private_socket(state, mute).__enter__()
    socket_path(state).unlink()
    with opened(socket_path(state)) as loose:
        socket_path(state).chmod(0o666)
        with pytest.raises(UnsafeFolder, match="open to other users"):
            private_socket(state, loose).__enter__()


@pytest.mark.skipif(not listening.UNIX_TABLE.exists(), reason="this system has no table of its sockets")
def test_a_socket_that_the_manager_listens_at_is_not_taken_away_from_it(state):
    with opened(socket_path(state)):
        with pytest.raises(SocketUnusable) as refused, private_socket(state):
            pass
        assert "signerd service" in refused.value.hint
        assert socket_path(state).exists()


ACTIVATE = shutil.which("systemd-socket-activate")


@pytest.mark.skipif(ACTIVATE is None, reason="systemd-socket-activate is not installed")
@pytest.mark.parametrize("notified", ["file"], indirect=True)
def test_a_first_call_starts_the_daemon_which_answers_it_and_tells_the_manager(
    state, manager, notified, tmp_path, monkeypatch
):
    # On a busy machine the start alone may take longer than a call waits.
    monkeypatch.setattr(AccountApi.status, "seconds", SECONDS)
    config = state / "config.toml"
    config.write_text(CONFIG)
    passphrase = tmp_path / "credentials"
    passphrase.mkdir()
    (passphrase / "signerd-passphrase").write_text("phrase\n")
    environment = {
        **os.environ,
        "CREDENTIALS_DIRECTORY": str(passphrase),
        "NOTIFY_SOCKET": notified,
        # The second time only long after the test.
        "WATCHDOG_USEC": "3600000000",
    }
    handed_on = [f"--setenv={name}" for name in ("CREDENTIALS_DIRECTORY", "NOTIFY_SOCKET", "WATCHDOG_USEC")]
    command = [ACTIVATE, f"--listen={socket_path(state)}", *handed_on]
    daemon = subprocess.Popen(
        [*command, sys.executable, "-m", "signerd", "--state", str(state), "run"],
        env=environment,
        cwd=Path(__file__).parents[3],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    with daemon:
        try:
            assert "Listening on" in daemon.stderr.readline()
            # It has no SocketMode=, as the unit has.
            socket_path(state).chmod(0o600)
            signerd("status", "--json", state=state)
            assert [manager.recv(100), manager.recv(100)] == [b"READY=1", b"WATCHDOG=1"]
            daemon.send_signal(signal.SIGTERM)
            assert manager.recv(100) == b"STOPPING=1"
            assert daemon.wait(SECONDS) == 0
            assert socket_path(state).exists()
        finally:
            daemon.kill()
