"""What grows with the years is found by an index: a plan that reads all of a table fails here, however quick
it still is.

The statements are those that the use cases send. PostgreSQL is told to leave whole tables alone where it can;
where an index is missing, it cannot.
"""

import re
from contextlib import contextmanager

import pytest
from sqlalchemy import event, insert, select, text

from custody.schemas.call import PermissionName
from custody.schemas.history import VAULT_COINS, VAULT_HISTORY, VaultCoinsQuery, VaultHistoryQuery
from custody.schemas.logs import LogsQuery
from custody.schemas.proposals import ProposalStatus, PsbtQuery
from custody.schemas.vaults import LIST_WALLETS, VaultsQuery
from custody.server.audit.calls import logs
from custody.server.calls import Ctx, make
from custody.server.limits.calls import require_in_limits
from custody.server.limits.stored import OutgoingAmount, usage_of_vault
from custody.server.network.deposits import ChainSnapshot, Coins
from custody.server.network.sightings import affected
from custody.server.proposals.choosing import plan_of
from custody.server.proposals.coins import (
    MATCHING,
    SMALL,
    SpendableCoins,
    kept_for_tokens,
    require_unchanged,
)
from custody.server.proposals.payments import Intent
from custody.server.proposals.reading import page
from custody.server.rules.audit import Category
from custody.server.rules.credentials import Caller, WorkspaceAccess
from custody.server.rules.limits import Usage
from custody.server.rules.selection import MAX_INPUTS, Tier
from custody.server.store.models import (
    AddressBookEntryRow,
    AuditEventRow,
    ContractCallRow,
    ContractRow,
    ProposalInputRow,
    ProposalRow,
    SignatureRow,
    TokenCellRow,
    VaultRow,
)
from custody.server.store.models import MovementRow as StoredMovement
from custody.server.tokens.call_checks import waiting_calls
from custody.server.tokens.records import holding_vault
from custody.server.tokens.state import Cells
from custody.server.vaults.stored import address_script, policy_of
from multisig import FeeRate, Sats
from multisig.tokens.machine import Cell
from tests.support.custody import SHOP, Desk, ok
from tests.support.flood import flood
from tests.support.platform import START
from tests.support.prepared import Story
from tests.support.rows import a_contract, lock_coins

GROWING = (
    "proposals",
    "proposal_inputs",
    "chain_coins",
    "coin_locks",
    "signatures",
    "decisions",
    "chain_transactions",
    "contract_calls",
    "token_cells",
    "token_transactions",
    "movements",
    "token_effects",
    "audit_events",
    "address_book",
)
# All of these are few.
PARTIAL = {"ix_proposals_kept"}


@pytest.fixture
def beginning() -> Story:
    return a_past


def a_past(desk: Desk) -> None:
    """Ended and confirmed proposals, coins spent and unspent, and a few that are under way."""
    desk.deposit(400_000, 400_000, 400_000)
    psbt_id = ok(desk.propose(50_000))["psbt_id"]
    ok(desk.propose(50_000))
    desk.sign_off(psbt_id)
    desk.settle()
    with desk.world.platform.services.store.write() as db:
        vault = db.get_one(VaultRow, desk.vault["id"])
        made = flood(db, vault, [2_000 + number for number in range(1_000)])
        lock_coins(db, vault.chain, made[:400], "another")
        first = db.get_one(ProposalRow, psbt_id)
        values = {column.name: getattr(first, column.name) for column in ProposalRow.__table__.columns}
        past = [
            values
            | {
                "id": f"{number:032x}",
                "family_id": f"{number:032x}",
                "txid_expected": f"{number:064x}",
                "status": ("CONFIRMED", "EXPIRED", "INVALIDATED", "PENDING")[number % 4],
                "block_height": number if number % 4 == 0 else None,
                "final_tx": None,
            }
            for number in range(800)
        ]
        db.execute(insert(ProposalRow), past)
        inputs = [
            {"proposal_id": each["id"], "input_index": 0, "txid": each["id"] * 2, "vout": 0, "amount_sats": 1}
            | {"branch": 0, "address_index": 0}
            for each in past
        ]
        db.execute(insert(ProposalInputRow), inputs)
        owner = {"workspace_id": vault.workspace_id, "created_by": vault.created_by, "chain": vault.chain}
        db.add(a_contract(1, vault.id, past[0]["id"], **owner))
        db.flush()
        db.execute(insert(ContractCallRow), [a_call(vault, each["id"]) for each in past])
        db.execute(insert(TokenCellRow), [a_balance(vault, number) for number in range(800)])
        moved = db.scalars(select(StoredMovement)).first()
        values = {column.name: getattr(moved, column.name) for column in StoredMovement.__table__.columns}
        db.execute(
            insert(StoredMovement),
            [values | {"txid": f"{n:064x}", "height": n if n % 9 else None, "place": 0} for n in range(800)],
        )
        row = db.scalars(select(AuditEventRow).where(AuditEventRow.chain_id == "workspace:1")).first()
        values = {column.name: getattr(row, column.name) for column in AuditEventRow.__table__.columns}
        kinds = [each.value for each in Category]
        at = [(1_000 + n, kinds[n % len(kinds)]) for n in range(800)]
        more = [
            {"event_uid": f"{n:032x}", "position": n, "category": kind, "user_uuid": n % 9} for n, kind in at
        ]
        db.execute(insert(AuditEventRow), [values | each for each in more])
        entries = [
            {"name": f"Shop {n}", "name_key": f"shop {n}", "address": f"address {n}"} for n in range(800)
        ]
        owner = {"workspace_id": vault.workspace_id, "created_by": 1, "created_at": START}
        db.execute(insert(AddressBookEntryRow), [owner | each for each in entries])
        signed = db.scalars(select(SignatureRow)).first()
        values = {column.name: getattr(signed, column.name) for column in SignatureRow.__table__.columns}
        db.execute(
            insert(SignatureRow), [values | {"proposal_id": each["id"], "input_index": 0} for each in past]
        )
        if db.get_bind().dialect.name == "postgresql":
            db.execute(text("ANALYZE"))


