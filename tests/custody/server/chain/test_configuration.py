"""Configuration alone chooses the backend; a mistake in it is refused in words, and shows no secret (P49)."""

from contextlib import closing

import pytest

from custody.server.chain.configuration import (
    EMBEDDED_REGTEST,
    ChainMisconfigured,
    open_backend,
    read_sources,
)
from custody.server.chain.core import CookieFile, CoreBackend, Password
from custody.server.chain.embedded import EmbeddedChain
from custody.server.chain.esplora import EsploraBackend
from multisig import Network, WrongNetwork, encode_address, p2wpkh, sats
from tests.support.fake_bitcoind import USER
from tests.support.regtest import FakeClock

MAINNET = "CUSTODY_CHAIN_MAINNET"
SIGNET = "CUSTODY_CHAIN_SIGNET"
LOCAL = {MAINNET: "bitcoind:http://127.0.0.1:8332", f"{MAINNET}_COOKIE_FILE": "/run/bitcoin/.cookie"}
NAMED = {MAINNET: LOCAL[MAINNET], f"{MAINNET}_USER": USER, f"{MAINNET}_PASSWORD": "hush hush"}


def opened(source, folder):
    backend = open_backend(source, folder=folder, clock=FakeClock())
    backend.close()
    return backend


def test_where_nothing_is_set_the_chain_is_embedded(tmp_path):
    sources = read_sources({"CUSTODY_STATE": "here", "PATH": "/bin", MAINNET: ""})
    assert sources == {Network.REGTEST: EMBEDDED_REGTEST}
    assert isinstance(opened(EMBEDDED_REGTEST, tmp_path), EmbeddedChain)


def test_the_embedded_chain_stands_for_a_signet_under_its_name_and_takes_its_addresses_alone(tmp_path):
    (source,) = read_sources({SIGNET: "embedded"}).values()
    with closing(open_backend(source, folder=tmp_path, clock=FakeClock())) as chain:
        assert chain.network is Network.SIGNET
        payee = p2wpkh(
            bytes.fromhex(f"02{'79be667ef9dcbbac55a06295ce870b07029bfcdb2dce28d959f2815b16f81798'}")
        )
        txid = chain.fund(encode_address(payee, Network.SIGNET), sats(100_000))
        chain.mine(1)
        assert [found.outpoint.txid for found in chain.outputs_to([payee])] == [txid]
        with pytest.raises(WrongNetwork):
            chain.fund(encode_address(payee, Network.REGTEST), sats(100_000))


def test_only_configured_chains_exist(tmp_path):
    explorer = {"CUSTODY_CHAIN_TESTNET4": "esplora:https://explorer.example.org/testnet4/api"}
    sources = read_sources(LOCAL | explorer | {"CUSTODY_CHAIN_REGTEST": "embedded"})
    assert list(sources) == [Network.MAINNET, Network.TESTNET4, Network.REGTEST]
    backends = {network: opened(source, tmp_path / network) for network, source in sources.items()}
    assert [type(backend) for backend in backends.values()] == [CoreBackend, EsploraBackend, EmbeddedChain]
    assert all(backend.network is network for network, backend in backends.items())


def test_the_three_ways_to_name_a_node():
    cookie = read_sources(LOCAL)[Network.MAINNET]
    assert (cookie.kind, cookie.first_height) == ("bitcoind", 0)
    assert isinstance(cookie.credentials, CookieFile)
    named = read_sources(NAMED | {f"{MAINNET}_FIRST_HEIGHT": "840000"})[Network.MAINNET]
    assert isinstance(named.credentials, Password)
    assert named.credentials.read() == (USER, "hush hush")
    assert named.first_height == 840_000
    remote = NAMED | {MAINNET: "bitcoind:https://node.example.org:9000/"}
    assert read_sources(remote)[Network.MAINNET].url.get_secret_value() == "https://node.example.org:9000"
    keyed = {"CUSTODY_CHAIN_SIGNET": "esplora:https://explorer.example.org/hush/api"}
    assert "hush" not in repr(read_sources(NAMED | keyed))


@pytest.mark.parametrize(
    ("network", "address", "expected"),
    [
        ("MAINNET", "http://localhost", "http://localhost:8332"),
        ("TESTNET4", "http://127.0.0.1", "http://127.0.0.1:48332"),
        ("SIGNET", "http://[::1]", "http://[::1]:38332"),
        ("REGTEST", "http://127.0.0.2", "http://127.0.0.2:18443"),
    ],
)
def test_each_network_has_its_usual_port(network, address, expected):
    name = f"CUSTODY_CHAIN_{network}"
    sources = read_sources({name: f"bitcoind:{address}", f"{name}_COOKIE_FILE": "cookie"})
    assert sources[Network[network]].url.get_secret_value() == expected


