"""The port: where it listens, and what is said where it cannot. L1-L4, L9, L11, L12: which requests the
private socket answers.
"""

import errno
import os
import socket
import stat

import pytest

from signerd.endpoint import socket_path, trusted_socket
from signerd.errors import DaemonFailed, UnsafeFolder
from signerd.loopback import serve
from signerd.loopback.access import listening
from signerd.loopback.access.guard import MAX_BODY_BYTES
from signerd.loopback.access.listening import listening_ports, private_socket
from signerd.loopback.answers import ROUTES
from tests.support.ported import ported
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


@pytest.mark.parametrize("host", ["127.0.0.1", "::1", "0.0.0.0"])
def test_a_port_that_is_taken_at_either_address_is_told_and_not_half_served(host, monkeypatch):
    monkeypatch.setattr("signerd.endpoint.ANSWER_SECONDS", 0.05)
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
            assert "by another program. " in note
            assert "[loopback] port" in note


def test_a_restarted_daemon_gets_its_port_back_at_once(tmp_path):
    with ported(tmp_path / "s", devices=()) as port:
        number = port.number
        # The daemon ends this connection itself, and the kernel remembers it for a minute.
        assert port.ask("GET", "/v1/devices").status == 401
        with listening_ports(number) as found:
            assert "taken by what says that it is a signerd, of another state folder. " in found.notes[0]
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


def test_l12_where_the_system_does_not_name_callers_nothing_is_served(monkeypatch):
    monkeypatch.setattr(listening, "teller", lambda _uid: None)
    with listening_ports(0) as found:
        assert (found.sockets, found.port, found.notes) == ((), None, (listening.UNTOLD,))


@pytest.mark.parametrize("name", ["127.0.0.1", "[::1]", "localhost"])
def test_l15_at_a_name_that_others_had_before_a_browser_gets_no_page(tmp_path, name):
    if name == "[::1]" and not has_ipv6():
        pytest.skip("this machine has no IPv6")
    with ported(tmp_path / "s") as port:

        def ask(method: str, path: str, body: str = "", **headers: str):
            host = {"Host": f"{name}:{port.number}"}
            return port.ask(method, path, {**host, **headers}, body.encode(), name.strip("[]"))

        answers = [
            ask("GET", "/"),
            ask("GET", "/proposals/p-1", **{"X-Signerd-Session": port.secret()}),
            ask("GET", "/static/page.js", Origin=f"http://{name}:{port.number}"),
            # What a browser asks for a worker that intercepts all else there.
            ask("GET", "/worker.js", **{"Service-Worker": "script", "Sec-Fetch-Site": "same-origin"}),
            ask("POST", "/enter", f"code={port.entry()}", Origin="null"),
        ]
        for answer in answers:
            assert answer.status == 404
            assert b"signerd open" in answer.body
            # It does not say where the page is.
            assert port.daemon.service.page_address.name.encode() not in answer.body
            assert b"<form" not in answer.body
            assert b"<script" not in answer.body
            assert answer.headers["clear-site-data"] == '"cache", "storage"'
        api = ask("GET", "/v1/openapi.json")
        assert (api.status, api.headers.get("clear-site-data")) == (200, None)
        assert ask("GET", "/v1/devices", **{"X-Signerd-Session": port.secret()}).status == 403
    with ported(tmp_path / "s") as again:
        assert again.daemon.service.page_address.name != port.daemon.service.page_address.name


# --- the socket ---------------------------------------------------------------------------------------------


def test_l12_the_socket_is_for_its_owner_only_and_goes_with_the_daemon(state):
    with private_socket(state):
        found = socket_path(state).lstat()
        assert stat.S_ISSOCK(found.st_mode)
        assert stat.S_IMODE(found.st_mode) == 0o600
        assert stat.S_IMODE(state.lstat().st_mode) == 0o700
    assert not socket_path(state).exists()


@pytest.mark.parametrize("loose", [0o750, 0o701, "link"])
def test_l12_a_folder_that_others_can_enter_and_a_link_are_refused_on_both_sides(state, tmp_path, loose):
    place = state
    with private_socket(state):
        if loose == "link":
            place = tmp_path / "link"
            place.symlink_to(state)
        else:
            state.chmod(loose)
        with pytest.raises(UnsafeFolder):
            trusted_socket(place)
    with pytest.raises(UnsafeFolder), private_socket(place):
        pass


@pytest.mark.parametrize("kind", ["file", "link", "folder"])
def test_l12_something_else_in_the_sockets_place_is_neither_removed_nor_trusted(state, tmp_path, kind):
    place = socket_path(state)
    if kind == "file":
        place.write_text("precious")
    elif kind == "folder":
        place.mkdir()
    else:
        place.symlink_to(tmp_path / "elsewhere.sock")
    with pytest.raises(UnsafeFolder), private_socket(state):
        pass
    with pytest.raises(UnsafeFolder):
        trusted_socket(state)
    assert place.is_symlink() or place.exists()


def test_the_socket_of_a_killed_daemon_is_replaced(state):
    with socket.socket(socket.AF_UNIX) as left_behind:
        left_behind.bind(str(socket_path(state)))
    with private_socket(state), socket.socket(socket.AF_UNIX) as caller:
        caller.connect(str(socket_path(state)))


# --- the peer -----------------------------------------------------------------------------------------------


def test_l12_another_users_connection_is_dropped_before_a_byte_is_read(state, monkeypatch):
    monkeypatch.setattr(serve, "peer_uid", lambda _socket: os.getuid() + 1)
    with served_script(state, status=AssertionError("it got in")) as daemon:
        with pytest.raises(DaemonFailed), daemon.client() as client:
            client.status()
        assert daemon.service.calls == []


# --- the guard ----------------------------------------------------------------------------------------------

BROWSER_LIKE = [
    {"Host": "127.0.0.1:8080"},
    {"Host": "evil.example"},
    {"Host": "signerd.evil.example"},
    {"Host": "signerd:80"},
    {"Host": "localhost"},
    {"Origin": "http://signerd"},
    {"Origin": "null"},
    {"Referer": "http://signerd/"},
    {"Cookie": "a=b"},
    {"Sec-Fetch-Site": "same-origin"},
    {"Sec-WebSocket-Key": "x"},
    {"Access-Control-Request-Private-Network": "true"},
]


@pytest.mark.parametrize("headers", BROWSER_LIKE, ids=lambda h: " ".join(f"{k}={v}" for k, v in h.items()))
def test_l1_to_l4_l9_l14_what_a_browser_could_send_reaches_no_route(silent, headers):
    with silent.raw() as http:
        for route in ROUTES:
            for method in {route.method, "OPTIONS"}:
                answer = http.request(method, "/v1" + route.path, headers=headers)
                assert answer.status_code == 403
                assert not [name for name in answer.headers if name.startswith("access-control")]
    assert silent.service.calls == []


def test_l11_a_body_that_grows_too_long_is_refused_while_it_comes(silent):
    with silent.raw() as http:
        chunks = (b"x" * 0x1000 for _ in range(MAX_BODY_BYTES // 0x1000 + 1))
        answer = http.post("/v1/proposals/p-1/decline", content=chunks)
    assert (answer.status_code, answer.headers["content-type"]) == (413, "application/problem+json")
    assert silent.service.calls == []
