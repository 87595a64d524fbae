"""``assets`` in a vault's record: what it moved of each token in its cycle, by the sums that refuse
(docs/operate/limits.md).
"""

import pytest
from sqlalchemy import update

from custody.server.rules.limits import in_tokens
from custody.server.store.models import ContractCallRow
from multisig.tokens import MAX_TOKEN_AMOUNT
from tests.custody.server.limits.test_limits import bound_cycle
from tests.support.custody import Desk, ok, refused
from tests.support.prepared import Story
from tests.support.replacing import bump, made
from tests.support.token_desk import BOB, TokenDesk


@pytest.fixture
def beginning() -> Story:
    return many_coins


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


class TestLimit:
    def test_a_refusal_carries_the_same_figures_and_unused_is_what_passes(self, tokens):
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
