"""Limits where movements are proposed (P18, P19), and ``assets`` in a vault's record: what it moved of each
token in its cycle (docs/operate/limits.md). What counts, for whom and until when is in
`tests/custody/server/test_lifecycle.py`.
"""

from dataclasses import replace

import pytest
from sqlalchemy import select, update

from custody.server.rules.limits import in_tokens
from custody.server.store.models import ChainCoinRow, ContractCallRow, ProposalInputRow, ProposalRow
from multisig.tokens import MAX_TOKEN_AMOUNT
from tests.support.custody import Desk, ok, open_desk, refused
from tests.support.platform import As
from tests.support.policy_store import OUT_OF_REACH, RemotePolicies
from tests.support.prepared import Story, nothing
from tests.support.replacing import bump, made
from tests.support.token_desk import BOB, TokenDesk

BTC = 100_000_000


def bound_cycle(desk, *, is_per_cycle: bool = True) -> None:
    query = {"workspace_id": desk.workspace_id, "vault_id": desk.vault["id"]}
    now = ok(desk.admin.get("/api/v1/get-vault-limits", **query))
    cycle = {"cycle_period": now["CyclePeriod"], "cycle_day": now["CycleDay"]}
    desk.limit(now["Limit"], **cycle, per_cycle=is_per_cycle)


def mine(desk, who: As | None = None) -> tuple[str, str]:
    """Used and unused of a member's own limit."""
    limits = ok((who or desk.admin).get("/api/v1/get-my-limits", workspace_id=desk.workspace_id))
    return limits["Used"], limits["Unused"]


def vaults_used(desk) -> str:
    query = {"workspace_id": desk.workspace_id, "vault_id": desk.vault["id"]}
    return ok(desk.admin.get("/api/v1/get-vault-limits", **query))["Used"]


def cost(desk, response) -> int:
    """What the proposal moves, its fee included."""
    record = desk.proposal(ok(response)["psbt_id"])
    return sum(record["amounts_sats"]) + record["fee_sats"]


def btc(amount: int) -> str:
    return f"{amount // BTC}.{amount % BTC:08d}"


@pytest.fixture
def beginning(request: pytest.FixtureRequest) -> Story:
    if "tokens" in request.fixturenames:
        return many_coins
    return eight_coins if "rich" in request.fixturenames else nothing


def eight_coins(desk: Desk) -> None:
    desk.deposit(*[1_000_000] * 8)


@pytest.fixture
def rich(desk):
    """Eight coins, so that proposals do not wait for each other's."""
    return desk


def test_p18_p19_what_exceeds_a_limit_by_a_satoshi_reserves_nothing_and_is_recorded(rich):
    """Of a member's own sum, fees included; the role is asked first, and the vault's limit applies too."""
    assert mine(rich, rich.signers["alice"]) == ("0.00000000", "0.00000000"), "a role of nothing is read"
    fee = cost(rich, rich.propose(50_000, fee_rate="2")) - 50_000
    held = rich.wallets()[0]["locked_sats"]
    rich.limit_role(btc(110_000 + 2 * fee))
    rich.limit(btc(60_000 + fee))
    problem = refused(rich.propose(60_001, fee_rate="2"), 403, "ROLE_LIMIT_EXCEEDED")
    assert problem["figures"] == {
        "limit": btc(110_000 + 2 * fee),
        "used": btc(50_000 + fee),
        "requested": btc(60_001 + fee),
        "next_reset": "2026-04-01T00:00:00.000Z",
    }
    assert f", of which {btc(50_000 + fee)} BTC are used until " in problem["detail"]
    assert (mine(rich)[0], rich.wallets()[0]["locked_sats"]) == (btc(50_000 + fee), held)
    assert rich.audited()[-1] == "ROLE_LIMIT_EXCEEDED"
    rich.world.member(rich.workspace_id, "deputy@example.org", "Administrator")
    deputy = replace(rich, admin=rich.world.as_user("deputy@example.org"))
    refused(deputy.propose(60_001, fee_rate="2"), 403, "VAULT_LIMIT_EXCEEDED")
    ok(rich.propose(60_000, fee_rate="2"))
    assert mine(rich) == (btc(110_000 + 2 * fee), "0.00000000")


