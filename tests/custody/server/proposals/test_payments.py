"""A send that names its coins spends exactly these, and keeps to every rule of its vault (P65)."""

from custody.server.store.models import ChainCoinRow
from multisig import Psbt
from tests.support.custody import CAFE, SIGNERS, Desk, ok, refused
from tests.support.replacing import bump, cancel, made
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
    assert faults(problem) == [("/coins/0", "reserved"), ("/coins/1", "reserved")]


def test_a_held_coin_names_the_version_that_holds_it_now(desk):
    (coin,) = deposited(desk, 500_000)
    first = made(desk.propose(50_000, fee_rate="1", coins=[coin]))
    newer = made(bump(desk, first, fee_rate="5"))
    problem = refused(desk.propose(1_000, coins=[coin]), 409, "LOCKED_FUNDS")
    assert problem["detail"].startswith(f"{coin} is locked by the proposal {newer}.")
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
