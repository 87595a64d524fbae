"""Emulators are noticed without sending them anything."""

import socket
import sys
from contextlib import contextmanager
from pathlib import Path

import pytest

from firmware_bridge import presence
from firmware_bridge.model import Endpoint, Family
from firmware_bridge.presence import endpoints
from tests.conformance.rigs import short_folder

pytestmark = pytest.mark.anyio
needs_linux = pytest.mark.skipif(sys.platform != "linux", reason="elsewhere the address itself is asked")


@pytest.fixture
def folder():
    with short_folder() as name:
        yield Path(name)


@contextmanager
def listening(family, kind, address):
    with socket.socket(family, kind) as server:
        server.bind(address)
        server.setblocking(False)  # noqa: FBT003 - the signature is not ours
        yield server


def at(server):
    """On this machine, whatever address it is bound to."""
    kind = "trezor:udp" if server.type is socket.SOCK_DGRAM else "ledger:tcp"
    return Endpoint.parse(f"{kind}:127.0.0.1:{server.getsockname()[1]}")


async def test_a_unix_socket_is_there_while_it_is_bound_and_nothing_is_sent(folder):
    path = str(folder / "s")
    endpoint = Endpoint(Family.COLDCARD, f"unix:{path}")
    listing = presence.endpoint_listing([endpoint])
    assert await listing([]) == []
    with listening(socket.AF_UNIX, socket.SOCK_DGRAM, path) as server:
        (sighting,) = await listing([endpoint])
        assert sighting.endpoint == endpoint
        with pytest.raises(BlockingIOError):
            server.recv(1)
    # The file stays; no socket is bound to it.
    assert path in {str(left) for left in folder.iterdir()}
    assert await listing([]) == []


@needs_linux
@pytest.mark.parametrize("in_use", [False, True])
@pytest.mark.parametrize(
    ("family", "kind", "host"),
    [
        (socket.AF_INET, socket.SOCK_DGRAM, "127.0.0.1"),
        (socket.AF_INET, socket.SOCK_DGRAM, "0.0.0.0"),
        (socket.AF_INET, socket.SOCK_STREAM, "127.0.0.1"),
        (socket.AF_INET6, socket.SOCK_STREAM, "::"),
    ],
)
async def test_an_emulator_is_there_while_its_port_is_open_and_hears_nothing(family, kind, host, in_use):
    with listening(family, kind, (host, 0)) as server:
        endpoint = at(server)
        listing = presence.endpoint_listing([endpoint])
        if kind is socket.SOCK_STREAM:
            server.listen()
        assert len(await listing([endpoint] if in_use else [])) == 1
        with pytest.raises(BlockingIOError):
            server.accept() if kind is socket.SOCK_STREAM else server.recv(1)
    assert await listing([]) == []


async def test_a_tcp_emulator_in_use_may_have_stopped_listening():
    with listening(socket.AF_INET, socket.SOCK_STREAM, ("127.0.0.1", 0)) as server:
        endpoint = at(server)
    assert len(await presence.endpoint_listing([endpoint])([endpoint])) == 1


@pytest.fixture
def not_linux(monkeypatch):
    """Where a bound address may be bound again, so that the emulator itself is asked."""
    monkeypatch.setattr(endpoints.sys, "platform", "darwin")


@pytest.mark.usefixtures("not_linux")
async def test_elsewhere_a_port_that_answers_something_else_is_no_trezor():
    with listening(socket.AF_INET, socket.SOCK_DGRAM, ("127.0.0.1", 0)) as server:
        listing = presence.endpoint_listing([at(server)])
        # One in use is not asked.
        assert len(await listing([at(server)])) == 1
        with pytest.raises(BlockingIOError):
            server.recv(1)
        assert await listing([]) == []
        assert server.recv(64) == b"PINGPING"


@pytest.mark.usefixtures("not_linux")
async def test_elsewhere_a_tcp_port_is_there_while_it_listens():
    with listening(socket.AF_INET, socket.SOCK_STREAM, ("127.0.0.1", 0)) as server:
        listing = presence.endpoint_listing([at(server)])
        assert await listing([]) == []
        server.listen()
        assert len(await listing([])) == 1


@pytest.mark.parametrize(
    ("host", "expected"),
    [
        ("127.0.0.1", ["127.0.0.1"]),
        ("localhost", ["127.0.0.1", "::1"]),
        ("[::1]", ["::1"]),
        ("192.0.2.1", []),
        ("trezor.local", []),
    ],
)
def test_only_this_machines_own_addresses_are_tried(host, expected):
    assert [str(address) for address in endpoints.loopback_hosts(host)] == expected
