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
from signerd.loopback.access.peers import Ends, far_ends, teller, whose_by
from tests.support.ported import ported

WAYS = pytest.mark.parametrize(
    "owner", [peers.owner_by_netlink, peers.owner_by_table], ids=["sock_diag", "proc"]
)
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
@WAYS
def test_l12_the_kernel_says_who_is_at_the_other_end(listening, owner):
    with socket.create_connection(listening.getsockname()[:2]), listening.accept()[0] as accepted:
        assert whose_by(owner)(accepted) == os.getuid()


@LINUX
@WAYS
def test_l12_a_socket_of_ipv6_that_speaks_ipv4_is_found(owner):
    with socket.create_server(("127.0.0.1", 0)) as listening, socket.socket(socket.AF_INET6) as caller:
        caller.connect(("::ffff:127.0.0.1", listening.getsockname()[1]))
        with listening.accept()[0] as accepted:
            assert whose_by(owner)(accepted) == os.getuid()


@LINUX
@WAYS
def test_l12_a_socket_without_a_process_has_no_owner(listening, owner):
    """The kernel may say root of it: who asks and goes at once must not be taken for root."""
    with socket.create_connection(listening.getsockname()[:2]) as caller, listening.accept()[0] as accepted:
        caller.sendall(b"GET / HTTP/1.1\r\n\r\n")
        caller.close()
        assert whose_by(owner)(accepted) is None


def as_nobody(script: str, *arguments: str) -> subprocess.Popen[bytes]:
    """A shell of another user, which can open a TCP connection by itself."""
    pipe = subprocess.PIPE
    return subprocess.Popen(
        ["bash", "-c", script, *arguments], user=NOBODY, group=NOBODY, stdin=pipe, stdout=pipe, stderr=pipe
    )


@LINUX
@ROOT
@WAYS
def test_l12_another_users_connection_is_told_from_ours(listening, owner):
    host, port = listening.getsockname()[:2]
    with as_nobody("exec 3<>/dev/tcp/$0/$1; read", host, str(port)) as caller:
        with listening.accept()[0] as accepted:
            assert whose_by(owner)(accepted) == NOBODY
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


def test_l12_a_way_to_ask_that_does_not_know_ourselves_is_not_used(monkeypatch):
    monkeypatch.setattr(peers, "owner_by_netlink", lambda _ends: os.getuid() + 1)
    monkeypatch.setattr(peers, "owner_by_table", lambda _ends: None)
    assert teller("127.0.0.1", os.getuid()) is None


def test_the_second_way_is_asked_where_the_first_is_shut(monkeypatch, listening):
    def shut(_ends: Ends) -> int | None:
        raise OSError(errno.EAFNOSUPPORT, "no netlink here")

    monkeypatch.setattr(peers, "owner_by_netlink", shut)
    monkeypatch.setattr(peers, "owner_by_table", lambda _ends: 7)
    whose = teller("127.0.0.1", 7)
    assert whose is not None
    with socket.create_connection(listening.getsockname()[:2]), listening.accept()[0] as accepted:
        assert whose(accepted) == 7


# --- the kernel's tables ------------------------------------------------------------------------------------

ENDS = Ends(ip_address("127.0.0.1"), 40_000, ip_address("127.0.0.1"), 17_707)
HEADING = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n"
LINE = "   0: 0100007F:9C40 0100007F:452B 01 00000000:00000000 00:00000000 00000000  1000        0 77 1 0\n"


@pytest.mark.parametrize(
    "line",
    [
        LINE.replace(" 01 ", " 04 "),
        LINE.replace(" 77 ", " 0 "),
        LINE.replace("9C40", "9C41"),
        LINE.replace("452B", "452C"),
        LINE.replace("0100007F:452B", "0200007F:452B"),
        LINE.replace("0100007F:9C40", "xyz:9C40"),
        LINE[:40],
        ":9C40 :9C40\n",
        "",
    ],
    ids=range(9),
)
def test_a_malformed_line_of_the_table_names_no_owner(monkeypatch, tmp_path, line):
    table = tmp_path / "tcp"
    table.write_text(HEADING + line)
    monkeypatch.setattr(peers, "TABLES", (table,))
    assert peers.owner_by_table(ENDS) is None


def test_l12_two_possible_owners_are_none(monkeypatch, tmp_path):
    table = tmp_path / "tcp"
    table.write_text(HEADING + LINE + LINE.replace(" 1000 ", " 1001 "))
    monkeypatch.setattr(peers, "TABLES", (table, tmp_path / "none"))
    assert peers.owner_by_table(ENDS) is None
    table.write_text(HEADING + LINE)
    assert peers.owner_by_table(ENDS) == 1000


def test_a_system_without_such_tables_says_so(monkeypatch, tmp_path):
    monkeypatch.setattr(peers, "TABLES", (tmp_path / "none",))
    with pytest.raises(OSError, match="no table"):
        peers.owner_by_table(ENDS)


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


def test_the_far_end_is_named_as_its_program_sees_it():
    class Accepted:
        def getsockname(self):
            return ("::ffff:127.0.0.1", 17_707, 0, 0)

        def getpeername(self):
            return ("::ffff:127.0.0.1", 40_000, 0, 0)

    assert far_ends(Accepted()) == ENDS
