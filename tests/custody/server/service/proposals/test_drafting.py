"""No two proposals are one transaction: what is proposed again has a txid of its own, however often."""

import random
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest
from sqlalchemy import insert
from sqlalchemy.exc import IntegrityError

from custody.server.domain.selection import BACKDATE_BLOCKS
from custody.server.service.proposals.drafting import free_locktime
from custody.server.service.requests.changes import MAX_TRIES
from custody.server.store.models import ProposalRow
from multisig import Psbt
from multisig.transaction import LOCKTIME_THRESHOLD
from tests.support.custody import Desk, ok, open_desk
from tests.support.profiles import forward, grant, pay_profile
from tests.support.replacing import bump, cancel, finished, lets_through, made, meanwhile, take_back
from tests.support.token_desk import BOB, TokenDesk


class Steady:
    """A random source without randomness."""

    def randrange(self, stop: int) -> int:
        return stop - 1


Propose = Callable[[], object]
OFTEN = 6


def proposed(desk: Desk) -> list[str]:
    return [proposal.txid_expected for proposal in desk.rows(ProposalRow)]


def require_distinct(desk: Desk, *, least: int) -> None:
    txids = proposed(desk)
    assert least <= len(txids) == len(set(txids))


def sending(desk: Desk) -> Propose:
    """Without change: nothing about it but its lock time may be another."""
    desk.deposit(100_000)
    return lambda: desk.propose(99_600, fee_rate="2")


def sending_with_change(desk: Desk) -> Propose:
    """Beyond the gap: the change goes to one address each time."""
    desk.deposit(100_000)
    for _ in range(20):
        ok(cancel(desk, made(desk.propose(50_000, fee_rate="2"))))
    return lambda: desk.propose(50_000, fee_rate="2")


def forwarding(desk: Desk) -> Propose:
    grant(desk, "Signer", "PAYMENT_INIT")
    pay_profile(desk, "alice", 100_000)
    return lambda: forward(desk, "alice")


def making_a_token(desk: Desk) -> Propose:
    tokens = TokenDesk(desk)
    tokens.fund(200_000)
    return tokens.create


def calling(desk: Desk) -> Propose:
    tokens = TokenDesk(desk)
    tokens.fund(200_000)
    uid = tokens.started()
    return lambda: tokens.call(uid, "transfer", BOB, 40)


KINDS = [sending, sending_with_change, forwarding, making_a_token, calling]


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_what_ended_is_proposed_again_as_another_transaction(desk, kind, monkeypatch):
    propose = kind(desk)
    psbt_ids = [made(propose())]
    for _ in range(OFTEN):
        ok(cancel_own(desk, psbt_ids[-1]))
        psbt_ids.append(made(propose()))
    require_distinct(desk, least=OFTEN + 1)
    psbts = [Psbt.parse(desk.proposal(psbt_id)["psbt_base64"]) for psbt_id in psbt_ids]
    tip = desk.chain.tip().height
    assert all(tip - BACKDATE_BLOCKS < psbt.tx.locktime <= tip for psbt in psbts), "as everybody's"
    assert len({psbt.tx.inputs for psbt in psbts}) == 1, "nothing else is another"
    ok(cancel_own(desk, psbt_ids[-1]))
    require_drafted_again(desk, propose, monkeypatch)


def cancel_own(desk: Desk, psbt_id: str):
    """Cancelled by its maker: a forward belongs to its owner alone."""
    is_forward = desk.proposal(psbt_id)["tx_type"] == "forward"
    return cancel(replace(desk, admin=desk.signers["alice"]) if is_forward else desk, psbt_id)


def test_whatever_the_seed_no_transaction_is_made_twice(tmp_path):
    for seed in range(2):
        (folder := tmp_path / str(seed)).mkdir()
        with open_desk(folder, chance=random.Random(seed)) as desk:
            propose = making_a_token(desk)
            for _ in range(OFTEN):
                ok(cancel(desk, made(propose())))
            require_distinct(desk, least=OFTEN)


