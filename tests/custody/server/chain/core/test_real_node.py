"""A real node, where the simulated one is not enough: starts, indexes, rights, and its own policy."""

import hmac
import re
from dataclasses import replace
from pathlib import Path

import pytest
from pydantic import SecretStr

from custody.server.chain import core
from custody.server.chain.backend import Accepted, RefusalCode
from custody.server.chain.core import CookieFile, CoreBackend, Password
from custody.server.errors import ChainUnavailable
from multisig.network import Network
from multisig.transaction import TxOut
from multisig.units import Sats
from tests.support.bitcoind import MISSING, NodeRig, find_bitcoind, running_node
from tests.support.chains import confirmed_coin
from tests.support.regtest import open_output, spend

GUIDE = Path(__file__).parents[5] / "docs" / "operate" / "chain.md"
METHODS = re.findall(r"^rpcwhitelist=custody:([a-z,]+)$", GUIDE.read_text(encoding="utf-8"), re.MULTILINE)
CALLED = {
    method
    for file in sorted(Path(core.__file__).parent.glob("*.py"))
    for method in re.findall(r'Call\("([a-z]+)"', file.read_text(encoding="utf-8"))
}
NEEDED = ("-txindex=1", "-blockfilterindex=1")


@pytest.fixture
def start(tmp_path):
    """Starts a node with these options; yields it."""
    program = find_bitcoind()
    if program is None:
        pytest.skip(MISSING)
    return lambda *options: running_node(program, tmp_path / "node", *options)


def ask(node, network=Network.REGTEST, credentials=None):
    backend = CoreBackend(network, node.url, credentials or CookieFile(node.cookie), answer_seconds=20)
    try:
        return backend.tip()
    finally:
        backend.close()


def wake(node):
    """Mines a current block: without one a node is in initial block download."""
    node.call("generateblock", "raw(51)", [])


def test_a_node_without_a_block_of_today_is_fetching_the_chain(start):
    with start(*NEEDED) as node:
        with pytest.raises(ChainUnavailable, match="still fetching the chain"):
            ask(node)
        wake(node)
        assert ask(node).height == 1
        with pytest.raises(ChainUnavailable, match="signet node serves another chain than signet"):
            ask(node, Network.SIGNET)
        wrong = Password("custody", SecretStr("a guess"))
        with pytest.raises(ChainUnavailable, match="refuses the user or the password"):
            ask(node, credentials=wrong)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("-blockfilterindex=1",), "has no txindex"),
        (("-txindex=1",), "has no basic block filter index"),
        (("-prune=550", "-blockfilterindex=1"), "is pruned"),
    ],
    ids=["no txindex", "no filters", "pruned"],
)
def test_a_node_that_lacks_what_is_needed_is_told_what(start, options, words):
    with start(*options) as node:
        wake(node)
        with pytest.raises(ChainUnavailable, match=words):
            ask(node)


def user(name, password):
    """An `rpcauth` line as Core's rpcauth.py makes it."""
    salt = "00112233445566778899aabbccddeeff"
    return f"-rpcauth={name}:{salt}${hmac.new(salt.encode(), password.encode(), 'sha256').hexdigest()}"


def test_the_guide_names_every_method_that_is_called_and_no_other():
    (methods,) = METHODS
    assert sorted(methods.split(",")) == sorted(CALLED)


def test_the_methods_of_the_guide_are_enough(start):
    """The whole way of a payment, by a user who may call these alone; who may not is told so."""
    (methods,) = METHODS
    rights = (
        user("custody", "s3cret"),
        user("less", "s3cret"),
        f"-rpcwhitelist=custody:{methods}",
        "-rpcwhitelist=less:getblockchaininfo",
        "-rpcwhitelistdefault=0",
    )
    with start(*NEEDED, *rights) as node:
        rig = NodeRig(node, spare_coins=4)
        backend = CoreBackend(Network.REGTEST, node.url, Password("custody", SecretStr("s3cret")))
        coin, number = confirmed_coin(rig)
        assert backend.outputs_to([open_output(number)]) == (coin,)
        payment = spend(coin, number, to=open_output(rig.fresh()))
        assert backend.broadcast(payment) == Accepted(payment.txid)
        assert backend.outputs_to([open_output(number)])[0].spent.txid == payment.txid
        (block,) = rig.mine()
        assert backend.transaction(payment.txid).block.hash == block.hash
        assert backend.block_at(block.height) == block
        assert backend.fee_estimate(6) is None
        with pytest.raises(ChainUnavailable, match="rpcwhitelist names every method"):
            ask(node, credentials=Password("less", SecretStr("s3cret")))
        backend.close()
        rig.close()


def burn(coin, number):
    """Pays into an unspendable output."""
    payment = spend(coin, number, to=open_output(number))
    return replace(
        payment, outputs=(TxOut(Sats(50_000), b"\x6a"), TxOut(Sats(40_000), payment.outputs[0].script_pubkey))
    )


def dust(coin, number):
    payment = spend(coin, number, to=open_output(number), fee=1_000)
    rest = TxOut(Sats(payment.outputs[0].amount - 100), payment.outputs[0].script_pubkey)
    return replace(payment, outputs=(rest, TxOut(Sats(100), open_output(number))))


def unknown_version(coin, number):
    return spend(coin, number, to=open_output(number), version=99)


@pytest.mark.parametrize("make", [dust, burn, unknown_version])
def test_a_rule_of_the_nodes_own_is_policy_in_its_words(bitcoind_rig, make):
    coin, number = confirmed_coin(bitcoind_rig)
    payment = make(coin, number)
    refused = bitcoind_rig.backend.broadcast(payment)
    assert refused.code is RefusalCode.POLICY
    assert refused.reason
    assert bitcoind_rig.backend.transaction(payment.txid) is None
