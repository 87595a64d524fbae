"""A platform whose chain is a Bitcoin Core node, simulated and real,
from the vault to the confirmation and back.
"""

from contextlib import contextmanager
from dataclasses import dataclass

import pytest

from multisig.network import Network
from multisig.script import decode_address
from tests.support.bitcoind import MISSING, NodeRig, find_bitcoind, running_node
from tests.support.custody import desk_of, ok
from tests.support.fake_bitcoind import PASSWORD, USER, FakeNodeRig
from tests.support.platform import open_world

REGTEST = "CUSTODY_CHAIN_REGTEST"


@dataclass
class Hands:
    """What a desk does with its chain, by the hands of a rig."""

    rig: NodeRig | FakeNodeRig

    def fund(self, address, amount):
        if isinstance(self.rig, FakeNodeRig):
            return self.rig.chain.fund(address, amount)
        return self.rig.pay(decode_address(address, Network.REGTEST), amount)

    def mine(self, count):
        return self.rig.mine(count)


@pytest.fixture
def core_rig(tmp_path):
    opened = FakeNodeRig(tmp_path / "elsewhere")
    opened.mine()
    yield opened
    opened.close()


@pytest.fixture
def bitcoind_rig(tmp_path):
    """A node of the test's own: the signers' keys, and so the vault's addresses,
    are the same in every test.
    """
    program = find_bitcoind()
    if program is None:
        pytest.skip(MISSING)
    with running_node(program, tmp_path / "node") as node:
        opened = NodeRig(node, spare_coins=4)
        yield opened
        opened.close()


@pytest.fixture(params=["core", "bitcoind"])
def rig(request, monkeypatch):
    """The node, and the settings that lead to it."""
    found = request.getfixturevalue(f"{request.param}_rig")
    monkeypatch.setenv(REGTEST, f"bitcoind:{found.node.url}")
    if isinstance(found, FakeNodeRig):
        monkeypatch.setenv(f"{REGTEST}_USER", USER)
        monkeypatch.setenv(f"{REGTEST}_PASSWORD", PASSWORD)
    else:
        monkeypatch.setenv(f"{REGTEST}_COOKIE_FILE", str(found.node.cookie))
    return found


@contextmanager
def desk_before(rig, folder, database=None):
    """A vault that all three have to sign for."""
    with open_world(folder / "state", database_url=database, broadcast_wait_seconds=0) as world:
        background = world.platform.background
        background.open_chains()
        try:
            desk = desk_of(world, Hands(rig))
            desk.vault = ok(desk.create_vault(m=3))
            yield desk
        finally:
            background.close_chains()


def money(desk):
    (vault,) = desk.wallets()
    return vault["confirmed_sats"], vault["unconfirmed_sats"], vault["locked_sats"]


def signed(desk):
    psbt_id = ok(desk.propose(150_000))["psbt_id"]
    for name in ("alice", "bob"):
        desk.approve(name, psbt_id)
    assert desk.approve("carol", psbt_id)["status"] == "SIGNED"
    return psbt_id


def status(desk, psbt_id):
    shown = desk.proposal(psbt_id)
    return shown["status"], shown["confirmations"], shown["block_hash"]


def test_a_payment_is_signed_broadcast_mined_reorganised_and_mined_again(rig, tmp_path, database):
    with desk_before(rig, tmp_path, database) as desk:
        desk.deposit(500_000, 300_000)
        assert money(desk) == (800_000, 0, 0)
        psbt_id = signed(desk)
        desk.settle()
        assert status(desk, psbt_id) == ("BROADCASTING", 0, None)
        txid = desk.proposal(psbt_id)["txid"]
        assert rig.backend.transaction(txid).block is None

        (block,) = rig.mine()
        desk.settle()
        assert status(desk, psbt_id) == ("CONFIRMED", 1, block.hash)

        rig.reorganise(1, 2)
        desk.settle()
        assert status(desk, psbt_id) == ("BROADCASTING", 0, None)
        assert rig.backend.transaction(txid).block is None

        (again,) = rig.mine()
        desk.settle()
        assert status(desk, psbt_id) == ("CONFIRMED", 1, again.hash)
        rig.mine(5)
        desk.settle()
        assert status(desk, psbt_id) == ("CONFIRMED", 6, again.hash)
