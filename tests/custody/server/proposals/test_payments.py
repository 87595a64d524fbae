"""A send that names its coins spends exactly these, and keeps to every rule of its vault (P65); recipients
and OP_RETURN data as callers write them (P21, P30).
"""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from custody.common.recipients import Recipient
from custody.schemas.proposals import CreatePsbtRequest
from custody.server.chain.backend import BlockRef
from custody.server.errors import Invalid
from custody.server.network.backends import Quote
from custody.server.proposals.payments import merge_amount, parse_op_return, parse_recipient, read_rate
from custody.server.rules.fees import CEILING
from custody.server.store.models import ChainCoinRow
from multisig import FeeRate, Network, Psbt, inspect
from tests.support.custody import CAFE, SIGNERS, Desk, ok, refused
from tests.support.replacing import bump, cancel, finished, made
from tests.support.token_desk import TokenDesk


def outpoints(desk: Desk, txids: list[str]) -> list[str]:
    """Of the deposits: the place of the vault's output in each."""
    script = desk.policy.script_pubkey(0, 0)
    found = [(txid, desk.chain.transaction(txid).transaction.outputs) for txid in txids]
    return [
        f"{txid}:{next(n for n, out in enumerate(outs) if out.script_pubkey == script)}"
        for txid, outs in found
    ]


def deposited(desk: Desk, *amounts: int, **how) -> list[str]:
    return outpoints(desk, desk.deposit(*amounts, to=desk.vault["address"], **how))


@given(st.integers(0, 1_100_000), st.integers(100, 10_000).map(FeeRate))
def test_p48_a_rate_is_asked_for_from_what_the_node_takes_now_on(sat_per_kvb: int, floor: FeeRate) -> None:
    wanted = FeeRate(sat_per_kvb)
    quote = Quote(BlockRef(7, "ab" * 32, 0), {"medium": FeeRate(2_000)}, floor)
    text = f"{wanted.sat_per_vb:f}"
    request = CreatePsbtRequest.model_construct(fee_rate=text, priority=None)
    if floor <= wanted <= CEILING:
        assert read_rate(request, quote) == wanted
    else:
        with pytest.raises(Invalid, match=f"must be from {floor}, "):
            read_rate(request, quote)


def test_a_payment_below_1_sat_vb_goes_all_the_way_and_a_signer_sees_its_rate(funded: Desk) -> None:
    query = {"workspace_id": funded.workspace_id, "wallet_id": funded.vault["id"], "recipients": CAFE}
    least = ok(funded.admin.get("/api/v1/max-send", **query))["least_rate"]
    assert least == "0.1"
    psbt_id = made(funded.propose(20_000, fee_rate=least))
    seen = inspect(funded.psbt(psbt_id), funded.policy, network=Network.REGTEST)
    assert seen.ok
    assert FeeRate(100) <= seen.fee_rate < FeeRate(110)
    txid = finished(funded, psbt_id)
    funded.mine()
    assert funded.chain.transaction(txid).block is not None
    assert funded.proposal(psbt_id)["status"] == "CONFIRMED"
    # A replacement pays for its own relay at every node: one of a cheap payment is dearer than it.
    cheap = made(funded.propose(20_000, fee_rate=least))
    refused(bump(funded, cheap, fee_rate="0.5"), 422, "VALIDATION")
    assert float(funded.proposal(made(bump(funded, cheap, fee_rate="1.2")))["fee_rate"]) >= 1.2


def spent(created: dict) -> list[str]:
    return [str(item.outpoint) for item in Psbt.parse(created["psbt_base64"]).inputs]


def faults(problem: dict) -> list[tuple[str, str]]:
    return [(fault["pointer"], fault["code"]) for fault in problem["errors"]]


def test_p65_exactly_these_coins_are_spent(desk):
    """Of them everything is sent, or the most is offered."""
    small, _, large = deposited(desk, 20_000, 30_000, 500_000)
    for nonsense in (
        [],
        [f"{'ab' * 32}:-1"],
        [f"{'ab' * 32}:0"] * 2,
        [f"{'ab' * 32}:{place}" for place in range(101)],
    ):
        refused(desk.propose(1_000, coins=nonsense), 422, "VALIDATION")
    for named in ([small], [large, small]):
        created = ok(desk.propose(10_000, fee_rate="1", coins=named))
        assert sorted(spent(created)) == sorted(named)
        ok(cancel(desk, created["psbt_id"]))
    problem = refused(desk.propose(20_000, fee_rate="2", coins=[small]), 422, "INSUFFICIENT_FUNDS")
    most = problem["figures"]["maximum_sats"]
    refused(desk.propose(most + 1, fee_rate="2", coins=[small]), 422, "INSUFFICIENT_FUNDS")
    swept = made(desk.sweep(sweep=False, sweep_coins=True, coins=[small], fee_rate="2"))
    assert desk.proposal(swept)["amounts_sats"] == [most]
    ok(cancel(desk, swept))
    made(desk.propose(most, fee_rate="2", coins=[small]))


