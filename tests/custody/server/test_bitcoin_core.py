"""A platform whose chain is a real Bitcoin Core node, from the vault to the confirmation and back."""

import pytest

from multisig.network import Network
from multisig.script import decode_address
from tests.support.bitcoind import MISSING, NodeRig, find_bitcoind, running_node
from tests.support.custody import SIGNERS, desk_of, ok
from tests.support.platform import open_world


class Hands:
    """What a desk does with its chain, by the hands of a rig."""

    def __init__(self, rig):
        self.rig, self.mine = rig, rig.mine

    def fund(self, address, amount):
        return self.rig.pay(decode_address(address, Network.REGTEST), amount)


@pytest.fixture
def rig(tmp_path, monkeypatch):
    """A node of the test's own, as the signers' keys, and so the vault's addresses, are the same in every
    test; and the settings that lead to it.
    """
    program = find_bitcoind()
    if program is None:
        pytest.skip(MISSING)
    with running_node(program, tmp_path / "node") as node:
        monkeypatch.setenv("CUSTODY_CHAIN_REGTEST", f"bitcoind:{node.url}")
        monkeypatch.setenv("CUSTODY_CHAIN_REGTEST_COOKIE_FILE", str(node.cookie))
        opened = NodeRig(node, spare_coins=4)
        yield opened
        opened.close()


@pytest.fixture
def desk(rig, tmp_path, database):
    """A vault that all three have to sign for."""
    with open_world(tmp_path / "state", database_url=database, broadcast_wait_seconds=0) as world:
        world.platform.background.open_chains()
        desk = desk_of(world, Hands(rig))
        desk.vault = ok(desk.create_vault(m=3))
        yield desk
        world.platform.background.close_chains()


def money(desk):
    (vault,) = desk.wallets()
    return vault["confirmed_sats"], vault["unconfirmed_sats"], vault["locked_sats"]


def status(desk, psbt_id):
    shown = desk.proposal(psbt_id)
    return shown["status"], shown["confirmations"], shown["block_hash"]


def test_a_payment_is_signed_broadcast_mined_reorganised_and_mined_again(rig, desk):
    desk.deposit(500_000, 300_000)
    assert money(desk) == (800_000, 0, 0)
    psbt_id = ok(desk.propose(150_000))["psbt_id"]
    assert [desk.approve(name, psbt_id)["status"] for name in SIGNERS] == ["PENDING", "PENDING", "SIGNED"]
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
