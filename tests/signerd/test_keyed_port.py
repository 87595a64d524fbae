"""Where there are no Unix sockets: a port behind a key, on both sides. It is plain TCP, and runs here as on
Windows.
"""

import socket
import stat
import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st

from signerd import asking, keyed_port
from signerd.client import AsyncDaemonClient, DaemonClient
from signerd.errors import DaemonNotRunning, NotOnThisSystem, UnsafeFolder
from signerd.keyed_port import KEYED_PORT_FILE, Handshake, KeyedPort, WrongKey, authenticate
from signerd.loopback.access.listening import private_keyed_port
from tests.support.served import make_outer, served_daemon


@pytest.fixture
def state(tmp_path):
    folder = tmp_path / "s"
    folder.mkdir(mode=0o700)
    return folder


@pytest.fixture
def without_sockets(monkeypatch):
    """As on Windows, for the person's programs."""
    monkeypatch.setattr(asking, "HAS_SOCKETS", False)


@pytest.fixture
def daemon(tmp_path, without_sockets):
    with served_daemon(tmp_path / "s", make_outer(tmp_path), by_keyed_port=True) as found:
        yield found


def test_the_persons_programs_come_in_by_the_door(daemon):
    with daemon.client() as client:
        assert client.status().network == "regtest"
        assert [line.psbt_id for line in client.proposals()] == ["p-1"]
        with client.follow(after=0) as lines:
            assert next(iter(lines)) is not None
    assert not (daemon.state / "signerd.sock").exists()


def test_l12_the_key_lies_where_this_user_alone_reads_it_and_goes_with_the_daemon(state):
    with private_keyed_port(state) as (listening, made):
        path = state / KEYED_PORT_FILE
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        assert KeyedPort.trusted(state) == made
        assert listening.getsockname() == ("127.0.0.1", made.port)
        assert made.key.hex() not in f"{made} {made!r}"
    assert not path.exists()
    with private_keyed_port(state) as (_listening, again):
        assert again.key != made.key


@pytest.mark.parametrize("open_up", [lambda s: s.chmod(0o750), lambda s: (s / KEYED_PORT_FILE).chmod(0o640)])
def test_l12_a_key_that_others_can_read_is_not_trusted(state, open_up):
    KeyedPort.fresh(4_000).write(state)
    open_up(state)
    with pytest.raises(UnsafeFolder):
        KeyedPort.trusted(state)


@pytest.mark.parametrize(
    "written", [b"", b"{}", b"[]", b'{"port": 0, "key": "00"}', b'{"port": 80, "key": "zz"}', b"\xff" * 600]
)
def test_what_is_no_door_is_said(state, written):
    (state / KEYED_PORT_FILE).write_bytes(written)
    (state / KEYED_PORT_FILE).chmod(0o600)
    with pytest.raises(DaemonNotRunning):
        KeyedPort.trusted(state)


def test_without_a_file_no_daemon_runs(state):
    with pytest.raises(DaemonNotRunning, match="no signerd serves"):
        KeyedPort.trusted(state)


@pytest.mark.parametrize("with_proof", [True, False])
def test_l12_who_does_not_know_the_key_gets_no_byte_of_http_through(daemon, with_proof):
    known = KeyedPort.trusted(daemon.state)
    stranger = KeyedPort.fresh(known.port)
    with socket.create_connection(("127.0.0.1", known.port), 10) as connection:
        request = b"GET /v1/status HTTP/1.1\r\nHost: signerd\r\nConnection: close\r\n\r\n"
        connection.sendall(b"\0" * 32 + (b"\1" * 32 if with_proof else b"") + request)
        answer = b""
        while piece := _read(connection):
            answer += piece
        assert b"HTTP" not in answer
        assert stranger.key not in answer
        assert known.key not in answer


def _read(connection):
    try:
        return connection.recv(4_096)
    except ConnectionError:
        return b""


def test_l12_nothing_of_use_is_sent_to_a_program_that_took_the_port(state, without_sockets):
    """The daemon is gone; its file is left, as after a kill."""
    heard = []
    with socket.create_server(("127.0.0.1", 0)) as taken:
        KeyedPort.fresh(taken.getsockname()[1]).write(state)

        def answer():
            caller, _name = taken.accept()
            with caller:
                heard.append(caller.recv(4_096))
                caller.sendall(b"\2" * 64)
                heard.append(_read(caller))

        listening = threading.Thread(target=answer, daemon=True)
        listening.start()
        with pytest.raises(DaemonNotRunning, match="does not know the daemon's key"):
            DaemonClient(state)
        listening.join(30)
    assert [len(one) for one in heard] == [32, 0]


def test_a_proof_is_compared_in_constant_time(monkeypatch):
    compared = []
    monkeypatch.setattr(keyed_port.hmac, "compare_digest", lambda *both: compared.append(both) or False)
    handshake = Handshake(KeyedPort.fresh(1))
    with pytest.raises(WrongKey):
        handshake.receive(b"\0" * 64)
    assert [len(one) for one in compared[0]] == [32, 32]


@given(st.lists(st.integers(1, 40), max_size=8), st.binary(max_size=50))
def test_the_handshake_is_read_in_pieces_of_any_length(cuts, rest):
    made = KeyedPort.fresh(1)
    ours, theirs = socket.socketpair()
    handshake, passed = Handshake(made), []
    with ours, theirs:

        def call():
            authenticate(ours, made)
            ours.sendall(rest)
            ours.shutdown(socket.SHUT_WR)

        caller = threading.Thread(target=call)
        caller.start()
        sizes = iter(cuts)
        while piece := theirs.recv(next(sizes, 64)):
            if handshake.is_open:
                passed.append(piece)
                continue
            answer, behind = handshake.receive(piece)
            passed.append(behind)
            theirs.sendall(answer)
        caller.join()
    assert handshake.is_open
    assert b"".join(passed) == rest


def test_one_handshake_is_not_good_for_another_connection():
    made = KeyedPort.fresh(1)
    first, second = Handshake(made), Handshake(made)
    caller = b"\3" * 32
    answer, _rest = first.receive(caller)
    proof = made.proof(b"signerd-door-v1 caller", caller, answer[:32])
    second.receive(caller)
    with pytest.raises(WrongKey):
        second.receive(proof)
    # Nor is the daemon's own proof the caller's.
    with pytest.raises(WrongKey):
        first.receive(answer[32:])


def test_a_program_with_an_event_loop_is_told_what_it_can_do_instead(state, without_sockets):
    KeyedPort.fresh(4_000).write(state)
    with pytest.raises(NotOnThisSystem, match="no Unix socket") as told:
        AsyncDaemonClient(state)
    assert "DaemonClient" in told.value.hint