def test_p65_what_cannot_be_spent_is_refused_by_name(desk):
    (free, gone) = deposited(desk, 100_000, 100_000)
    psbt_id = made(desk.propose(90_000, fee_rate="1", coins=[gone]))
    desk.sign_off(psbt_id)
    desk.settle()
    other = ok(desk.create_vault("Other"))
    (foreign,) = desk.deposit(70_000, to=other["address"], blocks=1)
    unknown = f"{'ab' * 32}:0"
    (fresh,) = deposited(desk, 50_000, blocks=0)
    problem = refused(
        desk.propose(1_000, coins=[free, gone, fresh, f"{foreign}:0", f"{foreign}:1", unknown]),
        422,
        "VALIDATION",
    )
    assert faults(problem) == [
        ("/coins/1", "spent"),
        ("/coins/2", "unconfirmed"),
        ("/coins/3", "unknown-coin"),
        ("/coins/4", "unknown-coin"),
        ("/coins/5", "unknown-coin"),
    ]
    assert gone in problem["detail"]
    desk.mine()
    made(desk.propose(1_000, coins=[free, fresh]))
    problem = refused(desk.propose(1_000, coins=[fresh, free]), 409, "LOCKED_FUNDS")
    assert faults(problem) == [("/coins/0", "locked"), ("/coins/1", "locked")]


def test_p65_a_blocks_reward_may_be_named_after_a_hundred_blocks(desk):
    (reward,) = deposited(desk, 100_000)
    txid, vout = reward.split(":")
    for depth in (99, 100, 101):
        with desk.world.platform.services.store.write() as db:
            coin = db.get_one(ChainCoinRow, ("regtest", txid, int(vout)))
            coin.is_coinbase, coin.height = True, desk.chain.tip().height + 1 - depth
        answer = desk.propose(1_000, coins=[reward])
        if depth == 99:
            assert faults(refused(answer, 422, "VALIDATION")) == [("/coins/0", "immature")]
        else:
            ok(cancel(desk, made(answer)))


def test_a_held_coin_names_the_version_that_holds_it_now(desk):
    (coin,) = deposited(desk, 500_000)
    first = made(desk.propose(50_000, fee_rate="1", coins=[coin]))
    newer = made(bump(desk, first, fee_rate="5", description="Rent `for` " + "a long " * 9))
    problem = refused(desk.propose(1_000, coins=[coin]), 409, "LOCKED_FUNDS")
    assert problem["detail"].startswith(f"{coin} is locked by proposal {newer} “Rent 'for' a long ")
    assert problem["detail"].index("…”") < len(coin) + 120
    for name in SIGNERS[1:]:
        ok(desk.decline(name, newer))
    assert newer not in refused(desk.propose(1_000, coins=[coin]), 409, "LOCKED_FUNDS")["detail"]


def test_the_coin_for_the_vaults_tokens_is_not_taken(desk):
    tokens = TokenDesk(desk)
    tokens.fund(200_000)
    tokens.started()
    script = desk.policy.script_pubkey(0, 0).hex()
    held = [
        f"{coin.txid}:{coin.vout}"
        for coin in desk.rows(ChainCoinRow, ChainCoinRow.spent_by.is_(None))
        if coin.script_pubkey.hex() == script
    ]
    problem = refused(desk.propose(1_000, fee_rate="1", coins=held), 422, "VALIDATION")
    assert "for its tokens" in problem["detail"]
    back = [desk.vault["address"], CAFE]
    made(desk.propose(20_000, 1_000, recipients=back, fee_rate="1", coins=held))


ADDRESS = "bcrt1qw508d6qejxtdg4y5r3zarvary0c5xw7kygt080"


def test_a_link_that_cannot_be_paid_is_refused_at_its_place():
    with pytest.raises(Invalid) as caught:
        parse_recipient(f"bitcoin:{ADDRESS}?amount=-1", Network.REGTEST, "/recipients/3")
    assert caught.value.faults[0].pointer == "/recipients/3"


def test_the_two_ways_to_name_an_amount_agree_or_are_refused():
    assert merge_amount(Recipient(ADDRESS, None), 5, "") == 5
    assert merge_amount(Recipient(ADDRESS, 5), None, "") == 5
    assert merge_amount(Recipient(ADDRESS, 5), 5, "") == 5
    with pytest.raises(Invalid, match="another amount"):
        merge_amount(Recipient(ADDRESS, 5), 6, "")
    with pytest.raises(Invalid, match="sweep: true"):
        merge_amount(Recipient(ADDRESS, None), None, "")


@pytest.mark.parametrize(
    ("text", "payload"),
    [
        ("hello", b"hello"),
        ("0xff00", b"\xff\x00"),
        ("0XFF", b"0XFF"),
        ("ü" * 40, "ü".encode() * 40),
        ("x" * 80, b"x" * 80),
    ],
)
def test_data(text, payload):
    assert parse_op_return(text) == payload


@pytest.mark.parametrize(
    "text",
    ["x" * 81, "ü" * 41, "0x", "0xf", "0xzz", "0x0 1", "0x" + "00" * 81, "CPT\x11", "0x43505410" + "00" * 32],
)
def test_p30_data_that_is_refused(text):
    with pytest.raises(Invalid) as caught:
        parse_op_return(text)
    assert caught.value.faults[0].pointer == "/op_return"


@given(st.binary(min_size=1, max_size=80).filter(lambda data: not data.startswith(b"CPT")))
def test_hex_says_any_bytes(data):
    assert parse_op_return("0x" + data.hex()) == data