def test_an_ended_one_that_its_signers_took_to_the_network_counts_again(rich):
    """Signatures that were handed out stay valid: what left is what counts, whatever its status says."""
    response = rich.propose(60_000)
    psbt_id = ok(response)["psbt_id"]
    with rich.store.write() as db:
        proposal = db.get_one(ProposalRow, psbt_id)
        proposal.status = "EXPIRED"
    assert mine(rich)[0] == vaults_used(rich) == "0.00000000"
    with rich.store.write() as db:
        for place in db.scalars(select(ProposalInputRow).where(ProposalInputRow.proposal_id == psbt_id)):
            coin = db.get_one(ChainCoinRow, ("regtest", place.txid, place.vout))
            coin.spent_by = proposal.txid_expected
    assert mine(rich)[0] == vaults_used(rich) == btc(cost(rich, response))


class TestOutOfReach:
    @pytest.fixture
    def remote(self):
        return RemotePolicies()

    @pytest.fixture
    def desk(self, tmp_path, database, remote):
        with open_desk(tmp_path / "state", database_url=database, policies=remote) as opened:
            eight_coins(opened)
            yield opened

    def test_movements_fail_closed_and_nothing_is_answered_changed_or_reserved(self, rich, remote):
        """A vault says so in the place of its limits."""
        here, cycle = {"workspace_id": rich.workspace_id}, {"cycle_period": "M", "cycle_day": 1}
        vault, role = {"vault_id": rich.vault["id"]}, {"role_id": 1}
        pending = ok(rich.propose(10_000))["psbt_id"]
        locked, used = rich.wallets()[0]["locked_sats"], mine(rich)[0]
        remote.is_reachable = False
        (shown,) = rich.wallets()
        assert (shown["limit_error"], shown["locked_sats"]) == (OUT_OF_REACH, locked)
        assert "detailed_vault_limits" not in shown
        assert ok(rich.admin.get("/api/v1/get-vault-limits", **here, **vault)) == {
            "limit_error": OUT_OF_REACH
        }
        answer = rich.propose(10_000)
        assert OUT_OF_REACH in refused(answer, 503, "POLICY_UNAVAILABLE")["detail"]
        assert int(answer.headers["Retry-After"]) > 0
        assert rich.wallets()[0]["locked_sats"] == locked
        assert len(ok(rich.admin.get("/api/v1/psbt", **here))) == 1
        for path, query in (
            ("get-my-limits", {}),
            ("get-role-limit", role),
            ("check-user-role-limit", role | {"uuid": 1, "amount_to_check": "1"}),
            ("check-vault-limit", vault | {"amount_to_check": "1"}),
        ):
            refused(rich.admin.get(f"/api/v1/{path}", **here, **query), 503, "POLICY_UNAVAILABLE")
        for path, body in (
            ("update-role-policies", role | {"new_transaction_limit": "1"}),
            ("update-vault", vault | {"transaction_limit": "1"}),
        ):
            answer = rich.admin.post(f"/api/v1/{path}", here | cycle | body)
            refused(answer, 503, "POLICY_UNAVAILABLE")
        rich.sign_off(pending)
        assert rich.proposal(pending)["status"] == "SIGNED", "it was measured when it was proposed"
        remote.is_reachable = True
        (shown,) = rich.wallets()
        assert "limit_error" not in shown
        assert shown["detailed_vault_limits"]["Limit"] == "10.00000000"
        assert shown["detailed_vault_limits"] == ok(
            rich.admin.get("/api/v1/get-vault-limits", **here, **vault)
        )
        assert mine(rich)[0] == used
        ok(rich.propose(10_000))


def many_coins(desk: Desk) -> None:
    TokenDesk(desk).fund(*[50_000] * 7)


@pytest.fixture
def tokens(desk: Desk) -> TokenDesk:
    """With coins enough for calls that wait beside each other."""
    found = TokenDesk(desk)
    found.look()
    return found


