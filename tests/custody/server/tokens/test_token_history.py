"""What a vault received of tokens and gave away: each with what it held after it, in pages, after a fork."""

from tests.support.custody import ok, refused
from tests.support.token_desk import BOB, TokenDesk


def listed(tokens: TokenDesk, **query: object) -> list[dict]:
    """Page by page."""
    where = {"workspace_id": 1, "vault_id": tokens.desk.vault["id"], "limit": 2, **query}
    found, cursor = [], {}
    while True:
        page = ok(tokens.desk.admin.get("/api/v1/token-history", **where, **cursor))
        found += page["movements"]
        if page["next_cursor"] is None:
            return found
        cursor = {"cursor": page["next_cursor"]}


def test_each_movement_with_the_holding_after_it(tokens: TokenDesk, uid: int) -> None:
    tokens.done(uid, "mint", tokens.address, 50)
    tokens.done(uid, "transfer", BOB, 125)
    tokens.done(uid, "burn", tokens.address, 10)
    found = listed(tokens, order="oldest")
    assert [(one["function"], one["amount"], one["holding"]) for one in found] == [
        ("init", "9.00", "9.00"),
        ("mint", "0.50", "9.50"),
        ("transfer", "-1.25", "8.25"),
        ("burn", "-0.10", "8.15"),
    ]
    (balance,) = ok(
        tokens.desk.admin.get("/api/v1/get-tokens", workspace_id=1, vault_id=tokens.desk.vault["id"])
    )
    assert found[-1]["holding_raw"] == balance["balance"]
    assert listed(tokens) == found[::-1]
    assert listed(tokens, contract_uid=uid) == found[::-1]
    query = {"workspace_id": 1, "vault_id": tokens.desk.vault["id"], "contract_uid": uid + 1}
    refused(tokens.desk.admin.get("/api/v1/token-history", **query), 404, "NOT_FOUND")
    tokens.reorganise(1, 2)
    assert listed(tokens, order="oldest")[:3] == [
        one | {"confirmations": one["confirmations"] + 1} for one in found[:3]
    ]