@pytest.fixture
def old(desk):
    """A vault with a past."""
    return desk


def a_call(vault, family_id) -> dict:
    asked = {"function_name": "transfer", "args": [], "amount": 1, "address_script": b""}
    made = {"family_id": family_id, "created_by": vault.created_by, "created_at": START}
    return {"contract_uid": 1, "workspace_id": vault.workspace_id, "vault_id": vault.id, **asked, **made}


def a_balance(vault, number) -> dict:
    """Of a stranger's token, at the vault's address."""
    where = {"chain": vault.chain, "contract_id": f"{number:064x}", "cell": int(Cell.BALANCE)}
    return where | {"holder": address_script(vault), "number": 1, "data": None}


@contextmanager
def statements(store):
    """Every SELECT that is sent in a snapshot, with its parameters."""
    seen, engine = [], store._database.reading

    def note(_connection, _cursor, statement, parameters, _context, _many):
        if statement.lstrip().upper().startswith("SELECT"):
            seen.append((statement, parameters))

    event.listen(engine, "before_cursor_execute", note)
    try:
        yield seen
    finally:
        event.remove(engine, "before_cursor_execute", note)


def plans(store, seen) -> list[str]:
    """What the database would do for each."""
    with store.read() as db:
        connection = db.connection()
        on_sqlite = connection.dialect.name == "sqlite"
        if not on_sqlite:
            for way in ("seqscan", "hashjoin", "mergejoin"):
                connection.exec_driver_sql(f"SET LOCAL enable_{way} = off")
        explain = "EXPLAIN QUERY PLAN " if on_sqlite else "EXPLAIN "
        found = [connection.exec_driver_sql(explain + statement, given).all() for statement, given in seen]
    return ["\n".join(str(row[-1]) for row in plan) for plan in found]


def whole_tables(plan: str) -> set[str]:
    """The growing tables that a plan reads from end to end, an index over all of it included."""
    read = re.findall(r"^SCAN (\w+)\b(?! USING INDEX ix_proposals_kept)", plan, re.MULTILINE) + re.findall(
        r"Seq Scan on (\w+)", plan
    )
    # Of one chain there is as good as everything.
    read += re.findall(r"^SEARCH (\w+) USING [^(\n]*\(chain=\?\)$", plan, re.MULTILINE)
    # An index that nothing narrows is the whole table again.
    scans = r"Index (?:Only )?Scan(?: Backward)? using (\w+) on (\w+)[^\n]*\n?([^\n]*)"
    read += [
        name
        for index, name, condition in re.findall(scans, plan)
        if "Index Cond" not in condition and index not in PARTIAL
    ]
    return set(read) & set(GROWING)


def a_plan(db, desk):
    policy = policy_of(db.get_one(VaultRow, desk.vault["id"]))
    return plan_of(policy, Intent((), None), FeeRate(1_000))