@pytest.mark.parametrize(
    "host", ["node.example.org", "192.168.1.9", "10.0.0.1", "0.0.0.0", "localhost.example.org"]
)
def test_a_password_crosses_no_network_in_the_clear_unless_the_operator_allows_it(host):
    far = NAMED | {MAINNET: f"bitcoind:http://{host}:8332"}
    with pytest.raises(ChainMisconfigured, match=f"without encryption.*{MAINNET}_ALLOW_HTTP=yes"):
        read_sources(far)
    assert read_sources(far | {f"{MAINNET}_ALLOW_HTTP": "yes"})[Network.MAINNET].kind == "bitcoind"


@pytest.mark.parametrize(
    ("environment", "words"),
    [
        ({"CUSTODY_CHAIN_MAINET": "embedded"}, "MAINET is not a setting"),
        ({"CUSTODY_CHAIN_TESTNET": "embedded"}, "TESTNET is not a setting"),
        (LOCAL | {f"{MAINNET}_COKIE": "x"}, "COKIE is not a setting"),
        ({MAINNET: "embedded"}, "embedded chain is regtest or a signet of its own"),
        ({"CUSTODY_CHAIN_TESTNET4": "embedded"}, "embedded chain is regtest or a signet of its own"),
        (dict.fromkeys(("CUSTODY_CHAIN_REGTEST", SIGNET), "embedded"), "Only one network can be embedded"),
        ({"CUSTODY_CHAIN_REGTEST": "embedded:somewhere"}, "has no address"),
        ({SIGNET: "embedded", f"{SIGNET}_BLOCK_SECONDS": "0"}, "a number from 1 to 3600"),
        (NAMED | {f"{MAINNET}_BLOCK_SECONDS": "5"}, "belongs to .*=embedded"),
        ({MAINNET: "http://127.0.0.1:8332"}, "begins with bitcoind:"),
        ({MAINNET: "core:http://127.0.0.1:8332"}, "begins with bitcoind:"),
        ({MAINNET: "bitcoind:http://127.0.0.1:8332"}, "_COOKIE_FILE, or both"),
        (NAMED | {f"{MAINNET}_PASSWORD": ""}, "_COOKIE_FILE, or both"),
        (NAMED | {f"{MAINNET}_USER": "a:b"}, "_COOKIE_FILE, or both"),
        (LOCAL | NAMED, "_COOKIE_FILE, or both"),
        (LOCAL | {MAINNET: "bitcoind:"}, "RPC address"),
        (LOCAL | {MAINNET: "bitcoind:127.0.0.1:8332"}, "RPC address"),
        (LOCAL | {MAINNET: "bitcoind:ftp://127.0.0.1"}, "RPC address"),
        (LOCAL | {MAINNET: "bitcoind:http://127.0.0.1/wallet/hot"}, "RPC address"),
        (LOCAL | {MAINNET: "bitcoind:http://127.0.0.1?x=1"}, "RPC address"),
        (LOCAL | {MAINNET: "bitcoind:http://127.0.0.1:port"}, "does not hold a URL"),
        (LOCAL | {MAINNET: "bitcoind:http://[::1"}, "does not hold a URL"),
        (LOCAL | {MAINNET: "bitcoind:http://user:hush hush@127.0.0.1"}, "holds a password"),
        (LOCAL | {f"{MAINNET}_FIRST_HEIGHT": "-1"}, "height of a block"),
        (LOCAL | {f"{MAINNET}_FIRST_HEIGHT": "٣"}, "height of a block"),
        (LOCAL | {f"{MAINNET}_ALLOW_HTTP": "true"}, "is yes, or is not set"),
        ({f"{MAINNET}_PASSWORD": "hush hush"}, "which is not set"),
        ({MAINNET: "esplora:https://explorer.example.org/api", f"{MAINNET}_USER": "x"}, "which is not set"),
        ({MAINNET: "esplora:http://explorer.example.org/api"}, "over https"),
        ({MAINNET: "esplora:"}, "URL of its API"),
    ],
)
def test_a_mistake_is_refused_in_words_and_shows_no_secret(environment, words):
    with pytest.raises(ChainMisconfigured, match=words) as caught:
        read_sources(environment)
    assert "hush" not in str(caught.value)
    assert caught.value.__cause__ is None