def assets(tokens: TokenDesk) -> list[dict]:
    (vault,) = tokens.desk.wallets()
    return vault["assets"]


def figures(tokens: TokenDesk) -> list[tuple[str, str, str]]:
    return [(each["Limit"], each["Used"], each["Unused"]) for each in assets(tokens)]


class TestWhatCounts:
    def test_what_is_transferred_minted_and_burnt_of_each_token_the_oldest_first(self, tokens):
        """A call and its bump once; what never reached the network is given back."""
        assert tokens.desk.vault["assets"] == []
        uid, dust = tokens.started(), tokens.started(ticker="DUST", decimals_num=0)
        ok(tokens.call(uid, "transfer", tokens.address, 900))
        assert assets(tokens) == [], "of a token that was not moved nothing is there"
        ok(tokens.call(dust, "transfer", BOB, 3))
        first = made(tokens.call(uid, "transfer", BOB, 40))
        tokens.finish(made(bump(tokens.desk, first, fee_rate="8")))
        ok(tokens.call(uid, "mint", BOB, 5))
        declined = made(tokens.call(uid, "burn", tokens.address, 100))
        ok(tokens.call(uid, "pause"))
        gold, _ = assets(tokens)
        record = ok(tokens.desk.admin.get("/api/v1/contract", workspace_id=1, contract_uid=uid))
        token = {"contract_uid": uid, "contract_id": record["contract_id"], "ticker": "GOLD", "decimals": 2}
        reset = tokens.desk.wallets()[0]["detailed_vault_limits"]["NextReset"]
        assert gold == token | {"Limit": "10.00", "Used": "1.45", "Unused": "8.55", "NextReset": reset}
        assert figures(tokens)[1] == ("10", "3", "7")
        tokens.desk.limit("1")
        assert figures(tokens)[0] == ("1.00", "1.45", "0.00"), "lowered under what is used"
        tokens.desk.reject(declined)
        assert figures(tokens)[0] == ("1.00", "0.45", "0.55")

    def test_a_sum_beyond_64_bits(self, tokens):
        uid = tokens.started()
        for _ in range(2):
            ok(tokens.call(uid, "mint", BOB, 5))
        with tokens.desk.store.write() as db:
            db.execute(update(ContractCallRow).values(amount=MAX_TOKEN_AMOUNT))
        bound_cycle(tokens.desk)
        used = in_tokens(2 * MAX_TOKEN_AMOUNT, 2)
        assert [each[1] for each in figures(tokens)] == [used]
        problem = refused(tokens.call(uid, "mint", BOB, 1), 403, "VAULT_LIMIT_EXCEEDED")
        assert problem["figures"]["used"] == used


def test_a_refusal_carries_the_same_figures_and_unused_is_what_passes(tokens):
    """Of a cycle's sum; a limit that the token cannot be divided into lets through what is below it."""
    for decimals, limit in ((0, "500.9"), (2, "5.00999999"), (18, "0.5")):
        tokens.desk.limit("21000000", per_cycle=False)
        supply = str(MAX_TOKEN_AMOUNT)
        made_anew = {"ticker": f"GOLD{decimals}", "total_supply": supply, "max_supply": supply}
        uid = tokens.started(decimals_num=decimals, **made_anew)
        tokens.desk.limit("21000000")
        ok(tokens.call(uid, "transfer", BOB, 400))
        tokens.desk.limit(limit)
        bound_cycle(tokens.desk)
        *_, shown = assets(tokens)
        left = int(shown["Unused"].replace(".", ""))
        problem = refused(tokens.call(uid, "transfer", BOB, left + 1), 403, "VAULT_LIMIT_EXCEEDED")
        assert problem["figures"] == {
            "limit": shown["Limit"],
            "used": shown["Used"],
            "requested": in_tokens(left + 1, decimals),
            "next_reset": shown["NextReset"],
        }
        ok(tokens.call(uid, "transfer", BOB, left))
        *_, shown = assets(tokens)
        assert (shown["Used"], int(shown["Unused"].replace(".", ""))) == (shown["Limit"], 0)
