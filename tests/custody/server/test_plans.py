"""What grows with the years is found by an index: a plan that reads all of a table fails here, however quick
it still is.

The statements are those of the calls and jobs themselves. PostgreSQL is told to leave whole tables alone
where it can; where an index is missing, it cannot.
"""

import re
from typing import Any
from urllib.parse import urlencode

import httpx
import pytest
from sqlalchemy import insert, text, update

from custody.server.audit.verification import read_through
from custody.server.proposals.choosing import plan_of
from custody.server.proposals.coins import MATCHING, SMALL, SpendableCoins
from custody.server.proposals.payments import Intent
from custody.server.rules.selection import MAX_INPUTS, Tier
from custody.server.store import Store
from custody.server.store.models import (
    AddressBookEntryRow,
    CoinAsideRow,
    ContractCallRow,
    TokenCellRow,
    VaultRow,
)
from custody.server.vaults.stored import address_script, policy_of
from multisig import FeeRate
from multisig.tokens.machine import Cell
from tests.custody.server.console.test_altered_rows import lists
from tests.support.crowd import Crowd, Size
from tests.support.custody import SHOP, Desk, ok
from tests.support.databases import statements_of
from tests.support.prepared import Story
from tests.support.token_desk import BOB, TokenDesk

GROWING = {
    "proposals", "proposal_inputs", "chain_coins", "coin_locks", "signatures", "decisions",
    "chain_transactions", "contract_calls", "token_cells", "token_transactions", "movements", "token_effects",
    "audit_events", "address_book", "coins_aside",
}  # fmt: skip
# All of these are few.
PARTIAL = {"ix_proposals_kept"}
# Each is for a question that is asked below.
INDEXES = {
    "ix_chain_coins_unspent", "ix_chain_coins_moving", "ix_chain_coins_rewards", "ix_proposals_txid_expected",
    "ix_proposals_of_member", "ix_proposals_of_vault", "ix_proposals_by_age", "ix_proposals_by_status",
    "ix_movements_in_order", "ix_movements_of_kind", "ix_movements_pending", "ix_audit_events_by_category",
    "ix_audit_events_by_person", "ix_proposals_block_height", "ix_proposals_kept", "ix_chain_coins_height",
    "ix_chain_coins_spent", "ix_chain_coins_spender", "ix_coin_locks_held", "ix_proposals_screened",
    "ix_coins_aside_vault_id",
}  # fmt: skip


@pytest.fixture
def beginning() -> Story:
    return a_past


def a_past(desk: Desk) -> None:
    crowd = Crowd.of(desk)
    crowd.grow(Size(400, 400, 3, 1_000, 400, 400, 10, 800))
    other = desk.world.organisation("Umbrella", "eve@example.org").workspace_id
    with desk.store.write() as db:
        vault = db.get_one(VaultRow, desk.vault["id"])
        where = {"chain": vault.chain, "cell": int(Cell.BALANCE), "holder": address_script(vault)}
        balances = ({"contract_id": f"{number:064x}", "number": 1, "data": None} for number in range(400))
        db.execute(insert(TokenCellRow), [where | each for each in balances])
        where = {
            "chain": vault.chain,
            "vout": 0,
            "vault_id": crowd.ids["many_movements"],
            "reason": "an audit",
        }
        where |= {"set_by": 1, "set_at": vault.created_at, "until": None, "reason": "an audit"}
        db.execute(insert(CoinAsideRow), [where | {"txid": f"{number:064x}"} for number in range(400)])
        # Of one workspace or one vault alone a database reads all in any order.
        most = update(AddressBookEntryRow).where(AddressBookEntryRow.id % 8 > 0)
        db.execute(most.values(workspace_id=other))
        most = update(ContractCallRow).where(ContractCallRow.uid % 8 > 0)
        db.execute(most.values(vault_id=crowd.ids["many_movements"]))
        if db.get_bind().dialect.name == "postgresql":
            db.execute(text("ANALYZE"))


def plans(store: Store, seen: list[tuple[str, Any]]) -> dict[str, str]:
    """What the database would do for each SELECT."""
    with store.read() as db:
        connection = db.connection()
        on_sqlite = connection.dialect.name == "sqlite"
        if not on_sqlite:
            for way in ("seqscan", "hashjoin", "mergejoin"):
                connection.exec_driver_sql(f"SET LOCAL enable_{way} = off")
        explain = "EXPLAIN QUERY PLAN " if on_sqlite else "EXPLAIN "
        asked = {said: given for said, given in seen if said.lstrip().upper().startswith("SELECT")}
        found = {
            said: connection.exec_driver_sql(explain + said, given).all() for said, given in asked.items()
        }
    return {said: "\n".join(str(row[-1]) for row in plan) for said, plan in found.items()}


def whole_tables(plan: str) -> set[str]:
    """The growing tables that a plan reads from end to end, an index over all of it included."""
    read = re.findall(r"^SCAN (\w+)\b(?! USING INDEX ix_proposals_kept)", plan, re.MULTILINE)
    read += re.findall(r"Seq Scan on (\w+)", plan)
    # Of one chain there is as good as everything.
    read += re.findall(r"^SEARCH (\w+) USING [^(\n]*\(chain=\?\)$", plan, re.MULTILINE)
    # An index that nothing narrows is the whole table again.
    scans = r"Index (?:Only )?Scan(?: Backward)? using (\w+) on (\w+)[^\n]*\n?([^\n]*)"
    read += [
        name
        for index, name, condition in re.findall(scans, plan)
        if "Index Cond" not in condition and index not in PARTIAL
    ]
    return set(read) & GROWING


