"""Fee bumps and self-spends: what they pay, what is refused, what they free (P36), and that signers' own
daemons let them through (P22, P48).
"""

import pytest

from custody.server.chain.embedded.mining import MINER_SCRIPT, _assemble
from custody.server.store.models import ProposalRow
from multisig import Network, Sats, Transaction, TxOut, inspect, parse_btc
from tests.support.custody import SHOP, ok, refused
from tests.support.profiles import forward, grant, profile_of
from tests.support.replacing import (
    bump,
    cancel,
    finished,
    judged,
    lets_through,
    made,
    meanwhile,
    status,
    take_back,
)


@pytest.fixture
def first(funded):
    """150,000 sat to the shop at 2 sat/vB."""
    return made(funded.propose(150_000, fee_rate="2", description="rent", op_return="invoice 7"))


def seen(desk, psbt_id):
    return inspect(desk.psbt(psbt_id), desk.policy, network=Network.REGTEST)


def paid(desk, psbt_id):
    return sorted((payment.address, payment.amount) for payment in seen(desk, psbt_id).payments)


def used(desk):
    return parse_btc(desk.used())


class TestABump:
    def test_raises_the_fee_and_nothing_else(self, funded, first):
        second = made(bump(funded, first, fee_rate="5"))
        before, after = funded.proposal(first), funded.proposal(second)
        assert (before["replaced_by_psbt_id"], after["replaces_psbt_id"]) == (second, first)
        assert (before["may_be_replaced"], after["may_be_replaced"]) == (False, True)
        assert paid(funded, first) == paid(funded, second)
        assert funded.coins(first) == funded.coins(second)
        for name in ("recipients", "amounts_sats", "description", "op_return"):
            assert before[name] == after[name]
        back = [seen(funded, each).change for each in (first, second)]
        assert [change[0].index for change in back] == [0, 0], "its change goes where the first's went"
        assert back[0][0].amount - back[1][0].amount == after["fee_sats"] - before["fee_sats"]

    @pytest.mark.parametrize("rate", ["1.01", "3.333"])
    def test_the_rate_that_a_preview_shows_is_taken(self, desk, rate):
        desk.deposit(400_000)
        psbt_id = ok(desk.propose(100_000, fee_rate=rate))["psbt_id"]
        place = {"wallet_id": desk.vault["id"], "workspace_id": desk.workspace_id, "tx_type": "send"}
        for field in ("replaces_psbt_id", "cancels_psbt_id"):
            body = place | {"recipients": [], field: psbt_id}
            shown = ok(desk.admin.post("/api/v1/preview-psbt", body | {"priority": "high"}))["fee_rate"]
            again = ok(desk.admin.post("/api/v1/preview-psbt", body | {"fee_rate": shown}))
            assert again["fee_rate"] == shown

    def test_p48_what_is_no_bump_is_refused_with_the_least_that_nodes_would_take(self, funded, first):
        """Not even what it pays is repeated; of a family only the newest is replaced."""
        for changes in (
            {"recipients": [SHOP], "amounts_sats": [150_000]},
            {"op_return": "invoice 7"},
            {"fee_rate": "1001"},
            {"wallet_id": ok(funded.create_vault("Other"))["id"]},
        ):
            told = refused(bump(funded, first, **{"fee_rate": "5"} | changes), 422, "VALIDATION")["detail"]
            pays = not changes.keys() & {"fee_rate", "wallet_id"}
            assert (f"leave out {', '.join(changes)}" in told) == pays
        refused(bump(funded, "nobody", fee_rate="5"), 404, "NOT_FOUND")
        for fee_rate in ("1", "2", "2.9"):
            (fault,) = refused(bump(funded, first, fee_rate=fee_rate), 422, "VALIDATION")["errors"]
            assert fault["pointer"] == "/fee_rate"
        least = fault["detail"].split("pay ")[1].split(" ")[0]
        ok(cancel(funded, made(bump(funded, first, fee_rate=least))))
        second = made(bump(funded, first, fee_rate="5"))
        problem = refused(bump(funded, first, fee_rate="9"), 409, "STATE_CONFLICT")
        assert second in problem["detail"]
        third = made(bump(funded, second, fee_rate="9"))
        assert funded.proposal(first)["replaced_by_psbt_id"] == second
        assert paid(funded, third) == paid(funded, first)

    def test_more_coins_are_added_where_needed_none_of_them_unconfirmed(self, desk):
        """BIP-125, rule 2. They are free again where it ends."""
        desk.deposit(100_000)
        first = made(desk.propose(98_000, fee_rate="2"))
        desk.deposit(50_000, 40_000, blocks=0)
        refused(bump(desk, first, fee_rate="30"), 422, "INSUFFICIENT_FUNDS")
        desk.mine()
        second = made(bump(desk, first, fee_rate="30"))
        assert desk.coins(first) < desk.coins(second)
        assert desk.locks() == dict.fromkeys(desk.coins(second), first)
        assert lets_through(desk, second, [first])
        assert f"those of the version {first}, which goes on" in ok(cancel(desk, second))["detail"]
        assert set(desk.locks()) == desk.coins(first)
        third = made(bump(desk, first, fee_rate="250"))
        assert desk.coins(second) < desk.coins(third)

    def test_a_priority_that_is_too_low_gives_the_least_that_outbids_on_the_network_and_at_the_daemon(
        self, funded, first
    ):
        """Signatures are at times a byte smaller, and the rate on the network higher than the estimated one:
        a finalised one's real size is what is outbid.
        """
        second = made(bump(funded, first, priority="low"))
        before, after = funded.proposal(first), funded.proposal(second)
        assert after["fee_sats"] == before["fee_sats"] + seen(funded, second).vsize
        assert lets_through(funded, second, [first])
        (verdict,) = (one for one in judged(funded, second, [first]).verdicts if one.name == "replacement")
        assert "only the fee changes" in verdict.sentence
        ok(cancel(funded, second))

        txid = finished(funded, first)
        (proposal,) = funded.rows(ProposalRow, ProposalRow.id == first)
        real = Transaction.parse(proposal.final_tx)
        second = made(bump(funded, first, priority="low"))
        fee = funded.proposal(second)["fee_sats"]
        assert fee * real.vsize > before["fee_sats"] * seen(funded, second).vsize
        assert funded.chain.transaction(finished(funded, second)).block is None
        assert funded.chain.transaction(txid) is None
        assert status(funded, first, second) == ["REPLACED", "BROADCASTING"]

    def test_nothing_is_replaced_whose_change_is_spent_already(self, funded, first):
        """Core's wallet refuses it too: what hangs on the change would be lost."""
        finished(funded, first)
        child = made(funded.propose(500_000, fee_rate="2"))
        assert any(coin.txid == funded.proposal(first)["txid"] for coin in funded.coins(child))
        problem = refused(bump(funded, first, fee_rate="5"), 409, "STATE_CONFLICT")
        assert child in problem["detail"]
        ok(cancel(funded, child))
        ok(bump(funded, first, fee_rate="5"))

    def test_a_payee_does_not_keep_it_from_being_taken_back(self, desk):
        """A forward may spend the payment while it waits, in any workspace: that is its owner's risk."""
        grant(desk, "Signer", "PAYMENT_INIT")
        desk.deposit(300_000)
        address = profile_of(desk.signers["alice"])["wallet_address"]
        first = made(desk.propose(98_000, recipients=[address], fee_rate="2"))
        finished(desk, first)
        onward = made(forward(desk, "alice", allow_unconfirmed=True))
        desk.approve("alice", onward)
        desk.settle()
        back = made(take_back(desk, first, fee_rate="20"))
        finished(desk, back)
        desk.mine()
        assert status(desk, first, onward, back) == ["INVALIDATED", "INVALIDATED", "CONFIRMED"]


