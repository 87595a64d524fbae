"""Every failure of the connection to the node is one error, which says what to do and shows no secret."""

import threading
import time

import pytest
from pydantic import SecretStr

from custody.server.chain.core import CookieFile, CoreBackend, Password
from custody.server.chain.core.rpc import Rpc, RpcCall
from custody.server.errors import ChainUnavailable
from multisig.network import Network
from tests.support.dripping import dripping
from tests.support.fake_bitcoind import PASSWORD, USER


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"hangs_up": True}, "cannot be reached"),
        ({"cut_at": 20}, "cannot be reached"),
        ({"status": 403}, "rpcwhitelist"),
        ({"status": 404}, "HTTP status 404: that is not a bitcoind"),
        ({"status": 302}, "HTTP status 302"),
        ({"status": 503}, "work queue full"),
        ({"status": 500, "body": b"<html>"}, "not JSON-RPC"),
        ({"body": b""}, "not JSON-RPC"),
        ({"body": b"[" * 100_000}, "not JSON-RPC"),
        ({"body": b"1" * 5_000}, "not JSON-RPC"),
        ({"body": b"[]"}, "not one reply for each call"),
        ({"body": b"7"}, "not one reply for each call"),
        ({"body": b"[1, 2]"}, "replies to other calls"),
        ({"body": b'[{"id": 0, "result": 1}, {"id": 0, "result": 1}]'}, "replies to other calls"),
        ({"body": b'[{"id": 0}, {"id": 1}]'}, "without result"),
        ({"body": b'{"result": null, "error": {"code": -32700, "message": "Parse error"}}'}, "one reply"),
        ({"body": b'[{"id": 0, "error": "no"}, {"id": 1, "result": {}}]'}, "an error without a code"),
        ({"starting": True}, "still starting: Loading block index"),
        ({"unknown": {"getindexinfo"}}, "does not know getindexinfo. Bitcoin Core 25"),
    ],
    ids=lambda value: None if isinstance(value, str) else ",".join(value),
)
def test_a_fault_on_the_way_is_unavailable_and_is_over_when_it_is_over(rig, faults, changes, words):
    tip = rig.backend.tip()
    before = dict(vars(faults))
    vars(faults).update(changes)
    with pytest.raises(ChainUnavailable, match=words) as caught:
        rig.backend.tip()
    assert PASSWORD not in str(caught.value)
    vars(faults).update(before)
    assert rig.backend.tip() == tip


def test_a_node_that_does_not_answer_in_time(rig, faults):
    impatient = rig.node.connect(answer_seconds=0.2)
    faults.held = threading.Event()
    with pytest.raises(ChainUnavailable, match="in time"):
        impatient.tip()
    faults.held.set()
    faults.held = None
    assert rig.backend.tip().height == 1
    impatient.close()


@pytest.mark.parametrize(
    "first", [b"HTTP/1.1 200 OK\r\nX-Drip: ", b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n"]
)
def test_an_answer_that_drips_is_not_waited_for(first):
    """Each piece comes in time; all of them together do not."""
    with dripping(first, b" ") as url:
        rpc = Rpc(url, Password(USER, SecretStr(PASSWORD)), answer_seconds=0.3)
        started = time.monotonic()
        with pytest.raises(ChainUnavailable, match=r"too slowly|in time"):
            rpc.ask(RpcCall("getblockcount"))
        assert time.monotonic() - started < 30
        rpc.close()


def test_an_answer_is_read_up_to_a_bound(rig, faults):
    rpc = Rpc(rig.node.url, Password(USER, SecretStr(PASSWORD)), max_answer_bytes=1_000)
    assert rpc.ask(RpcCall("getblockhash", (0,)))
    faults.body = b" " * 1_001
    with pytest.raises(ChainUnavailable, match="more than 1,000 bytes"):
        rpc.ask(RpcCall("getblockhash", (0,)))
    rpc.close()


def test_a_proxy_of_the_environment_is_not_shown_the_password(rig, monkeypatch):
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:1")
    monkeypatch.setenv("ALL_PROXY", "http://127.0.0.1:1")
    backend = rig.node.connect()
    assert backend.tip() == rig.backend.tip()
    backend.close()


def test_the_password_is_nowhere_to_be_read():
    password = Password(USER, SecretStr(PASSWORD))
    assert PASSWORD not in repr(password)
    assert PASSWORD not in repr(vars(Rpc("http://127.0.0.1:1", password)))


def test_the_cookie_is_read_again_when_the_node_was_started_again(rig, tmp_path):
    cookie = tmp_path / "cookie"
    cookie.write_text(f"__cookie__:{'11' * 32}")
    rig.node.secret = ("__cookie__", "11" * 32)
    backend = CoreBackend(Network.REGTEST, rig.node.url, CookieFile(cookie))
    tip = backend.tip()
    rig.node.secret = ("__cookie__", "22" * 32)
    with pytest.raises(
        ChainUnavailable, match=r"refuses the user or the password.*cookie file is this node's"
    ):
        backend.tip()
    cookie.write_text(f"__cookie__:{'22' * 32}\n")
    assert backend.tip() == tip
    backend.close()


def test_a_cookie_file_that_is_none(tmp_path):
    file = tmp_path / "cookie"
    with pytest.raises(ChainUnavailable, match=r"cannot be read.*rpccookieperms"):
        CookieFile(file).read()
    for content in ("", "no colon", ":secret", "user:" + "x" * 2_000):
        file.write_text(content)
        with pytest.raises(ChainUnavailable, match="does not hold a cookie"):
            CookieFile(file).read()
