"""What can be sent: `create-psbt` accepts the amount of `max-send`, and refuses one satoshi more (P64) and
what no node would take.
"""

from contextlib import contextmanager

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from sqlalchemy import delete

from custody.server.proposals import choosing, coins, drafts, paying
from custody.server.rules import selection
from custody.server.store.models import ChainCoinRow, CoinLockRow, VaultRow
from multisig import Network, Psbt, PsbtTooLarge, Sats, decode_address, dust_threshold, format_btc
from tests.support.custody import CAFE, SHOP, ok, refused
from tests.support.examples import examples
from tests.support.flood import flood
from tests.support.profiles import forward, grant, pay_profile, profile_of
from tests.support.replacing import bump, cancel, finished, made

FEW = 4
RICH = Sats(10**9)


def most(desk, *recipients: str, **changes):
    body = {"workspace_id": desk.workspace_id, "wallet_id": desk.vault["id"]}
    return ok(desk.admin.get("/api/v1/max-send", **body, recipients=recipients or (SHOP,), **changes))


@contextmanager
def holding(desk, amounts, limit: int = RICH):
    """The vault with exactly these coins and this limit, for as long as it takes."""
    desk.limit(format_btc(Sats(limit)))
    with desk.store.write() as db:
        vault = db.get_one(VaultRow, desk.vault["id"])
        for number, amount in enumerate(amounts):
            flood(db, vault, [amount], salt=f"{next(desk.numbers)} {number}")
    yield
    with desk.store.write() as db:
        db.execute(delete(CoinLockRow))
        db.execute(delete(ChainCoinRow))


@pytest.fixture
def few(monkeypatch, desk):
    """A transaction takes four coins, and the fee's cap is soon met. None is built in the writers' turn."""
    built, writing = drafts._built, desk.store._database.writing

    def outside(ctx, *rest):
        assert ctx.db.get_bind() is not writing
        return built(ctx, *rest)

    monkeypatch.setattr(drafts, "_built", outside)
    for module in (selection, choosing, coins):
        monkeypatch.setattr(module, "MAX_INPUTS", FEW)
    monkeypatch.setattr("custody.server.rules.selection.MAX_INPUTS", FEW)
    for module in (paying, drafts, choosing):
        monkeypatch.setattr(module, "MAX_FEE", Sats(9_000))
    desk.numbers = iter(range(10**6))
    return desk


def split(amount: int, *to: str) -> list[int]:
    """The first gets all but the least that each other one takes."""
    least = [int(dust_threshold(decode_address(address, Network.REGTEST))) for address in to[1:]]
    return [amount - sum(least), *least]


@settings(suppress_health_check=list(HealthCheck), max_examples=examples(12))
@example([5_000_000, 3_000_000, 2_000_000], "2", 2_000_000, 1)
@example([70_000] * 7, "1", RICH, 2)
@example([70_000] * 3, "30", RICH, 1)
@example([50_000, 50_000], "1", 50_100, 1)
@example([600], "1", RICH, 1)
@example([50_200], "1", 50_000, 1)
@example([300_000, 200_000], "1", 100, 0)
@example([90_000, 90_000, 90_000], "1", 190, 0)
@example([90_000, 90_000, 90_000], "1", 1_000, 0)
@given(
    st.lists(st.integers(400, 90_000), max_size=7),
    st.sampled_from(("1", "5", "20")),
    st.one_of(st.just(RICH), st.integers(1_000, 200_000), st.integers(100, 3_000)),
    st.integers(0, 2),
)
def test_p64_the_most_is_accepted_and_one_satoshi_more_is_not(few, amounts, rate, limit, recipients):
    # Of a payment to the vault itself the fee alone counts.
    to = (SHOP, CAFE)[:recipients] or (few.wallets()[0]["receive_address"],)
    with holding(few, amounts, limit):
        told = most(few, *to, fee_rate=rate)
        amount = told["amount_sats"]
        if amount:
            proposed = made(few.propose(*split(amount, *to), recipients=to, fee_rate=rate))
            record = few.proposal(proposed)
            assert sum(record["amounts_sats"]) == amount
            assert record["fee_sats"] <= limit - (amount if recipients else 0)
            if told["bound_by"] in {"coins", "transaction"}:
                assert record["fee_sats"] == told["fee_sats"]
            ok(cancel(few, proposed))
        more = few.propose(*split(max(amount, 1_000) + 1, *to), recipients=to, fee_rate=rate)
        if more.status_code == 200:
            # Coins that add up without change: within the limit all the same.
            assert told["bound_by"] == "vault-limit"
            psbt = Psbt.parse(more.json()["psbt_base64"])
            assert len(psbt.outputs) == recipients > 0
            assert sum(item.witness_utxo.amount for item in psbt.inputs) <= limit
            ok(cancel(few, made(more)))


