"""The port: where it listens, and what is said where it cannot."""

import errno
import socket

import pytest

from signerd.loopback.access import listening
from signerd.loopback.access.listening import listening_ports
from tests.signerd.loopback.test_routes import STATUS
from tests.support.ported import exchange, ported
from tests.support.served import served_script


def addresses(found) -> list[tuple]:
    return [one.getsockname()[:2] for one in found.sockets]


def has_ipv6() -> bool:
    try:
        with socket.create_server(("::1", 0), family=socket.AF_INET6):
            return True
    except OSError:
        return False


def test_both_addresses_of_this_machine_and_no_other_at_one_port():
    with listening_ports(0) as found:
        assert found.port
        hosts = ["127.0.0.1", "::1"] if has_ipv6() else ["127.0.0.1"]
        assert addresses(found) == [(host, found.port) for host in hosts]
    with socket.socket() as caller:
        assert caller.connect_ex(("127.0.0.1", found.port)) == errno.ECONNREFUSED


def test_an_answer_does_not_wait_for_the_last_ones_receipt():
    """asyncio turns Nagle's waiting off for what it knows to be TCP; an answer in two parts takes 40 ms
    otherwise.
    """
    with listening_ports(0) as found:
        assert {one.proto for one in found.sockets} == {socket.IPPROTO_TCP}


@pytest.mark.parametrize("host", ["127.0.0.1", "::1", "0.0.0.0"])
def test_a_port_that_is_taken_at_either_address_is_told_and_not_half_served(host):
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    if family == socket.AF_INET6 and not has_ipv6():
        pytest.skip("this machine has no IPv6")
    with socket.create_server((host, 0), family=family) as taken:
        port = taken.getsockname()[1]
        with listening_ports(port) as found:
            assert found.sockets == ()
            assert found.port is None
            (note,) = found.notes
            assert f"port {port} of this machine is taken" in note
            assert "[loopback] port" in note


def test_a_restarted_daemon_gets_its_port_back_at_once(tmp_path):
    with ported(tmp_path / "s", devices=()) as port:
        number = port.number
        # The daemon ends this connection itself, and the kernel remembers it for a minute.
        assert port.ask("GET", "/v1/devices").status == 401
    with listening_ports(number) as found:
        assert found.port == number


@pytest.mark.parametrize("fault", [errno.EAFNOSUPPORT, errno.EADDRNOTAVAIL])
def test_without_ipv6_the_first_address_is_served_and_the_status_says_so(monkeypatch, fault):
    bound = listening._bound

    def only_ipv4(family, host, port):
        if family == socket.AF_INET6:
            raise OSError(fault, "not here")
        return bound(family, host, port)

    monkeypatch.setattr(listening, "_bound", only_ipv4)
    with listening_ports(0) as found:
        assert addresses(found) == [("127.0.0.1", found.port)]
        assert found.notes == (listening.NO_IPV6,)


def test_any_free_port_is_looked_for_until_both_addresses_have_it(monkeypatch):
    bound, refused = listening._bound, []

    def first_taken(family, host, port):
        if family == socket.AF_INET6 and len(refused) < 3:
            refused.append(port)
            raise OSError(errno.EADDRINUSE, "taken")
        return bound(family, host, port)

    monkeypatch.setattr(listening, "_bound", first_taken)
    with listening_ports(0) as found:
        assert found.port is not None
    assert len(refused) == 3


def test_l12_where_the_system_does_not_name_callers_nothing_is_served(monkeypatch):
    monkeypatch.setattr(listening, "teller", lambda _host, _uid: None)
    with listening_ports(0) as found:
        assert (found.sockets, found.port, found.notes) == ((), None, (listening.UNTOLD,))


def test_a_machine_that_refuses_is_told_with_its_reason(monkeypatch):
    def refuse(*_args):
        raise OSError(errno.EMFILE, "Too many open files")

    monkeypatch.setattr(listening, "_bound", refuse)
    with listening_ports(0) as found:
        assert found.notes == (listening.REFUSED.format(reason="Too many open files"),)


def test_a_taken_port_is_no_reason_to_die(tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with ported(tmp_path / "s", at=port, status=STATUS) as found, found.daemon.client() as client:
            assert client.status() == STATUS
            reach = found.daemon.service.page_address
            assert reach.url is None
            assert "taken" in reach.notes[0]


def test_without_the_port_nothing_is_said_of_it(tmp_path):
    with served_script(tmp_path / "s") as daemon:
        assert (daemon.service.page_address.port, daemon.service.page_address.notes) == (None, ())


@pytest.mark.parametrize("name", ["127.0.0.1", "[::1]", "localhost"])
def test_the_page_is_at_each_of_its_names(tmp_path, name):
    if name == "[::1]" and not has_ipv6():
        pytest.skip("this machine has no IPv6")
    with ported(tmp_path / "s") as port:
        request = f"GET / HTTP/1.1\r\nHost: {name}:{port.number}\r\nConnection: close\r\n\r\n".encode()
        answer = exchange(port.number, request, name.strip("[]"))
        assert answer.startswith(b"HTTP/1.1 401 ")
        assert b"signerd open" in answer
