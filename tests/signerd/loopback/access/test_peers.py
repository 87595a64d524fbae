"""L12: whose connection it is, asked of this machine's own kernel, and of scripted ones."""

import errno
import os
import socket
import struct
import subprocess
import sys
from ipaddress import ip_address

import pytest

from signerd.errors import SocketUnusable
from signerd.loopback.access import peers
from signerd.loopback.access.peers import Ends, teller, whose_by
from tests.support.ported import ported

LINUX = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="Linux's own way to ask")
ROOT = pytest.mark.skipif(os.getuid() != 0, reason="only root can become another user")
NOBODY = 65_534


@pytest.fixture(params=["127.0.0.1", "::1"])
def listening(request):
    family = socket.AF_INET6 if ":" in request.param else socket.AF_INET
    try:
        made = socket.create_server((request.param, 0), family=family)
    except OSError:
        pytest.skip(f"this machine has no {request.param}")
    with made:
        made.settimeout(10)
        yield made


@LINUX
def test_l12_the_kernel_says_who_is_at_the_other_end(listening):
    with socket.create_connection(listening.getsockname()[:2]), listening.accept()[0] as accepted:
        assert whose_by(peers.owner_by_netlink)(accepted) == os.getuid()


@LINUX
def test_l12_a_socket_of_ipv6_that_speaks_ipv4_is_found():
    with socket.create_server(("127.0.0.1", 0)) as listening, socket.socket(socket.AF_INET6) as caller:
        caller.connect(("::ffff:127.0.0.1", listening.getsockname()[1]))
        with listening.accept()[0] as accepted:
            assert whose_by(peers.owner_by_netlink)(accepted) == os.getuid()


@LINUX
def test_l12_a_socket_without_a_process_has_no_owner(listening):
    """The kernel may say root of it: who asks and goes at once must not be taken for root."""
    with socket.create_connection(listening.getsockname()[:2]) as caller, listening.accept()[0] as accepted:
        caller.sendall(b"GET / HTTP/1.1\r\n\r\n")
        caller.close()
        assert whose_by(peers.owner_by_netlink)(accepted) is None


def as_nobody(script: str, *arguments: str) -> subprocess.Popen[bytes]:
    """A shell of another user, which can open a TCP connection by itself."""
    pipe = subprocess.PIPE
    return subprocess.Popen(
        ["bash", "-c", script, *arguments], user=NOBODY, group=NOBODY, stdin=pipe, stdout=pipe, stderr=pipe
    )


@LINUX
@ROOT
def test_l12_another_users_connection_is_told_from_ours(listening):
    host, port = listening.getsockname()[:2]
    with as_nobody("exec 3<>/dev/tcp/$0/$1; read", host, str(port)) as caller:
        with listening.accept()[0] as accepted:
            assert whose_by(peers.owner_by_netlink)(accepted) == NOBODY
        caller.communicate(b"\n", timeout=90)


ASK = "exec 3<>/dev/tcp/127.0.0.1/$0 || exit 9; "
ASK += 'printf "GET / HTTP/1.1\r\nHost: $1\r\nConnection: close\r\n\r\n" >&3; cat <&3'


@LINUX
@ROOT
def test_l12_another_users_connection_is_dropped_before_a_byte_is_read(tmp_path):
    with ported(tmp_path / "s", devices=AssertionError("it got in")) as port:
        with as_nobody(ASK, str(port.number), port.host) as caller:
            answer, _ = caller.communicate(timeout=90)
        assert answer == b""
        assert caller.returncode not in {0, 9}
        # The same shell of our own user is answered.
        ours = subprocess.run(
            ["bash", "-c", ASK, str(port.number), port.host], capture_output=True, check=False, timeout=90
        )
        assert ours.stdout.startswith(b"HTTP/1.1 401 ")


def test_l12_a_connection_of_unknown_owner_has_none(listening):
    def silent(_ends: Ends) -> int | None:
        raise OSError(errno.EPERM, "not here")

    with socket.create_connection(listening.getsockname()[:2]), listening.accept()[0] as accepted:
        assert whose_by(silent)(accepted) is None


def test_l12_an_answer_that_does_not_know_ourselves_is_not_used(monkeypatch):
    monkeypatch.setattr(peers, "owner_by_netlink", lambda _ends: os.getuid() + 1)
    assert teller(os.getuid()) is None


# --- the kernel's answers -----------------------------------------------------------------------------------

ENDS = Ends(ip_address("127.0.0.1"), 40_000, ip_address("127.0.0.1"), 17_707)


def answer(near: int = 40_000, state: int = 1, inode: int = 5) -> bytes:
    ports = near.to_bytes(2), (17_707).to_bytes(2)
    body = struct.pack("=BBBB2s2s16s16s12x12xII", 2, state, 0, 0, *ports, b"", b"", 1000, inode)
    return struct.pack("=IHHII", 16 + len(body), 20, 0, 0, 0) + body


def fault(number: int) -> bytes:
    return struct.pack("=IHHII", 36, 2, 0, 0, 0) + struct.pack("=i", -number) + bytes(16)


@pytest.mark.parametrize(
    ("given", "owner"),
    [(answer(), 1000), (answer(state=4), None), (answer(inode=0), None), (fault(errno.ENOENT), None)],
    ids=["established", "ending", "held by no process", "none"],
)
def test_l12_an_answer_about_one_connection_names_its_owner(given, owner):
    assert peers.owner_in(given, ENDS) == owner


@pytest.mark.parametrize(
    "given",
    [b"", b"\0", bytes(40), answer()[:60], answer(near=40_001), fault(errno.EPERM), fault(errno.EOPNOTSUPP)],
    ids=range(7),
)
def test_l12_a_malformed_answer_names_no_owner(given):
    with pytest.raises(OSError):
        peers.owner_in(given, ENDS)


class MacSocket:
    """Answers getsockopt as macOS's kernel does, with these bytes."""

    def __init__(self, packed: bytes) -> None:
        self.packed = packed

    def getsockopt(self, level, optname, buflen):
        # SOL_LOCAL, LOCAL_PEERCRED and the size of struct xucred.
        assert (level, optname, buflen) == (0, 1, 76)
        return self.packed


def xucred(uid: int, version: int = 0) -> bytes:
    groups = [20, 12, 61, *([0] * 13)]
    return (
        version.to_bytes(4, sys.byteorder)
        + uid.to_bytes(4, sys.byteorder)
        + struct.pack("=hxx16I", 3, *groups)
    )


@pytest.mark.parametrize("uid", [0, 501, 2**32 - 2])
def test_l12_macos_says_whose_socket_it_is(uid):
    assert peers.peer_uid(MacSocket(xucred(uid)), "darwin") == uid


@pytest.mark.parametrize("packed", [b"", xucred(501)[:-4], xucred(501) + b"\0", xucred(501, version=1)])
def test_l12_a_malformed_answer_of_macos_names_no_owner(packed):
    with pytest.raises(SocketUnusable):
        peers.peer_uid(MacSocket(packed), "darwin")