@pytest.mark.parametrize("newer", [bump, take_back])
def test_so_is_a_newer_version_of_it(desk, newer):
    propose = making_a_token(desk)
    for _ in range(OFTEN):
        first = made(propose())
        ok(cancel(desk, made(newer(desk, first, fee_rate="9"))))
        ok(cancel(desk, first))
    require_distinct(desk, least=2 * OFTEN)


def test_a_signer_is_asked_nothing_about_it_and_it_is_sent(desk):
    propose = sending(desk)
    for _ in range(3):
        ok(cancel(desk, made(propose())))
    psbt_id = made(propose())
    assert lets_through(desk, psbt_id, [])
    txid = finished(desk, psbt_id)
    desk.mine()
    assert desk.chain.transaction(txid).height == desk.chain.tip().height
    statuses = sorted(proposal.status for proposal in desk.rows(ProposalRow))
    assert statuses == ["CANCELLED", "CANCELLED", "CANCELLED", "CONFIRMED"]


def require_drafted_again(desk: Desk, propose: Propose, monkeypatch: pytest.MonkeyPatch) -> None:
    """What was proposed and ended since it was drafted: outside the write lock a few times, then inside it,
    where no other member can propose.
    """
    monkeypatch.setattr(desk.world.platform.services.tools.rng, "randrange", Steady().randrange)
    before = len(proposed(desk))
    with meanwhile(lambda: ok(cancel_own(desk, made(propose()))), times=MAX_TRIES) as drafted:
        made(propose())
    assert len(drafted) == MAX_TRIES + 1
    require_distinct(desk, least=before + MAX_TRIES + 1)


def test_two_members_who_propose_the_same_never_make_one_transaction(desk):
    propose = sending(desk)

    def work() -> int:
        count = 0
        for _ in range(OFTEN):
            answer = propose()
            if answer.status_code == 200:
                ok(cancel(desk, made(answer)))
                count += 1
            else:
                assert answer.json()["code"] == "LOCKED_FUNDS"
        return count

    with ThreadPoolExecutor(2) as pool:
        counts = [waiting.result() for waiting in [pool.submit(work), pool.submit(work)]]
    require_distinct(desk, least=sum(counts))


class TestTheDatabase:
    @pytest.fixture
    def row(self, desk):
        made(sending(desk)())
        (first,) = desk.rows(ProposalRow)
        return {column.name: getattr(first, column.name) for column in ProposalRow.__table__.columns}

    def test_holds_no_transaction_twice(self, desk, row):
        other = {"id": "another", "family_id": "another", "tx_type": "forward"}
        with pytest.raises(IntegrityError), desk.world.platform.services.store.write() as db:
            db.execute(insert(ProposalRow), row | other)

    def test_however_many_were_proposed_there_is_a_lock_time_left(self, desk, row):
        """Far beyond what looks like everybody's, and beyond a chain of a few blocks."""
        tx, tip = Psbt.parse(row["psbt"]).tx, 2 * BACKDATE_BLOCKS + 30
        least = tx.locktime - 1
        taken = [height for height in range(tip + 1) if height not in {least, tx.locktime}]
        with desk.world.platform.services.store.write() as db:
            assert free_locktime(db, replace(tx, locktime=tip), tip) == tip
            txids = {height: replace(tx, locktime=height).txid for height in taken}
            values = ({"id": txid, "family_id": txid, "txid_expected": txid} for txid in txids.values())
            db.execute(insert(ProposalRow), [row | each for each in values])
            assert free_locktime(db, replace(tx, locktime=tip), tip) == least
            assert free_locktime(db, replace(tx, locktime=least), tip) == least
            last = replace(tx, locktime=least).txid
            db.execute(insert(ProposalRow), row | {"id": last, "family_id": last, "txid_expected": last})
            assert free_locktime(db, tx, tip) == LOCKTIME_THRESHOLD
