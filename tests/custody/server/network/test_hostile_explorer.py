"""An explorer that hides transactions and the newest blocks, which nobody can notice: the store stays
consistent, and heals.

Balances are the sums of the coins, every coin is an output of its stored transaction, and what is confirmed
is so with its coins spent. An honest look afterwards brings everything back.
"""

from contextlib import closing, contextmanager, suppress

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import select

from custody.server.chain.esplora import EsploraBackend
from custody.server.chain.esplora.transactions import is_coinbase
from custody.server.errors import ChainUnavailable
from custody.server.store.models import ChainCoinRow, ChainTransactionRow, ProposalInputRow, ProposalRow
from multisig import Network, Transaction
from tests.support.custody import ok, open_desk
from tests.support.esplora import AT_ONCE, URL, Explorer, plain
from tests.support.examples import examples


class Hiding(Explorer):
    """Says nothing of some transactions, and of the blocks above `top`."""

    hidden: frozenset[str] = frozenset()
    top = 2**31

    def tip_hash(self):
        return plain(self._chain.block_at(min(self.top, self._chain.tip().height)).hash)

    def _mined(self, scripthash):
        mined = super()._mined(scripthash)
        return [(ref, each) for ref, each in mined if each.txid not in self.hidden and ref.height <= self.top]

    def _waiting(self, scripthash):
        return [each for each in super()._waiting(scripthash) if each.txid not in self.hidden]


class Scene:
    """A vault with a payment at each stage of its life."""

    def __init__(self, desk):
        self.desk = desk
        desk.deposit(500_000, 600_000, 700_000, 800_000)
        self.confirmed = self._signed(100_000)
        desk.settle()
        desk.chain.mine(1)
        self.sent = self._signed(110_000)
        desk.settle()
        self.signed = self._signed(120_000)
        self.pending = ok(desk.propose(130_000))["psbt_id"]
        self.explorer = Hiding(lambda: desk.chain)
        known = (*desk.chain._index._transactions, *desk.chain._mempool._entries)
        transactions = (desk.chain.transaction(txid).transaction for txid in known)
        self.ours = [each.txid for each in transactions if not is_coinbase(each)]
        self.look_honestly()
        self.truth = self.shown()
        assert [each[0] for each in self.truth[1]] == ["CONFIRMED", "BROADCASTING", "SIGNED", "PENDING"]

    def _signed(self, amount):
        psbt_id = ok(self.desk.propose(amount))["psbt_id"]
        self.desk.sign_off(psbt_id)
        return psbt_id

    @contextmanager
    def asking(self):
        """The platform asks the explorer, about which it knows nothing."""
        with closing(EsploraBackend(URL, Network.REGTEST, pace=AT_ONCE, transport=self.explorer)) as backend:
            self.desk.world.platform.background.backends["regtest"] = backend
            yield

    def look_honestly(self):
        with self.asking():
            self.desk.watcher.look()

    def shown(self):
        """What members see of their money and of their payments."""
        (vault,) = self.desk.wallets()
        money = {name: value for name, value in vault.items() if name.endswith("_sats")}
        stages = (self.confirmed, self.sent, self.signed, self.pending)
        with self.desk.store.read() as db:
            payments = [db.get_one(ProposalRow, each) for each in stages]
            return money, [(each.status, each.txid, each.block_hash) for each in payments]

    def require_sums(self):
        money, _ = self.shown()
        unspent = self.desk.rows(ChainCoinRow, ChainCoinRow.spent_by.is_(None))
        in_blocks = sum(coin.amount_sats for coin in unspent if coin.height is not None)
        assert money["confirmed_sats"] == in_blocks
        assert money["unconfirmed_sats"] == sum(coin.amount_sats for coin in unspent) - in_blocks

    def require_consistent(self):
        self.require_sums()
        with self.desk.store.read() as db:
            coins = {(coin.txid, coin.vout): coin for coin in db.scalars(select(ChainCoinRow))}
            raws = {
                each.txid: Transaction.parse(each.raw) for each in db.scalars(select(ChainTransactionRow))
            }
            for (txid, vout), coin in coins.items():
                output = raws[txid].outputs[vout]
                assert raws[txid].txid == txid
                assert (output.amount, output.script_pubkey) == (coin.amount_sats, coin.script_pubkey)
            for proposal in db.scalars(select(ProposalRow).where(ProposalRow.status == "CONFIRMED")):
                query = select(ProposalInputRow).where(ProposalInputRow.proposal_id == proposal.id)
                for place in db.scalars(query):
                    coin = coins[place.txid, place.vout]
                    assert coin.spent_by == proposal.txid
                    assert coin.spent_height is not None


@pytest.fixture(scope="module")
def scene(tmp_path_factory):
    with open_desk(tmp_path_factory.mktemp("hostile")) as desk:
        yield Scene(desk)


@settings(
    max_examples=examples(12),
    derandomize=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(hidden=st.frozensets(st.integers(0, 7), max_size=3), depth=st.integers(0, 3), looks=st.integers(1, 2))
def test_whatever_an_explorer_hides_the_store_is_consistent_and_heals(scene, hidden, depth, looks):
    scene.explorer.hidden = frozenset(scene.ours[number] for number in hidden if number < len(scene.ours))
    scene.explorer.top = scene.desk.chain.tip().height - depth
    with scene.asking():
        for _ in range(looks):
            with suppress(ChainUnavailable):
                scene.desk.watcher.look()
            scene.require_consistent()
    scene.explorer.hidden, scene.explorer.top = frozenset(), 2**31
    scene.look_honestly()
    scene.require_consistent()
    assert scene.shown() == scene.truth