def test_a_bump_after_one_that_ended_outbids_that_one_too(funded, first):
    """Its signatures may be out, and a daemon does not trust the platform when it
    says that a proposal ended.
    """
    second = made(bump(funded, first, fee_rate="9"))
    funded.approve("alice", second)
    funded.reject(second)
    assert set(funded.locks()) == funded.coins(first), "a family's coins stay while a member lives"
    refused(bump(funded, first, fee_rate="5"), 422, "VALIDATION")
    third = made(bump(funded, first, priority="low"))
    assert funded.proposal(third)["fee_sats"] > funded.proposal(second)["fee_sats"]
    assert lets_through(funded, third, [first, second])


def test_a_self_spend_pays_everything_back_and_counts_for_its_fee_alone_and_the_family_once(funded, first):
    before = used(funded)
    finished(funded, first)
    for changes in ({"recipients": [SHOP], "amounts_sats": [1_000]}, {"op_return": "x"}):
        refused(take_back(funded, first, **changes), 422, "VALIDATION")
    refused(funded.propose(1_000, cancels_psbt_id=first), 422, "VALIDATION")
    back = made(take_back(funded, first, fee_rate="5"))
    assert used(funded) == before
    assert lets_through(funded, back, [first])
    shown = funded.proposal(back)
    assert (shown["recipients"], shown["amounts_sats"], shown["op_return"]) == ([], [], None)
    assert shown["description"] == f"Takes back proposal {first[:8]}", "it is not the rent"
    again = made(bump(funded, back, fee_rate="9"))
    assert lets_through(funded, again, [first, back])
    ok(cancel(funded, again))
    finished(funded, back)
    funded.mine()
    assert status(funded, first, back) == ["INVALIDATED", "CONFIRMED"]
    record = funded.proposal(first)
    assert record["failure_code"] == "other-version-confirmed"
    assert back in record["failure_reason"]
    assert used(funded) == shown["fee_sats"]


