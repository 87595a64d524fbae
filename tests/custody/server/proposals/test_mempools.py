"""A proposal whose transaction no node would take, for what it hangs together with, is refused at once."""

from custody.server.proposals import choosing
from tests.support.custody import CAFE, SHOP, ok, refused
from tests.support.profiles import forward, grant, pay_profile, profile_of
from tests.support.replacing import bump, finished, made

LONG = "Nodes take"


def pay(desk, amount: int = 10_000) -> str:
    psbt_id = made(desk.propose(amount, recipients=[SHOP], fee_rate="2"))
    finished(desk, psbt_id)
    assert desk.proposal(psbt_id)["status"] == "BROADCASTING"
    return psbt_id


def test_the_chain_takes_all_that_is_proposed_and_no_more_is(desk):
    desk.deposit(5_000_000)
    for _ in range(choosing.MAX_TOGETHER):
        pay(desk)
    assert LONG in refused(desk.propose(10_000, fee_rate="2"), 409, "STATE_CONFLICT")["detail"]
    desk.mine()
    pay(desk)


def test_what_waits_too_long_is_left_out_of_a_sweep_and_of_the_most(desk, monkeypatch):
    monkeypatch.setattr(choosing, "MAX_TOGETHER", 3)
    desk.deposit(500_000)
    pay(desk), pay(desk)
    # A bump adds none.
    newest = made(desk.propose(20_000, recipients=[CAFE], fee_rate="2"))
    finished(desk, made(bump(desk, newest, fee_rate="9")))
    assert LONG in refused(desk.propose(20_000, fee_rate="2"), 409, "STATE_CONFLICT")["detail"]
    asked = {"workspace_id": 1, "wallet_id": desk.vault["id"], "recipients": SHOP, "fee_rate": "2"}
    most = ok(desk.admin.get("/api/v1/max-send", **asked))
    assert (most["amount_sats"], most["bound_by"]) == (0, "nodes")
    assert LONG in most["words"]
    # Not "locked by other proposals", nor that there were no coins.
    for path in ("create-psbt", "preview-psbt"):
        sweep = {"wallet_id": desk.vault["id"], "workspace_id": 1, "tx_type": "send"}
        sweep |= {"recipients": [SHOP], "sweep": True, "fee_rate": "2"}
        answer = desk.admin.post(f"/api/v1/{path}", sweep)
        assert LONG in refused(answer, 409, "STATE_CONFLICT")["detail"]
    desk.deposit(50_000, blocks=0)
    refused(desk.propose(10_000, fee_rate="2"), 409, "STATE_CONFLICT")
    desk.mine()
    assert ok(desk.admin.get("/api/v1/max-send", **asked))["amount_sats"] > 400_000


def test_large_ones_are_counted_by_size(desk, monkeypatch):
    monkeypatch.setattr(choosing, "MAX_TOGETHER_VSIZE", 500)
    desk.deposit(500_000)
    pay(desk), pay(desk)
    assert LONG in refused(desk.propose(10_000, fee_rate="2"), 409, "STATE_CONFLICT")["detail"]


def test_a_forward_of_a_deposit_that_waits_counts_it(desk, monkeypatch):
    grant(desk, "Signer", "PAYMENT_INIT")
    monkeypatch.setattr(choosing, "MAX_TOGETHER", 1)
    pay_profile(desk, "alice", 100_000, blocks=0)
    assert profile_of(desk.signers["alice"])["unconfirmed_sats"] == 100_000
    refused(forward(desk, "alice", 50_000, allow_unconfirmed=True), 409, "STATE_CONFLICT")
    desk.mine()
    ok(forward(desk, "alice", 50_000, allow_unconfirmed=True))
