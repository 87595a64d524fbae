"""A vault's movements as the platform lists them, compared with the chain."""

from collections.abc import Iterator

from custody.server.store.models import ChainCoinRow
from tests.support.custody import Desk, ok
from tests.support.platform import As


def read(desk: Desk, person: As | None = None, **query: object) -> dict:
    where = {"workspace_id": desk.workspace_id, "vault_id": desk.vault["id"]}
    return ok((person or desk.admin).get("/api/v1/vault-history", **where, **query))


def listed(desk: Desk, **query: object) -> list[dict]:
    return list(paged(desk, **query))


def paged(desk: Desk, **query: object) -> Iterator[dict]:
    cursor: dict[str, object] = {}
    while True:
        page = read(desk, **query, **cursor)
        yield from page["movements"]
        if page["next_cursor"] is None:
            return
        cursor = {"cursor": page["next_cursor"]}


def require_truth(desk: Desk, limit: int = 2, *replaced: str) -> None:
    """Checks that each balance follows from the previous one, and that the last is the chain's. ``replaced``:
    the ids of the vaults in whose place the desk's one is, which are listed with it.
    """
    shown = {"with_replaced": "true"} if replaced else {}
    found = listed(desk, order="oldest", limit=limit, **shown)
    assert len({one["txid"] for one in found}) == len(found)
    confirmed = [one for one in found if one["status"] == "confirmed"]
    balance = 0
    for one in confirmed:
        assert one["amount_sats"] == one["received_sats"] - one["sent_sats"]
        balance += one["amount_sats"]
        assert one["balance_sats"] == balance >= 0
        assert one["block_hash"] == desk.chain.block_at(one["height"]).hash
    coins = desk.rows(ChainCoinRow, ChainCoinRow.vault_id.in_([desk.vault["id"], *replaced]))
    in_blocks = [coin for coin in coins if coin.height is not None]
    assert balance == sum(coin.amount_sats for coin in in_blocks if coin.spent_height is None)
    pending = [one for one in found if one["status"] == "pending"]
    assert found == confirmed + pending
    assert all(one["balance_sats"] is None and one["height"] is None for one in pending)
    unspent = sum(coin.amount_sats for coin in coins if coin.spent_by is None)
    assert balance + sum(one["amount_sats"] for one in pending) == unspent
    assert listed(desk, limit=limit + 1, **shown) == found[::-1]


def listed_coins(desk: Desk, person: As | None = None, **query: object) -> list[dict]:
    """All pages of the vault's unspent coins."""
    where = {"workspace_id": desk.workspace_id, "vault_id": desk.vault["id"], **query}
    found, cursor = [], {}
    while True:
        page = ok((person or desk.admin).get("/api/v1/vault-coins", **where, **cursor))
        found += page["coins"]
        if page["next_cursor"] is None:
            return found
        cursor = {"cursor": page["next_cursor"]}