class TestSigningOlderVersions:
    def test_a_signature_goes_to_the_newest_for_as_long_as_that_lives(self, funded, first):
        signed, bob = funded.signed("alice", first), funded.signed("bob", first)
        ok(funded.submit("alice", first, signed))
        second = made(bump(funded, first, fee_rate="5"))
        assert second in refused(funded.submit("bob", first, bob), 409, "STATE_CONFLICT")["detail"]
        assert ok(funded.submit("alice", first, signed))["collected_signatures"] == 1, "as before"
        asked = {"workspace_id": funded.workspace_id, "awaiting": "me"}
        waiting = ok(funded.signers["bob"].get("/api/v1/psbt", **asked))
        assert [each["psbt_id"] for each in waiting] == [second]
        ok(cancel(funded, second))
        assert ok(funded.submit("bob", first, bob))["status"] == "SIGNED"

    def test_nor_where_the_newer_one_was_made_by_a_process_whose_clock_is_behind(self, funded, first):
        funded.approve("alice", first)
        funded.world.clock.advance(seconds=-5)
        back = made(take_back(funded, first, fee_rate="5"))
        assert funded.proposal(first)["replaced_by_psbt_id"] == back
        refused(funded.submit("bob", first, funded.signed("bob", first)), 409, "STATE_CONFLICT")
        finished(funded, back)
        assert status(funded, first, back) == ["PENDING", "BROADCASTING"]


@pytest.mark.parametrize("end", ["REJECTED", "CONFIRMED", "EXPIRED"])
def test_what_has_ended_is_not_replaced(funded, first, end):
    match end:
        case "REJECTED":
            funded.reject(first)
        case "CONFIRMED":
            finished(funded, first)
            funded.mine()
        case "EXPIRED":
            funded.later(days=15)
            funded.world.platform.background.expiry()()
    assert status(funded, first) == [end]
    assert not funded.proposal(first)["may_be_replaced"]
    for ask in (bump, take_back):
        refused(ask(funded, first, fee_rate="5"), 409, "STATE_CONFLICT")


def test_two_bumps_at_once_end_in_one(funded, first):
    """The second was drafted before the first was stored: it is drafted again, and finds it."""
    with meanwhile(lambda: ok(bump(funded, first, fee_rate="6"))):
        refused(bump(funded, first, fee_rate="5"), 409, "STATE_CONFLICT")
    assert len(funded.rows(ProposalRow)) == 2


def test_a_version_that_came_and_ended_meanwhile_is_outbid_too(funded, first):
    """Its signatures may be out, with a fee that the draft knew nothing of."""
    ended = []

    def come_and_go():
        ended.append(made(bump(funded, first, fee_rate="9")))
        funded.approve("alice", ended[0])
        ok(cancel(funded, ended[0]))

    with meanwhile(come_and_go):
        third = made(bump(funded, first, priority="low"))
    assert funded.proposal(third)["fee_sats"] > funded.proposal(ended[0])["fee_sats"]


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