def drawing(db, desk):
    plan = a_plan(db, desk)
    source = SpendableCoins(desk.vault["id"], 200)
    for tier in Tier:
        held = source.pool(db, tier, plan)
    source.pool(db, Tier.OWN_UNCONFIRMED, plan, with_locked=True)
    source.tally(db, plan, None)
    require_unchanged(db, "regtest", held[:20])
    kept_for_tokens(db, db.get_one(VaultRow, desk.vault["id"]), 200)


def listing(status=None, *, awaiting=None):
    def read(db, desk):
        wanted = PsbtQuery(workspace_id=desk.workspace_id, status=status, awaiting=awaiting, limit=50)
        first = page(context(db, desk), wanted)
        assert len(first.items) == 50
        page(context(db, desk), wanted.model_copy(update={"after": first.items[-1].psbt_id}))

    return read


def listing_proofs(db, desk):
    wanted = PsbtQuery(workspace_id=desk.workspace_id, order="newest", tx_type="proof", limit=50)
    assert page(context(db, desk), wanted).items == []


def searching(db, desk):
    wanted = PsbtQuery(workspace_id=desk.workspace_id, order="newest", search="acme 0.5", limit=50)
    found = page(context(db, desk, PermissionName.MANAGE_WORKSPACE), wanted)
    assert (found.items, found.after) == ([], None)


def auditing(db, desk):
    place = {"org_uid": 1, "workspace_uid": desk.workspace_id, "order": "newest", "page_size": 2}
    ctx = context(db, desk)
    for asked in ({}, {"category": "VAULTS"}, {"user_uuid": 3}):
        page = logs(ctx, LogsQuery(**place, **asked))
        logs(ctx, LogsQuery(**place, **asked, cursor=page.next_cursor))


def context(db, desk, *held):
    access = WorkspaceAccess(desk.workspace_id, 1, "testnet", "regtest", 1, frozenset(held))
    caller = Caller(desk.user_ids["alice"], 1, "alice", "test")
    return Ctx(desk.world.platform.services, caller, db, access)


def looking_back(db, desk):
    ctx = context(db, desk)
    place = {"workspace_id": desk.workspace_id, "vault_id": desk.vault["id"], "limit": 2}
    kinds = ({"status": "confirmed"}, {"status": "confirmed", "kind": "deposit"}, {"status": "pending"})
    for sought in (*kinds, {"order": "oldest", "min_sats": 1, "address": SHOP}):
        page = make(ctx, VAULT_HISTORY, VaultHistoryQuery(**place, **sought))
        if page.next_cursor is not None:
            make(ctx, VAULT_HISTORY, VaultHistoryQuery(**place, **sought, cursor=page.next_cursor))


def listing_coins(db, desk):
    ctx = context(db, desk)
    place = {"workspace_id": desk.workspace_id, "vault_id": desk.vault["id"], "limit": 2}
    first = make(ctx, VAULT_COINS, VaultCoinsQuery(**place))
    make(ctx, VAULT_COINS, VaultCoinsQuery(**place, cursor=first.next_cursor))
    make(ctx, VAULT_COINS, VaultCoinsQuery(**place, state="reserved", address=SHOP))


def calling(db, desk):
    contract = db.get_one(ContractRow, 1)
    access = WorkspaceAccess(desk.workspace_id, 1, "testnet", "regtest", 1, frozenset())
    assert holding_vault(db, access, contract) == desk.vault["id"]
    assert waiting_calls(db, contract, desk.workspace_id) == ()
    assert Cells(db, contract.chain).get("ff" * 32, Cell.OWNER) is None


def records(db, desk):
    # What was proposed before the cycle is not read.
    desk.world.clock.advance(days=40)
    (record,) = make(context(db, desk), LIST_WALLETS, VaultsQuery(workspace_id=desk.workspace_id))
    assert record.assets == []


def snapshot(desk) -> ChainSnapshot:
    from custody.server.network.deposits import take_snapshot

    with desk.world.platform.services.store.read() as db:
        script = policy_of(db.get_one(VaultRow, desk.vault["id"])).script_pubkey(0, 0)
    return take_snapshot(desk.chain, {0: desk.chain.block_at(0).hash}, [script], [], {})


