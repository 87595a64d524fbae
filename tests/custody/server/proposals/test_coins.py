"""The coins that are read from the database suffice, however many a vault has, and stay right while others
write (P16). No two proposals are one transaction, and change goes where a wallet that restores the vault
looks.
"""

import random
import re
from contextlib import contextmanager
from dataclasses import replace
from types import SimpleNamespace

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from sqlalchemy import insert, select
from sqlalchemy.exc import IntegrityError

from custody.server.errors import InsufficientFunds, LockedFunds
from custody.server.proposals import coins
from custody.server.proposals.choosing import Purse
from custody.server.proposals.coins import ALWAYS
from custody.server.proposals.drafts import free_locktime
from custody.server.proposals.payments import Intent, PaidRecipient
from custody.server.rules import selection
from custody.server.rules.selection import BACKDATE_BLOCKS
from custody.server.store.models import ChainCoinRow, CoinLockRow, ProposalRow, VaultRow, WatchedScriptRow
from custody.server.vaults.stored import GAP
from multisig import CHANGE, FeeRate, Network, OutPoint, Psbt, Sats, TxOut, decode_address, inspect
from multisig.transaction import LOCKTIME_THRESHOLD
from tests.support.custody import SHOP, ok, refused
from tests.support.databases import statements_of, undone
from tests.support.examples import examples
from tests.support.flood import flood
from tests.support.replacing import cancel, finished, made, meanwhile
from tests.support.rows import a_proposal, lock_coins
from tests.support.selection import Candidate, select_coins

TIP = 200
FEW = 4
DUST, EACH = 2_000, 175_000


AMOUNTS = st.one_of(st.integers(1, 2_000), st.integers(2_000, 100_000))
HEIGHTS = st.one_of(st.none(), st.integers(TIP - 8, TIP), st.sampled_from((TIP - 98, TIP - 99)))
# Amount, height, whether we sent it ourselves, whether a proposal holds it, whether it is a block's reward.
COIN = st.tuples(AMOUNTS, HEIGHTS, st.booleans(), st.booleans(), st.booleans())


@contextmanager
def stored(desk, rows):
    """A vault's coins for as long as one transaction, which is then undone."""
    with undone(desk.store) as db:
        vault = db.get_one(VaultRow, desk.vault["id"])
        for number, (amount, height, is_own, is_locked, is_reward) in enumerate(rows):
            (outpoint,) = flood(db, vault, [amount], height=height, salt=number)
            coin = db.get_one(ChainCoinRow, (vault.chain, outpoint.txid, outpoint.vout))
            coin.is_coinbase = is_reward
            if is_own:
                db.add(own(vault, outpoint))
            if is_locked:
                lock_coins(db, vault.chain, [outpoint], "another")
        db.flush()
        yield db, vault


def own(vault: VaultRow, outpoint: OutPoint) -> ProposalRow:
    """The proposal whose change the coin is."""
    place = {"workspace_id": vault.workspace_id, "vault_id": vault.id, "created_by": vault.created_by}
    return a_proposal(outpoint.txid, txid_expected=outpoint.txid, status="CONFIRMED", **place)


def depth(height: int | None) -> int:
    return 0 if height is None else TIP - height + 1


def in_memory(db, rows) -> tuple[list[Candidate], list[Candidate]]:
    """All coins, and those that no proposal holds, as the selection would see them without a bound."""
    found = db.scalars(select(ChainCoinRow).order_by(ChainCoinRow.first_seen_at)).all()
    locked = set(db.scalars(select(CoinLockRow.txid)))
    mine = set(db.scalars(select(ProposalRow.txid_expected)))
    everything = [
        Candidate(coin.txid, coin.vout, Sats(coin.amount_sats), depth(coin.height), coin.txid in mine)
        for coin in found
        if depth(coin.height) >= 100 or not coin.is_coinbase
    ]
    assert len(found) == len(rows)
    return everything, [coin for coin in everything if coin.txid not in locked]


@pytest.fixture
def few(monkeypatch):
    """The bounds so small that a dozen coins are beyond them."""
    monkeypatch.setattr(selection, "MAX_INPUTS", FEW)
    monkeypatch.setattr(selection, "SPARE_INPUTS", 1)
    for bound, value in (("MAX_INPUTS", FEW), ("MATCHING", 2), ("SMALL", 1)):
        monkeypatch.setattr(coins, bound, value)


