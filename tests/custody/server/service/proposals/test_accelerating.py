"""A child that pays for its parent: what it spends, what it pays, and what becomes of it (P37, P48)."""

import pytest

from custody.server.store.models import CoinLock, Proposal
from multisig import CHANGE, Network, Psbt, Transaction, finalise, inspect
from tests.support.custody import SHOP, Desk, ok, refused, sign
from tests.support.prepared import Story
from tests.support.replacing import (
    accelerate,
    bump,
    cancel,
    finished,
    forget_mempool,
    lets_through,
    made,
    meanwhile,
    status,
)


@pytest.fixture
def beginning() -> Story:
    return a_parent


def a_parent(desk: Desk) -> None:
    """In the mempool at 2 sat/vB."""
    desk.deposit(500_000)
    finished(desk, made(desk.propose(150_000, fee_rate="2")))


@pytest.fixture
def parent(desk):
    (proposal,) = desk.rows(Proposal)
    return proposal.id


def seen(desk, psbt_id):
    return inspect(Psbt.parse(desk.proposal(psbt_id)["psbt_base64"]), desk.policy, network=Network.REGTEST)


def final(desk, psbt_id) -> Transaction:
    (proposal,) = desk.rows(Proposal, Proposal.id == psbt_id)
    return Transaction.parse(proposal.final_tx)


def locks(desk):
    return {lock.family_id for lock in desk.rows(CoinLock)}


def test_it_spends_the_change_back_to_the_vault_and_pays_for_both(desk, parent):
    child = made(accelerate(desk, parent, fee_rate="20"))
    found, record = seen(desk, child), desk.proposal(child)
    assert [item.outpoint.txid for item in found.inputs] == [desk.proposal(parent)["txid"]]
    assert found.payments == ()
    ((back,),) = (found.change,)
    assert (back.chain, back.index) == (CHANGE, 1), "an address that nobody has seen"
    size = final(desk, parent).vsize + found.vsize
    assert 20 * size <= desk.proposal(parent)["fee_sats"] + found.fee < 20 * size + 2
    assert (record["recipients"], record["replaces_psbt_id"]) == ([], None)
    assert parent in record["description"]
    assert record["psbt_id"] in locks(desk), "a family of its own"
    assert lets_through(desk, child, [parent])

    # Both are offered again where they were evicted, and mined, also after a reorganisation threw them back.
    finished(desk, child)
    assert status(desk, parent, child) == ["BROADCASTING", "BROADCASTING"]
    forget_mempool(desk)
    desk.watcher.look()
    assert status(desk, parent, child) == ["BROADCASTING", "BROADCASTING"]
    for _ in range(2):
        desk.settle()
        desk.world.clock.advance(seconds=61)
    desk.mine()
    assert status(desk, parent, child) == ["CONFIRMED", "CONFIRMED"]
    desk.reorganise(1, 2)
    assert status(desk, parent, child) == ["BROADCASTING", "BROADCASTING"]
    desk.mine()
    assert status(desk, parent, child) == ["CONFIRMED", "CONFIRMED"]
    fees = sum(desk.proposal(each)["fee_sats"] for each in (parent, child))
    assert desk.wallets()[0]["confirmed_sats"] == 500_000 - 150_000 - fees


def test_a_chain_of_parents_is_paid_for(desk, parent):
    second = made(desk.propose(50_000, recipients=[SHOP], fee_rate="2"))
    finished(desk, second)
    child = made(accelerate(desk, second, fee_rate="20"))
    sizes = sum(final(desk, each).vsize for each in (parent, second)) + seen(desk, child).vsize
    fees = sum(desk.proposal(each)["fee_sats"] for each in (parent, second, child))
    assert 20 * sizes <= fees < 20 * sizes + 2


class TestRefused:
    def test_p48_a_fee_above_the_cap_or_the_change(self, desk, parent):
        refused(accelerate(desk, parent, fee_rate="1001"), 422, "VALIDATION")
        refused(accelerate(desk, parent, fee_rate="999"), 422, "INSUFFICIENT_FUNDS")
        refused(accelerate(desk, parent, fee_rate="1.5"), 422, "VALIDATION")  # what it pays already
        # A payment beside it:
        body = {"recipients": [SHOP], "amounts_sats": [1_000]}
        refused(accelerate(desk, parent, fee_rate="20", **body), 422, "VALIDATION")
        refused(accelerate(desk, parent, replaces_psbt_id=parent), 422, "VALIDATION")
        child = made(accelerate(desk, parent, fee_rate="20"))
        # Its change is spoken for:
        refused(accelerate(desk, parent, fee_rate="30"), 409, "STATE_CONFLICT")
        assert child in refused(bump(desk, parent, fee_rate="9"), 409, "STATE_CONFLICT")["detail"]

    def test_what_is_being_replaced_or_not_in_the_mempool(self, desk, parent):
        """Its change goes with it, and a child would be lost."""
        newer = made(bump(desk, parent, fee_rate="5"))
        problem = refused(accelerate(desk, parent, fee_rate="20"), 409, "STATE_CONFLICT")
        assert newer in problem["detail"]
        ok(cancel(desk, newer))
        ok(cancel(desk, made(accelerate(desk, parent, fee_rate="20"))))
        waiting = made(desk.propose(50_000, recipients=[SHOP], fee_rate="2"))
        refused(accelerate(desk, waiting, fee_rate="20"), 409, "STATE_CONFLICT")
        ok(cancel(desk, waiting))
        desk.mine()
        refused(accelerate(desk, parent, fee_rate="20"), 409, "STATE_CONFLICT")

    def test_what_is_replaced_at_the_same_moment(self, desk, parent):
        accelerating = desk.world.platform.services.accelerating
        with meanwhile(accelerating, lambda: ok(bump(desk, parent, fee_rate="5"))):
            refused(accelerate(desk, parent, fee_rate="20"), 409, "STATE_CONFLICT")


class TestItsLifeHangsOnItsParents:
    @pytest.mark.parametrize("signed", [False, True])
    def test_it_ends_with_its_parent_and_comes_back_with_it(self, desk, parent, signed):
        """Another version of the parent is mined: the change is no more."""
        other = made(bump(desk, parent, fee_rate="9"))
        rival, first = signed_elsewhere(desk, other), final(desk, parent)
        ok(cancel(desk, other))
        child = made(accelerate(desk, parent, fee_rate="20"))
        if signed:
            desk.sign_off(child)
        desk.chain.mine_block([rival])
        desk.watcher.look()
        assert status(desk, parent, other, child) == ["INVALIDATED", "CONFIRMED", "INVALIDATED"]
        assert desk.proposal(child)["failure_code"] == "input-gone"
        assert child not in locks(desk)
        if not signed:
            return
        desk.reorganise(1, 2, [first])
        assert status(desk, parent, other) == ["CONFIRMED", "INVALIDATED"]
        assert status(desk, child) == ["BROADCASTING"]
        desk.settle()
        desk.mine()
        assert status(desk, child) == ["CONFIRMED"]


def signed_elsewhere(desk, psbt_id) -> Transaction:
    """What two signers put together without the platform."""
    psbt = Psbt.parse(desk.proposal(psbt_id)["psbt_base64"])
    for name in ("alice", "bob"):
        psbt = sign(desk.devices[name], psbt, desk.policy)
    return finalise(psbt, desk.policy)
