"""Many small coins become one: which, what it costs and saves, and that it is no more than that."""

from multisig import Network, inspect
from tests.support.custody import Desk, ok, refused
from tests.support.history import listed, listed_coins
from tests.support.replacing import bump, finished, made

SMALL = (3_000, 4_000, 5_000, 6_000, 7_000, 8_000, 9_000)


def plan(desk: Desk, **query: object) -> dict:
    where = {"workspace_id": desk.workspace_id, "vault_id": desk.vault["id"]}
    return ok(desk.admin.get("/api/v1/consolidation", **where, **query))


def refusal(desk: Desk, **query: object) -> str:
    where = {"workspace_id": desk.workspace_id, "vault_id": desk.vault["id"]}
    return refused(desk.admin.get("/api/v1/consolidation", **where, **query), 409, "STATE_CONFLICT")["detail"]


def test_the_smallest_become_one_and_limits_count_the_fee_alone(desk: Desk) -> None:
    desk.deposit(*SMALL, 400_000)
    outpoints = {each["amount_sats"]: f"{each['txid']}:{each['vout']}" for each in listed_coins(desk)}
    ok(desk.propose(4_000 - 500, coins=[outpoints[4_000]], fee_rate="1"))
    ok(desk.of_vault("set-coin-aside", coin=outpoints[3_000], reason="dust"))
    said = plan(desk, coins=5, fee_rate="1")
    assert said["coins"] == [outpoints[amount] for amount in SMALL[2:]]
    assert said["held_sats"] == sum(SMALL[2:])
    each = said["later_fee_sats"] // 5
    assert said["saved_sats"] == said["later_fee_sats"] - said["fee_sats"] - each > 0
    assert str(said["saved_sats"]) in said["words"]
    desk.limit("0.00002")
    asked = {"recipients": [said["address"]], "coins": said["coins"], "fee_rate": said["fee_rate"]}
    proposal = made(desk.propose(**asked, amounts_sats=None, sweep_coins=True))
    assert {str(coin) for coin in desk.coins(proposal)} == {*said["coins"]}
    assert desk.proposal(proposal)["pays_others"] is False
    (vault,) = desk.wallets()
    assert vault["receive_address"] != said["address"], "what is given to payers is another"
    # What a signer's program sees: all of it comes back to the vault, and nobody is paid.
    seen = inspect(desk.psbt(proposal), desk.policy, network=Network.REGTEST)
    assert (list(seen.payments), int(seen.fee)) == ([], said["fee_sats"])
    finished(desk, proposal)
    # So does what takes its place, at the same address.
    newer = inspect(desk.psbt(made(bump(desk, proposal, fee_rate="3"))), desk.policy, network=Network.REGTEST)
    assert [each.address for each in newer.change] == [said["address"]]
    assert newer.payments == seen.payments
    desk.mine()
    (moved,) = listed(desk, kind="consolidation")
    assert moved["amount_sats"] == -said["fee_sats"]
    (one,) = [coin for coin in listed_coins(desk) if coin["txid"] == moved["txid"]]
    assert one["amount_sats"] == said["held_sats"] - said["fee_sats"]


def test_it_is_refused_where_nothing_is_gained(desk: Desk) -> None:
    desk.deposit(400_000)
    assert "no two coins to make one of: 1 is free" in refusal(desk, fee_rate="1")
    desk.deposit(*SMALL)
    # As dear now as later.
    assert "Nothing is gained" in refusal(desk)
    assert len(plan(desk, fee_rate="1")["coins"]) == len(SMALL) + 1
    for each in listed_coins(desk):
        ok(desk.of_vault("set-coin-aside", coin=f"{each['txid']}:{each['vout']}", reason="dust"))
    sats = f"{sum(SMALL) + 400_000:,} sats in {len(SMALL) + 1} coins set aside, to be spent once released"
    assert f"0 are free and worth more than their fee (beside {sats})." in refusal(desk, fee_rate="1")
