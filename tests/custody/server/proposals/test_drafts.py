"""No two proposals are one transaction, and change goes where a wallet that restores the vault looks."""

from dataclasses import replace

import pytest
from sqlalchemy import insert
from sqlalchemy.exc import IntegrityError

from custody.server.proposals.drafts import free_locktime
from custody.server.rules.selection import BACKDATE_BLOCKS
from custody.server.store.models import ProposalRow
from multisig import CHANGE, Network, Psbt, inspect
from multisig.transaction import LOCKTIME_THRESHOLD
from tests.support.custody import ok
from tests.support.replacing import cancel, finished, made

# BIP-44: a wallet that restores looks so far beyond the last address that was used.
GAP = 20


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
    for _ in range(GAP + 2):
        ok(cancel(desk, made(desk.propose(10_000, fee_rate="2"))))
    psbt_id = made(desk.propose(10_000, fee_rate="2"))
    last = change_index(desk, psbt_id)
    assert last == GAP - 1
    finished(desk, psbt_id)
    assert change_index(desk, made(desk.propose(10_000, fee_rate="2"))) == last + 1