def test_it_says_what_it_leaves_out_and_why(desk):
    desk.deposit(300_000, 200_000)
    holder = made(desk.propose(150_000, fee_rate="1"))
    desk.deposit(70_000, blocks=0)
    with desk.store.write() as db:
        flood(db, db.get_one(VaultRow, desk.vault["id"]), [150])
    told = most(desk, fee_rate="2")
    (vault,) = desk.wallets()
    assert told["locked_sats"] == vault["locked_sats"]
    assert (told["waiting_sats"], told["too_small_sats"]) == (70_000, 150)
    assert told["free_sats"] == 500_000 - vault["locked_sats"]
    assert told["free_sats"] == told["amount_sats"] + told["fee_sats"]
    assert told["vault_left_sats"] == 10 * 10**8
    for words in (f"locked by proposal {holder}", "70,000 sats not spendable yet", "150 sats in coins below"):
        assert words in told["words"]


@pytest.mark.parametrize(("fit", "total"), [(1, 100_000), (3, 270_000), (4, 340_000)])
def test_as_many_coins_count_as_fit_into_a_psbt(desk, monkeypatch, fit, total):
    desk.deposit(100_000, 90_000, 80_000, 70_000)
    built = choosing.built_psbt

    def bounded(policy, spent, *rest):
        if len(spent) > fit:
            raise PsbtTooLarge("It is too large.")
        return built(policy, spent, *rest)

    monkeypatch.setattr(choosing, "LARGEST_MAP", 10**6)
    monkeypatch.setattr(choosing, "built_psbt", bounded)
    told = most(desk, fee_rate="1")
    assert told["amount_sats"] + told["fee_sats"] == total


def test_a_refusal_for_lack_of_funds_offers_it(desk):
    problem = refused(desk.propose(10_000), 422, "INSUFFICIENT_FUNDS")
    assert problem["figures"] == {"maximum_sats": 0}
    desk.deposit(100_000)
    problem = refused(desk.propose(100_000, fee_rate="1"), 422, "INSUFFICIENT_FUNDS")
    maximum = problem["figures"]["maximum_sats"]
    assert (
        f"At most {maximum:,} sats can be sent now: all coins that are free, 100,000 sats"
        in problem["detail"]
    )
    made(desk.propose(maximum, fee_rate="1"))
    problem = refused(desk.propose(10_000), 409, "LOCKED_FUNDS")
    assert problem["figures"] == {"maximum_sats": 0}


def test_a_refusal_names_what_holds_the_coins_a_cancelled_payment_too(desk):
    desk.deposit(*[100_000] * 5)
    rows = [made(desk.propose(90_000, fee_rate="1", description=f"Rent {n}")) for n in range(5)]
    desk.submit("alice", rows[0], desk.signed("alice", rows[0]))
    for each in rows[:4]:
        ok(cancel(desk, each))
    larger = made(desk.propose(250_000, fee_rate="1"))
    for refusal in (desk.propose(90_000), desk.sweep()):
        said = refused(refusal, 409, "LOCKED_FUNDS")["detail"]
        assert f"locked by proposal {larger}; proposal " in said, "the largest first"
        assert f"proposal {rows[0]} “Rent 0”, ended when signatures were out" in said
        assert f"proposal {rows[4]} “Rent 4”" in said
    ok(cancel(desk, rows[0], release_coins=True))
    assert rows[0] not in refused(desk.propose(190_000), 409, "LOCKED_FUNDS")["detail"]


def test_a_sweep_below_its_own_fee_is_refused(desk):
    """Each coin brings more than it costs, and together less than the rest of the transaction does."""
    desk.deposit(1_100)
    refused(desk.sweep(fee_rate="10"), 422, "INSUFFICIENT_FUNDS")
    assert most(desk, fee_rate="10")["bound_by"] == "dust"
    assert desk.wallets()[0]["locked_sats"] == 0


def test_what_stays_in_the_vault_counts_for_no_limit(desk):
    """Of a payment to the vault itself and to others, what the others get."""
    desk.deposit(300_000)
    desk.limit(format_btc(Sats(10_000)))
    own = desk.wallets()[0]["receive_address"]
    told = most(desk, own, fee_rate="1")
    assert (told["vault_left_sats"], told["bound_by"]) == (10_000, "coins")
    beside = most(desk, own, SHOP, fee_rate="1")
    assert (beside["amount_sats"] + beside["fee_sats"], beside["bound_by"]) == (10_000, "vault-limit")
    made(desk.propose(told["amount_sats"], recipients=[own], fee_rate="1"))


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