def measuring(db, desk):
    access = WorkspaceAccess(desk.workspace_id, 1, "testnet", "regtest", 1, frozenset())
    caller = Caller(desk.user_ids["alice"], 1, "alice", "test")
    ctx = Ctx(desk.world.platform.services, caller, db, access)
    require_in_limits(ctx, db.get_one(VaultRow, desk.vault["id"]), OutgoingAmount(Sats(1_000), START))
    # One of many vaults: here every proposal is of one, and PostgreSQL knows it.
    assert usage_of_vault(db, "0" * 32, START) == Usage(0, 0)


def watching(db, desk):
    seen = snapshot(desk)
    assert any(found.spent for found in seen.outputs)
    affected(db, "regtest", seen, reorganised=False)
    affected(db, "regtest", ChainSnapshot(seen.tip, 798, (), seen.outputs), reorganised=True)
    coins = Coins("regtest", lambda: START, None)
    coins._stale(db, 150)
    coins.waiting(db)
    coins._news(db, seen.outputs)
    coins.missing_transactions(db, seen.outputs)


# What is asked, and the indexes that it is for.
ASKED = {
    "coins for a send": (
        drawing,
        [
            "ix_chain_coins_unspent",
            "ix_chain_coins_moving",
            "ix_chain_coins_rewards",
            "ix_proposals_txid_expected",
        ],
    ),
    "limits": (measuring, ["ix_proposals_of_member", "ix_proposals_of_vault"]),
    "a list": (listing(), ["ix_proposals_by_age"]),
    "a list by status": (listing(ProposalStatus.PENDING), ["ix_proposals_by_status"]),
    "what awaits me": (listing(awaiting="me"), ["ix_proposals_by_status"]),
    # Where it has no statistics of the proofs' own index, SQLite takes any of the workspace's.
    "proofs": (listing_proofs, []),
    "a call": (calling, []),
    "coins": (listing_coins, ["ix_chain_coins_unspent"]),
    "a history": (looking_back, ["ix_movements_in_order", "ix_movements_of_kind", "ix_movements_pending"]),
    "a search": (searching, ["ix_proposals_by_age"]),
    "the audit log": (auditing, ["ix_audit_events_by_category", "ix_audit_events_by_person"]),
    "a look at the chain": (
        watching,
        ["ix_proposals_block_height", "ix_proposals_kept", "ix_chain_coins_height", "ix_chain_coins_spent"],
    ),
    # It lets the time pass.
    "vaults": (records, ["ix_movements_in_order", "ix_chain_coins_moving", "ix_coin_locks_held"]),
}


def asked_by(desk, act) -> list[tuple[str, str]]:
    """Each statement, with its plan."""
    store = desk.world.platform.services.store
    with statements(store) as seen, store.read() as db:
        act(db, desk)
    return [(said, plan) for (said, _), plan in zip(seen, plans(store, seen), strict=True)]


def test_no_statement_reads_the_whole_of_what_grows_and_each_index_is_used(old):
    for name, (act, indexes) in ASKED.items():
        found = asked_by(old, act)
        assert len(found) > 3, name
        for statement, plan in found:
            assert not whole_tables(plan), f"{name}: {statement}\n{plan}"
        for index in indexes:
            assert any(index in plan for _, plan in found), f"{name}, {index}: {found}"


def test_what_is_wanted_in_order_is_not_sorted(old):
    # A vault may have any number of coins: not even its own are all read for the largest hundred.
    def draw(db, desk):
        for tier in Tier:
            SpendableCoins(desk.vault["id"], 200).pool(db, tier, a_plan(db, desk))

    pools = [plan for said, plan in asked_by(old, draw) if "ORDER BY chain_coins.amount_sats" in said]
    assert len(pools) == 3 * len(Tier)
    for plan in pools:
        assert "TEMP B-TREE" not in plan
        assert "Sort" not in plan
        # PostgreSQL does so while it expects to find as many as are asked for on the way.
        expected = re.match(r"Limit +\(cost=\S+ rows=(\d+)", plan)
        assert expected is None or int(expected[1]) in {MAX_INPUTS + 1, MATCHING, SMALL}, plan

    for status in (None, ProposalStatus.PENDING):
        found = asked_by(old, listing(status))
        lists = [plan for said, plan in found if "ORDER BY proposals.created_at" in said]
        assert len(lists) == 2
        assert not any(word in plan for plan in lists for word in ("TEMP B-TREE", "Sort"))

    # A search reads the address book once, and not for each proposal, as a join would.
    searches = [plan for said, plan in asked_by(old, searching) if "FROM address_book" in said]
    assert searches
    for plan in searches:
        assert "CORRELATED LIST SUBQUERY" not in plan
        assert not any(word in plan for word in ("Join", "Nested Loop")), plan