def read_all(desk: Desk) -> None:
    """Every list, the further questions that have indexes of their own, and the next page of each."""
    own = {"workspace_id": desk.workspace_id}
    vault = {**own, "vault_id": desk.vault["id"]}
    log = {"org_uid": 1, "workspace_uid": desk.workspace_id, "order": "newest", "page_size": 2}
    of_psbt = ({}, {"status": "PENDING"}, {"awaiting": "me"}, {"order": "newest", "tx_type": "proof"})
    found = (
        {"kind": "deposit", "status": "confirmed"},
        {"status": "pending"},
        {"address": SHOP, "min_sats": 1},
    )
    asked = [
        *(("/api/v1/psbt", {**own, "limit": 50, **more}) for more in of_psbt),
        ("/api/v1/psbt", {**own, "order": "newest", "search": "acme 0.5"}),
        *(("/api/v1/vault-history", {**vault, "limit": 2, **more}) for more in found),
        *(("/api/v1/vault-coins", {**vault, "limit": 2, **more}) for more in ({}, {"state": "locked"})),
        *(("/api/v1/get-logs", {**log, **more}) for more in ({}, {"category": "VAULTS"}, {"user_uuid": 3})),
        ("/api/v1/token-history", vault),
        ("/api/v1/max-send", {**own, "wallet_id": desk.vault["id"], "recipients": SHOP}),
    ]
    paths = [*lists(desk).values(), *(f"{path}?{urlencode(query)}" for path, query in asked)]
    for path in paths:
        desk.world.clock.advance(seconds=12)
        answer = ask(desk, path)
        if "next" in answer.links:
            ask(desk, answer.links["next"]["url"])
        elif isinstance(answer.json(), dict) and (cursor := answer.json().get("next_cursor")):
            ask(desk, f"{path}&cursor={cursor}")


def ask(desk: Desk, path: str) -> httpx.Response:
    answer = desk.admin.http.get(path, headers=desk.admin.headers)
    ok(answer)
    return answer


def move_coins(desk: Desk) -> None:
    """Payments, a token's call and what becomes of them on the chain, a reorganisation among it."""
    desk.deposit(50_000)
    tokens = TokenDesk(desk)
    tokens.look()
    ok(tokens.call(1, "transfer", BOB, 1))
    psbt_id = ok(desk.propose(20_000))["psbt_id"]
    desk.sign_off(psbt_id)
    desk.settle()
    desk.mine()
    desk.reorganise(1, 2)
    desk.settle()
    desk.later(days=40)
    desk.world.platform.background.expiry()()
    ok(desk.admin.get("/api/v1/list-wallets", workspace_id=1))


def draw_coins(desk: Desk) -> None:
    with desk.store.read() as db:
        policy = policy_of(db.get_one(VaultRow, desk.vault["id"]))
        for tier in Tier:
            wanted = plan_of(policy, Intent((), None), FeeRate(1_000))
            SpendableCoins(desk.vault["id"], 200).pool(db, tier, wanted)


def test_no_statement_reads_the_whole_of_what_grows_or_sorts_what_is_stored_in_order(desk: Desk) -> None:
    store = desk.store
    assert read_through(store).findings == (), "the log of a crowd can be read"
    with statements_of(store) as drawn:
        draw_coins(desk)
    # A vault may have any number of coins: not even its own are all read for the largest hundred.
    pools = plans_of(plans(store, drawn), "ORDER BY chain_coins.amount_sats")
    assert len(pools) == 6, "two tiers differ by a parameter alone"
    for plan in pools:
        # PostgreSQL does so while it expects to find as many as are asked for on the way.
        expected = re.match(r"Limit +\(cost=\S+ rows=(\d+)", plan)
        assert expected is None or int(expected[1]) in {MAX_INPUTS + 1, MATCHING, SMALL}, plan

    with statements_of(store) as seen:
        read_all(desk)
        move_coins(desk)
    asked = plans(store, drawn + seen)
    assert [(said, plan) for said, plan in asked.items() if whole_tables(plan)] == []
    used = {index for index in INDEXES if any(re.search(rf"\b{index}\b", plan) for plan in asked.values())}
    assert INDEXES - used == set()

    lists_of = ("proposals.fee_sats", "WHERE proposals.workspace_id", "ORDER BY proposals.created")
    found = plans_of(asked, *lists_of)
    listed = [plan for plan in found if "SUBQUERY" not in plan and "SubPlan" not in plan]
    assert len(listed) > 3
    for plan in pools + listed:
        assert not any(word in plan for word in ("TEMP B-TREE", "Sort")), plan
    # A search reads the address book once, and not for each proposal, as a join would.
    searches = plans_of(asked, "FROM address_book", "ORDER BY anon_1.created_at")
    assert searches
    for plan in searches:
        assert "CORRELATED LIST SUBQUERY" not in plan
        assert not any(word in plan for word in ("Join", "Nested Loop")), plan


def plans_of(asked: dict[str, str], *words: str) -> list[str]:
    """Those of the statements with these words."""
    return [plan for said, plan in asked.items() if all(word in said for word in words)]
