"""Addresses, sockets and the lock of a state folder."""

import asyncio
import socket
from pathlib import Path

import pytest

from custody.server.web.listen import CannotListen, ListenAddress, bind, only_server
from tests.support.patience import PATIENCE


@pytest.mark.parametrize(
    ("text", "host", "port", "url"),
    [
        ("127.0.0.1:8080", "127.0.0.1", 8080, "http://127.0.0.1:8080"),
        ("[::1]:0", "::1", 0, "http://[::1]:0"),
        ("0.0.0.0:65535", "0.0.0.0", 65535, "http://0.0.0.0:65535"),
    ],
)
def test_addresses(text: str, host: str, port: int, url: str) -> None:
    address = ListenAddress.parse(text)
    assert (address.host, address.port, address.url) == (host, port, url)


@pytest.mark.parametrize(
    "text", ["", "8080", "127.0.0.1", "127.0.0.1:", "localhost:80", "1.2.3.4:70000", "::1"]
)
def test_what_is_no_address_is_explained(text: str) -> None:
    with pytest.raises(CannotListen) as refused:
        ListenAddress.parse(text)
    assert refused.value.hint


@pytest.mark.parametrize("host", ["0.0.0.0", "192.0.2.1", "::"])
def test_plain_http_stays_on_this_machine(host: str) -> None:
    with pytest.raises(CannotListen, match="other machines"):
        bind(ListenAddress(host, 0), behind_proxy=False)


@pytest.mark.anyio
@pytest.mark.parametrize("host", ["127.0.0.1", "::1"])
async def test_an_answer_is_sent_at_once(host: str) -> None:
    """Else the second packet of each answer waits until the first was acknowledged,
    which a peer puts off for 40 ms.
    """
    found: asyncio.Queue[int] = asyncio.Queue()

    async def answer(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        accepted = writer.get_extra_info("socket")
        await found.put(accepted.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY))
        writer.close()

    async with await asyncio.start_server(
        answer, sock=bind(ListenAddress(host, 0), behind_proxy=False)
    ) as server:
        _reader, writer = await asyncio.open_connection(*server.sockets[0].getsockname()[:2])
        assert await asyncio.wait_for(found.get(), PATIENCE) == 1
        writer.close()
        await writer.wait_closed()


def test_a_port_in_use_is_explained() -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        with pytest.raises(CannotListen, match="cannot be used"):
            bind(ListenAddress("127.0.0.1", other.getsockname()[1]), behind_proxy=False)


def test_one_server_for_each_state_folder(tmp_path: Path) -> None:
    with only_server(tmp_path):
        with pytest.raises(CannotListen, match="Another server"), only_server(tmp_path):
            pass
        with pytest.raises(CannotListen, match="Another server"), only_server(tmp_path):
            pass
    with only_server(tmp_path):
        pass