@pytest.mark.usefixtures("few")
@settings(
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
    max_examples=examples(20),
)
# As many as a transaction takes.
@example([(70_000, TIP - 7, False, False, False)] * 6, 200_000, 1_000, 0)
@example([(70_000, TIP - 7, False, False, False)] * 6, 270_000, 1_000, 0)
@example([(70_000, TIP - 7, False, False, False)] * 6, 280_000, 1_000, 0)
@example([(70_000, TIP - 98, False, False, True)], 50_000, 1_000, 0)
@example([(70_000, TIP - 99, False, False, True)], 50_000, 1_000, 0)
@given(
    st.lists(COIN, max_size=14), st.integers(1_000, 250_000), st.sampled_from((1_000, 5_000)), st.integers()
)
def test_what_all_coins_can_pay_the_coins_that_are_read_can_pay(desk, rows, target, rate, dice):
    payment = PaidRecipient(SHOP, TxOut(Sats(target), decode_address(SHOP, Network.REGTEST)))
    with stored(desk, rows) as (db, vault):
        ctx = SimpleNamespace(db=db, now=ALWAYS, tools=SimpleNamespace(rng=random.Random(dice)))
        purse = Purse(ctx, vault, Intent((payment,)), FeeRate(rate), TIP)
        wanted = purse.plan
        everything, free = in_memory(db, rows)
        unbounded = select_coins(free, wanted, random.Random(dice))
        try:
            pool, chosen = purse.drawn()
        except LockedFunds:
            assert unbounded is None
            assert select_coins(everything, wanted, random.Random(dice)) is not None
        except InsufficientFunds:
            assert unbounded is None
            assert select_coins(everything, wanted, random.Random(dice)) is None
        else:
            assert unbounded is not None
            assert len(pool) <= FEW + 1 + 2 + 1
            assert {each[:3] for each in pool} <= {each[:3] for each in free}
            assert set(chosen.coins) <= set(pool)
            assert sum(coin.amount for coin in chosen.coins) == target + chosen.change + chosen.fee


@pytest.fixture
def flooded(desk):
    """One deposit that pays for everything, beside dust."""
    desk.deposit(50_000_000)
    with desk.store.write() as db:
        flood(db, db.get_one(VaultRow, desk.vault["id"]), [EACH] * DUST)
    return desk


def test_dust_neither_blocks_nor_makes_a_transaction_or_a_statement_large(flooded):
    with statements_of(flooded.store) as seen:
        psbt = Psbt.parse(ok(flooded.propose(20_000_000, fee_rate="1"))["psbt_base64"])
        refused(flooded.propose(20_000_000, fee_rate="1"), 409, "LOCKED_FUNDS")
        problem = refused(flooded.propose(200_000_000, fee_rate="1"), 422, "INSUFFICIENT_FUNDS")
        refused(flooded.propose(900_000_000, fee_rate="1"), 422, "INSUFFICIENT_FUNDS")
    assert len(psbt.inputs) <= 1 + selection.SPARE_INPUTS
    assert "at most 100 coins" in problem["detail"], "the dust together would be enough"
    (held,) = re.findall(r"of the [0-9.]+ BTC \(([0-9,]+) sats\)", problem["detail"])
    assert int(held.replace(",", "")) == DUST * EACH - (len(psbt.inputs) - 1) * EACH, "the dust that is left"
    # SQLite takes 32,766 parameters, PostgreSQL 65,535.
    assert 0 < max(len(given or ()) for _, given in seen) < DUST, "a parameter for each coin"


def test_a_limit_that_the_amount_breaches_is_named_before_the_coins(desk):
    desk.vault = ok(desk.create_vault("Limited", limit="0.001"))
    refused(desk.propose(100_000), 403, "VAULT_LIMIT_EXCEEDED")
    refused(desk.propose(90_000), 422, "INSUFFICIENT_FUNDS")


def spent(_db, coin):
    coin.spent_by = "ab" * 32


def reorganised(_db, coin):
    coin.height = None


def forgotten(db, coin):
    db.delete(coin)


@pytest.mark.parametrize("happens", [spent, reorganised, forgotten])
def test_coins_that_go_between_the_draft_and_the_turn_are_not_proposed(desk, happens):
    def happen():
        with desk.store.write() as db:
            for coin in drafted[-1].selection.coins:
                happens(db, db.get_one(ChainCoinRow, ("regtest", coin.txid, coin.vout)))

    desk.deposit(300_000, 300_000)
    with meanwhile(happen) as drafted:
        created = ok(desk.propose(200_000))
    assert len(drafted) == 2
    gone = {utxo.outpoint for utxo in drafted[0].selection.coins}
    assert gone.isdisjoint(item.outpoint for item in Psbt.parse(created["psbt_base64"]).inputs)


