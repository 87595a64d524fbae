"""A platform whose chain is a real Bitcoin Core node, or an Esplora: from the deposit to the confirmation and
through a reorganisation.
"""

from contextlib import closing, contextmanager, suppress
from dataclasses import replace

import pytest
from structlog.testing import capture_logs

from custody.server.chain.backend import Accepted, BlockRef
from custody.server.chain.embedded import EmbeddedChain
from custody.server.chain.esplora import EsploraBackend
from custody.server.errors import ChainUnavailable
from custody.server.meters import Meters
from custody.server.network.backends import Market, Reach
from custody.server.store.models import ProposalRow
from multisig.network import Network
from multisig.script import decode_address
from multisig.transaction import Transaction
from tests.support.bitcoind import MISSING, NodeRig, find_bitcoind, running_node
from tests.support.custody import SIGNERS, desk_of, ok, open_desk
from tests.support.esplora import AT_ONCE, URL, Explorer, as_json, in_block, plain, served
from tests.support.platform import START, Clock, open_world
from tests.support.regtest import FakeClock, funded, open_output, spend


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


@contextmanager
def explored(folder, database=None):
    """The desk and the explorer between its platform and its chain."""
    with open_desk(folder, database_url=database) as desk:
        explorer = Explorer(lambda: desk.chain)
        backend = EsploraBackend(URL, Network.REGTEST, pace=AT_ONCE, transport=explorer)
        desk.world.platform.background.backends["regtest"] = backend
        with closing(backend):
            yield desk, explorer


def signed(desk, amount=150_000):
    psbt_id = ok(desk.propose(amount))["psbt_id"]
    desk.approve("alice", psbt_id)
    assert desk.approve("bob", psbt_id)["status"] == "SIGNED"
    return psbt_id


def test_the_setting_makes_the_platform_ask_an_explorer(tmp_path, monkeypatch):
    """Over a real connection, and at the pace that an explorer is owed."""
    with (
        closing(EmbeddedChain(tmp_path / "chain", clock=FakeClock())) as chain,
        served(Explorer(lambda: chain)) as url,
    ):
        monkeypatch.setenv("CUSTODY_CHAIN_REGTEST", f"esplora:{url}")
        coin = funded(chain, 1, 100_000)
        scripts = [open_output(number) for number in range(1, 9)]
        payment = spend(coin, 1, to=scripts[-1])
        with open_world(tmp_path / "platform") as world, world.platform.background.running():
            backend = world.platform.background.backends["regtest"]
            assert isinstance(backend, EsploraBackend)
            assert backend.tip() == chain.tip()
            assert backend.outputs_to(scripts) == (coin,)
            assert backend.broadcast(payment) == Accepted(payment.txid)
        assert chain.transaction(payment.txid).transaction == payment


def test_p36_a_liar_cannot_free_the_coins_of_a_signed_payment(tmp_path):
    """Twice paid: the coins are free, the payment is made anew from others,
    and the liar sends the first one, too.
    """
    with explored(tmp_path) as (desk, explorer):
        desk.deposit(500_000)
        psbt_id = signed(desk)
        final = desk.proposal(psbt_id)["txid_expected"]
        refused = plain("mandatory-script-verify-flag-failed (Invalid signature)", 400)
        with explorer.answering("/tx", lambda _: refused):
            desk.outbox.run_due()
        assert desk.proposal(psbt_id)["status"] == "STALLED"
        assert money(desk)[2] == 500_000

        # The same by a spend that is said to be in a block: it needs our signatures and the block's proof.
        tip = desk.chain.tip()
        forged = forged_spend(desk, psbt_id)
        proof = as_json({"block_height": tip.height, "merkle": [], "pos": 0})
        with (
            explorer.lying(forged, in_block(tip)),
            explorer.answering(f"/tx/{forged.txid}/merkle-proof", lambda _: proof),
            pytest.raises(ChainUnavailable),
        ):
            desk.watcher.look()
        assert desk.proposal(psbt_id)["status"] == "STALLED"
        assert money(desk) == (500_000, 0, 500_000)
        desk.world.clock.advance(seconds=61)
        desk.settle()
        assert (desk.proposal(psbt_id)["txid"], {*explorer.sent}) == (final, {final})
        (block,) = desk.chain.mine(1)
        desk.watcher.look()
        done = desk.proposal(psbt_id)
        assert (done["status"], done["block_hash"]) == ("CONFIRMED", block.hash)


def forged_spend(desk, psbt_id):
    """The final transaction with another output: its signatures do not fit."""
    with desk.store.read() as db:
        final = Transaction.parse(db.get_one(ProposalRow, psbt_id).final_tx)
    return replace(final, outputs=final.outputs[:1])


TIP = BlockRef(7, "ab" * 32, 0)


class Backend:
    """``trouble``: why it does not answer."""

    trouble: str | None = None

    def fee_estimate(self, _target_blocks: int) -> None:
        if self.trouble is not None:
            raise ChainUnavailable(self.trouble)

    def least_fee_rate(self) -> None:
        return None

    def tip(self) -> BlockRef:
        return TIP


def ask(market: Market, *troubles: str | None) -> None:
    for trouble in troubles:
        market._backends["regtest"].trouble = trouble
        with suppress(ChainUnavailable):
            market.refresh("regtest")


def test_each_change_is_told_once() -> None:
    clock, meters = Clock(), Meters()
    market = Market({"regtest": Backend()}, clock, meters)
    with capture_logs() as lines:
        ask(market, None, None)
        clock.advance(minutes=1)
        ask(market, *["It hangs."] * 3)
        assert market.reached == {
            "regtest": Reach(is_up=False, answered_at=START, tip=TIP, reason="It hangs.")
        }
        assert meters.registry.get_sample_value("custody_chain_backend_up", {"chain": "regtest"}) == 0
        ask(market, None)
    assert [(line["event"], line["log_level"]) for line in lines] == [
        ("backend down", "warning"),
        ("backend up", "info"),
    ]
    assert market.reached["regtest"].answered_at == clock.now
