"""A deposit that a reorganisation took back for good does not lock the coins that were to be spent beside it
(P36).
"""

import pytest

from custody.server.chain.embedded.mining import MINER_SCRIPT, _assemble
from multisig import Sats, TxOut
from tests.support.custody import SHOP, ok, refused
from tests.support.replacing import bump, take_back


@pytest.fixture
def stalled(desk) -> str:
    """Signed, with a coin whose sender has spent the money elsewhere, on the branch that won."""
    desk.deposit(300_000, blocks=10)
    (txid,) = desk.deposit(300_000, blocks=1)
    psbt_id = ok(desk.propose(500_000, recipients=[SHOP]))["psbt_id"]
    coins = [item.outpoint for item in desk.chain.transaction(txid).transaction.inputs]
    desk.reorganise(1, 2, [_assemble(coins, (TxOut(Sats(1_000), MINER_SCRIPT),))])
    desk.sign_off(psbt_id)
    desk.settle()
    shown = desk.proposal(psbt_id)
    assert (shown["status"], shown["failure_code"]) == ("STALLED", "missing-inputs")
    assert desk.wallets()[0]["locked_sats"] == 300_000
    return psbt_id


def test_p36_what_is_left_of_its_coins_comes_back(desk, stalled) -> None:
    back = ok(take_back(desk, stalled))["psbt_id"]
    for name in ("alice", "bob"):
        desk.approve(name, back)
    desk.settle()
    assert desk.proposal(back)["status"] == "BROADCASTING"
    desk.chain.mine(1)
    desk.settle()
    assert [desk.proposal(each)["status"] for each in (stalled, back)] == ["INVALIDATED", "CONFIRMED"]
    (vault,) = desk.wallets()
    assert vault["locked_sats"] == 0
    assert 298_000 < vault["confirmed_sats"] < 300_000


def test_it_is_not_paid_with_other_coins(desk, stalled) -> None:
    """The coin may come back, and with it the payment:
    only a replacement without payments may leave out a coin.
    """
    desk.deposit(900_000)
    said = refused(bump(desk, stalled, fee_rate="20"), 409, "STATE_CONFLICT")
    assert "not on the chain" in said["detail"]