def test_a_change_address_that_was_taken_meanwhile_is_not_given_twice(funded):
    def take():
        with funded.store.write() as db:
            db.get_one(VaultRow, funded.vault["id"]).next_change_index += 3

    with meanwhile(take) as drafted:
        created = ok(funded.propose(50_000))
    assert len(drafted) == 1
    assert change_scripts(created) == [funded.policy.script_pubkey(CHANGE, 3)]
    with funded.store.read() as db:
        assert db.get_one(VaultRow, funded.vault["id"]).next_change_index == 4
        watched = select(WatchedScriptRow.address_index).where(WatchedScriptRow.branch == CHANGE)
        assert max(db.scalars(watched)) >= 4


def test_change_is_found_however_many_proposals_were_never_sent(funded):
    """A proposal watches no address: where its change may go is watched since the change before was found."""
    store, used = funded.store, []
    held = funded.wallets()[0]["confirmed_sats"]
    for _ in range(2):
        with store.write() as db:
            # As if all the others had been proposed already.
            db.get_one(VaultRow, funded.vault["id"]).next_change_index += GAP - 3
        for _ in range(4):
            psbt_id = ok(funded.propose(50_000))["psbt_id"]
            funded.reject(psbt_id)
        psbt_id = ok(funded.propose(50_000))["psbt_id"]
        held -= 50_000 + funded.proposal(psbt_id)["fee_sats"]
        funded.sign_off(psbt_id)
        funded.settle()
        funded.mine(6)
        assert funded.wallets()[0]["confirmed_sats"] == held
        used.append(
            max(row.address_index for row in funded.rows(ChainCoinRow, ChainCoinRow.branch == CHANGE))
        )
    assert used == [GAP - 1, 2 * GAP - 1]


def change_scripts(created) -> list[bytes]:
    return [out.script_pubkey for out in Psbt.parse(created["psbt_base64"]).outputs if out.derivations]


# BIP-44: a wallet that restores looks so far beyond the last address that was used.
BIP44_GAP = 20


def test_the_database_holds_no_transaction_twice_and_there_is_always_a_lock_time_left(funded):
    """Far beyond what looks like everybody's, and beyond a chain of a few blocks."""
    made(funded.propose(50_000))
    (first,) = funded.rows(ProposalRow)
    row = {column.name: getattr(first, column.name) for column in ProposalRow.__table__.columns}
    store = funded.store
    with pytest.raises(IntegrityError), store.write() as db:
        db.execute(insert(ProposalRow), row | {"id": "another", "family_id": "another"})

    tx, tip = Psbt.parse(row["psbt"]).tx, 2 * BACKDATE_BLOCKS + 30
    least = tx.locktime - 1
    taken = [height for height in range(tip + 1) if height not in {least, tx.locktime}]
    with store.write() as db:
        assert free_locktime(db, replace(tx, locktime=tip), tip) == tip
        txids = {height: replace(tx, locktime=height).txid for height in taken}
        values = ({"id": txid, "family_id": txid, "txid_expected": txid} for txid in txids.values())
        db.execute(insert(ProposalRow), [row | each for each in values])
        assert free_locktime(db, replace(tx, locktime=tip), tip) == least
        last = replace(tx, locktime=least).txid
        db.execute(insert(ProposalRow), row | {"id": last, "family_id": last, "txid_expected": last})
        assert free_locktime(db, tx, tip) == LOCKTIME_THRESHOLD


def change_index(desk, psbt_id) -> int:
    psbt = desk.psbt(psbt_id)
    (back,) = inspect(psbt, desk.policy, network=Network.REGTEST).change
    assert back.chain == CHANGE
    return back.index


def test_proposals_that_end_unsigned_use_up_no_more_addresses_than_a_restoring_wallet_looks_at(desk):
    desk.deposit(500_000)
    for _ in range(BIP44_GAP + 2):
        ok(cancel(desk, made(desk.propose(10_000, fee_rate="2"))))
    psbt_id = made(desk.propose(10_000, fee_rate="2"))
    last = change_index(desk, psbt_id)
    assert last == BIP44_GAP - 1
    finished(desk, psbt_id)
    assert change_index(desk, made(desk.propose(10_000, fee_rate="2"))) == last + 1
