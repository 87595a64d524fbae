"""A platform whose chain is an Esplora, from the deposit to the confirmation and through a reorganisation."""

from contextlib import closing, contextmanager
from dataclasses import replace

import pytest

from custody.server.chain.backend import Accepted
from custody.server.chain.embedded import EmbeddedChain
from custody.server.chain.esplora import EsploraBackend
from custody.server.errors import ChainUnavailable
from custody.server.store.models import ProposalRow
from multisig.network import Network
from multisig.transaction import Transaction
from tests.support.custody import ok, open_desk
from tests.support.esplora import AT_ONCE, URL, Explorer, as_json, in_block, plain, served
from tests.support.platform import open_world
from tests.support.regtest import FakeClock, funded, open_output, spend


@contextmanager
def explored(folder, database=None):
    """The desk and the explorer between its platform and its chain."""
    with open_desk(folder, database_url=database) as desk:
        explorer = Explorer(lambda: desk.chain)
        backend = EsploraBackend(URL, Network.REGTEST, pace=AT_ONCE, transport=explorer)
        desk.world.platform.background.backends["regtest"] = backend
        with closing(backend):
            yield desk, explorer


def money(desk):
    (vault,) = desk.wallets()
    return vault["confirmed_sats"], vault["unconfirmed_sats"], vault["locked_sats"]


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
